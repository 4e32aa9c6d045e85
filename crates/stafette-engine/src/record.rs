//! Written besides the events: a row for the run, rows for the handoffs that changed, and a
//! snapshot from time to time.

use crate::{CouncilView, PhasesView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::run::budget::{self, Purse};
use stafette_core::run::propose::HandoffRefused;
use stafette_core::run::{Status, Tally};
use stafette_core::team::order::{Leftover, Order};
use stafette_core::workflow::Runner;
use stafette_core::{Event, Handoff, HandoffId, Recorded, Run, RunId, State, Time};
use stafette_store::{Batch, Entry, HandoffRow, RunRow, Snapshot};

/// Opening a run never replays more events than this, plus those of one step.
const SNAPSHOT_EVERY: u64 = 256;

/// A run as people and programs see it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// The id of the run.
    pub run: RunId,
    /// The name of the run's workflow.
    pub workflow: String,
    /// The request of the user.
    pub request: String,
    /// The status of the run, as one word.
    pub status: String,
    /// True while nothing of it is started: it waits until somebody continues it, or its events are
    /// damaged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The reason why it waits; `None` when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<String>,
    /// The reason why it ended; `None` while it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// True while what its agents left in their worktrees is made into a change, after its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collecting: bool,
    /// What its agents left in their worktrees and is in no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Box<Leftover>>,
    /// The number of the generation of its team; `None` when it is not a generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// The names of the agents at work.
    pub working: Vec<String>,
    /// The names of agents that connect by themselves, and have not taken the turn yet that waits
    /// for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    /// The sequence number of its last event.
    pub seq: u64,
    /// The start time of the run, in UTC.
    pub created_at: String,
    /// The time of its last change, in UTC.
    pub updated_at: String,
    /// Handoffs that wait for the budget, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// Counts of handoffs, refusals, attempts and other events.
    pub tally: Tally,
    /// Money and tokens: limits and consumption.
    pub purse: Purse,
    /// The progress through its phases; `None` when its workflow has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhasesView>,
    /// The state of its council; `None` when none has met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub council: Option<CouncilView>,
}

/// A handoff whose next turn is due but waits.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// The id of the handoff.
    pub handoff: HandoffId,
    /// The agent whose turn it would be.
    pub agent: String,
    /// The reason for the wait, in a sentence.
    pub why: String,
}

fn held(run: &Run) -> Vec<Held> {
    let one = |handoff: &Handoff| {
        let why = budget::waits_because(run, handoff)?;
        Some(Held { handoff: handoff.id, agent: handoff.offer.to.to_string(), why })
    };
    run.open().filter_map(one).collect()
}

/// True if `run` has ended, and its outcome is still to be collected.
pub(crate) fn is_collecting(run: &Run) -> bool {
    run.status().is_final() && run.orders().contains(&Order::Collect)
}

impl RunView {
    /// True if the run has ended, successfully or not.
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "succeeded" | "failed" | "cancelled")
    }

    /// The view of the same run while nothing of it is started: nobody is at work.
    #[must_use]
    pub(crate) fn stopped(mut self) -> Self {
        self.stopped = true;
        self.working.clear();
        if self.status == Status::Running.word() {
            "stopped".clone_into(&mut self.status);
        }
        self
    }

    /// Builds the view of `run`.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let status = run.status();
        let ending = match &run.stage {
            stafette_core::run::Stage::Finished(ending) => Some(ending.why.clone()),
            _ => None,
        };
        RunView {
            run: run.id,
            workflow: run.workflow.workflow.name.clone(),
            request: run.request.clone(),
            status: status.word().to_owned(),
            stopped: false,
            waiting_on: status.waiting_on().map(str::to_owned),
            why: ending,
            collecting: is_collecting(run),
            left: run.team.left.clone(),
            generation: run.team.lineage.as_ref().map(|lineage| lineage.number),
            working: turns(run, |handoff| !is_offered(run, handoff)),
            offered: turns(run, |handoff| is_offered(run, handoff)),
            seq: run.seq,
            created_at: run.created_at.rfc3339(),
            updated_at: run.updated_at.rfc3339(),
            held: held(run),
            tally: run.tally.clone(),
            purse: run.purse.clone(),
            phases: PhasesView::of(run),
            council: CouncilView::of(run),
        }
    }
}

/// The agents of the turns that are out, as far as they are asked for.
fn turns(run: &Run, asked: impl Fn(&Handoff) -> bool) -> Vec<String> {
    let out = run.open().filter(|handoff| handoff.state.turn().is_some() && asked(handoff));
    out.map(|handoff| handoff.offer.to.to_string()).collect()
}

/// True if a turn waits for an agent that connects by itself, and has not taken it yet.
pub(crate) fn is_offered(run: &Run, handoff: &Handoff) -> bool {
    let agent = run.workflow.agent(&handoff.offer.to);
    matches!(handoff.state, State::Ordered(_))
        && agent.is_some_and(|(_, agent)| agent.runner == Runner::External)
}

/// A handoff as people and programs see it: admitted, or refused with the rule.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HandoffView {
    /// A handoff that a rule refused.
    Refused(Box<HandoffRefused>),
    /// A handoff that was admitted.
    Admitted(Box<Handoff>),
}

pub(crate) fn batch(
    expected_seq: u64,
    events: &[Recorded],
    changed: &[HandoffId],
    next: &Run,
) -> Batch {
    Batch {
        run: next.id,
        expected_seq,
        entries: events.iter().map(entry).collect(),
        row: row(next),
        handoffs: handoffs(events, changed, next),
        snapshot: snapshot(expected_seq, next),
    }
}

pub(crate) fn entry(recorded: &Recorded) -> Entry {
    Entry {
        seq: recorded.seq,
        at: recorded.at,
        name: recorded.event.name().to_owned(),
        handoff: recorded.event.handoff(),
        body: recorded.event.to_json(),
    }
}

fn row(run: &Run) -> RunRow {
    let view = RunView::of(run);
    RunRow {
        run: run.id,
        title: view.request.clone(),
        status: view.status.clone(),
        waiting_on: view.waiting_on.clone(),
        seq: run.seq,
        created_at: run.created_at,
        updated_at: run.updated_at,
        // A run that has orders left is taken over by the next process.
        finished_at: run.is_settled().then_some(run.updated_at),
        body: json(&view),
        workflow: view.workflow,
    }
}

fn handoffs(events: &[Recorded], changed: &[HandoffId], next: &Run) -> Vec<HandoffRow> {
    let admitted = changed.iter().filter_map(|id| next.handoff(*id)).map(|h| admitted(next, h));
    let refused = events.iter().filter_map(|recorded| match &recorded.event {
        Event::HandoffRefused(event) => Some(refused(next.id, recorded.at, event)),
        _ => None,
    });
    admitted.chain(refused).collect()
}

fn admitted(run: &Run, handoff: &Handoff) -> HandoffRow {
    let closed_at = match &handoff.state {
        State::Closed(closing) => Some(closing.at),
        _ => None,
    };
    HandoffRow {
        run: run.id,
        id: handoff.id,
        from: handoff.offer.from.to_string(),
        to: handoff.offer.to.to_string(),
        reason: handoff.offer.reason.as_str().to_owned(),
        state: handoff.state.word().to_owned(),
        question: matches!(handoff.state, State::Asked { .. }),
        opened_at: handoff.admitted_at,
        updated_at: run.updated_at,
        closed_at,
        body: handoff.to_json(),
    }
}

fn refused(run: RunId, at: Time, event: &HandoffRefused) -> HandoffRow {
    HandoffRow {
        run,
        id: event.id,
        from: event.offer.from.to_string(),
        to: event.offer.to.to_string(),
        reason: event.offer.reason.as_str().to_owned(),
        state: "refused".to_owned(),
        question: false,
        opened_at: at,
        updated_at: at,
        closed_at: Some(at),
        body: json(event),
    }
}

fn snapshot(before: u64, run: &Run) -> Option<Snapshot> {
    let due = before / SNAPSHOT_EVERY != run.seq / SNAPSHOT_EVERY;
    due.then(|| Snapshot { seq: run.seq, body: run.to_json() })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our own types are JSON")
}
