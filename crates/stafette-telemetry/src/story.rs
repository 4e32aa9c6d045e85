//! Test runs: the core decides, and its events are folded.

use std::sync::Arc;

use stafette_core::handoff::Receipt;
use stafette_core::run::create::RunCreated;
use stafette_core::{
    Event, Failure, FailureKind, Input, Kind, Offer, Outcome, Party, Reason, Recorded, Response,
    Run, RunId, Time, TurnResult, Usage, Usd, Workflow,
};
use stafette_engine::Seen;
use uuid::Uuid;

use crate::book::Fact;
use crate::observer::Shown;

/// Planner → builder → reviewer ⇄ fixer.
const RELAY: &str = include_str!("../../../fixtures/workflows/relay.toml");

/// A run of a test.
pub(crate) struct Story {
    pub(crate) run: Run,
    pub(crate) now: Time,
    pub(crate) log: Vec<Recorded>,
}

impl Story {
    /// Creates the relay, with additional settings at its end.
    pub(crate) fn relay(more: &str) -> Self {
        let workflow: Workflow = toml::from_str(&format!("{RELAY}{more}")).expect("a workflow");
        let run = RunId(Uuid::from_u128(7));
        let created = RunCreated::new(run, Arc::new(workflow), "Add user auth", "test");
        let now = Time(1_000_000);
        let mut log = Vec::new();
        number(&mut log, now, Run::begin(now, created));
        Story { run: Run::replay(&log).expect("a run"), now, log }
    }

    pub(crate) fn input(&mut self, input: Input) -> &mut Self {
        let events = self.run.decide(self.now, input).events;
        number(&mut self.log, self.now, events);
        self.run = Run::replay(&self.log).expect("a run");
        self
    }

    pub(crate) fn later(&mut self, ms: i64) -> &mut Self {
        self.now = Time(self.now.0 + ms);
        self
    }

    /// The agent with the turn accepts it.
    pub(crate) fn receipt(&mut self) -> &mut Self {
        let turn = self.run.outbox().next().expect("a turn").key;
        self.input(Input::Receipt { turn, receipt: Receipt::Delivered })
    }

    /// The agent with the turn hands the work on.
    pub(crate) fn pass(&mut self, to: &str, reason: Reason) -> &mut Self {
        let order = self.run.outbox().next().expect("a turn");
        let from = Party::from(&order.agent);
        let offer = Offer::new(from.clone(), to.into(), Kind::Transfer, reason);
        self.finish(vec![offer], Outcome::Resolved)
    }

    /// The agent with the turn completes it.
    pub(crate) fn done(&mut self, outcome: Outcome) -> &mut Self {
        self.finish(Vec::new(), outcome)
    }

    fn finish(&mut self, offers: Vec<Offer>, outcome: Outcome) -> &mut Self {
        let order = self.run.outbox().next().expect("a turn");
        let mut response = Response::new(Party::from(&order.agent), outcome);
        response.outputs.insert("made".into(), "something".into());
        let usage = Usage::exactly(100, Usd(2_000));
        let result = TurnResult { offers, usage, ..TurnResult::new(response) };
        self.input(Input::Finish { turn: order.key, result: Box::new(result) })
    }

    /// The agent with the turn fails.
    pub(crate) fn breaks(&mut self, message: &str) -> &mut Self {
        let turn = self.run.outbox().next().expect("a turn").key;
        let failure = Failure::new(FailureKind::Fatal, message);
        self.input(Input::Fail { turn, failure, usage: Usage::default() })
    }

    /// The whole example of the coordination protocol.
    pub(crate) fn example() -> Self {
        let mut story = Story::relay("");
        let way = [
            ("builder", Reason::TaskHandoff),
            ("reviewer", Reason::ReviewRequest),
            ("fixer", Reason::FixRequest),
            ("reviewer", Reason::RereviewRequest),
        ];
        for (to, reason) in way {
            story.later(20).receipt().later(1_000).pass(to, reason);
        }
        story.later(20).receipt().later(1_000).done(Outcome::Resolved);
        story
    }

    pub(crate) fn stored(&self) -> Vec<stafette_engine::Stored> {
        let stored = |recorded: &Recorded| stafette_engine::Stored {
            position: recorded.seq,
            run: self.run.id,
            entry: stafette_engine::Entry {
                seq: recorded.seq,
                at: recorded.at,
                name: recorded.event.name().to_owned(),
                handoff: recorded.event.handoff(),
                body: serde_json::to_string(&recorded.event).expect("JSON"),
            },
        };
        self.log.iter().map(stored).collect()
    }

    pub(crate) fn seen(&self) -> Vec<Arc<Seen>> {
        self.stored().into_iter().map(|stored| Arc::new(Seen::from(stored))).collect()
    }

    /// Returns the state, and each fact with its position.
    pub(crate) fn shown(&self) -> (Shown, Vec<(u64, Time, Fact)>) {
        let (mut shown, mut facts) = (Shown::default(), Vec::new());
        for seen in self.seen() {
            let at = seen.at();
            shown.apply(&seen, |fact| facts.push((seen.position, at, fact.clone())));
        }
        (shown, facts)
    }
}

fn number(log: &mut Vec<Recorded>, at: Time, events: Vec<Event>) {
    for event in events {
        log.push(Recorded { seq: log.len() as u64 + 1, at, event });
    }
}
