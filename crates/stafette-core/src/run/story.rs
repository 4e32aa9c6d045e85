//! A test harness that describes what happens to a run: inputs in, a transcript out.
//!
//! After every step the harness checks the invariants: replaying the events gives the same state,
//! events survive being stored, and nothing open is without a deadline.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::budget::Forecast;
use super::create::RunCreated;
use super::{Decision, Run, Status};
use crate::handoff::{Closing, Question, Receipt, State};
use crate::workflow::file;
use crate::{
    Event, Failure, FailureKind, Fields, HandoffId, Input, Kind, Millis, Offer, Outcome, Party,
    Reason, Recorded, Reply, Response, RunId, TeamEvent, Time, TurnKey, TurnResult, Usage, Usd,
    Workflow,
};

/// Planner → builder → reviewer ⇄ fixer, with room for two full loops.
pub(crate) const RELAY: &str = include_str!("../../../../fixtures/workflows/relay.toml");

pub(crate) struct Story {
    pub(crate) run: Run,
    pub(crate) now: Time,
    pub(crate) log: Vec<Recorded>,
}

pub(crate) fn h(number: u32) -> HandoffId {
    HandoffId(number)
}

pub(crate) fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

pub(crate) fn pass(to: &str) -> Offer {
    Offer::new(Party::from("?"), to.into(), Kind::Transfer, Reason::TaskHandoff)
}

pub(crate) fn ask(to: &str) -> Offer {
    let offer = Offer::new("?".into(), to.into(), Kind::Delegate, Reason::MissingRequiredInput);
    Offer { summary: "What is it?".into(), ..offer }
}

impl Story {
    pub(crate) fn new(workflow: &str) -> Self {
        Self::given(workflow, Fields::new())
    }

    /// Creates a story whose run has these inputs from the start.
    pub(crate) fn given(workflow: &str, inputs: Fields) -> Self {
        let workflow = file::parse(workflow).expect("a workflow");
        let forecasts = Some(free(&workflow));
        let run = RunId(Uuid::nil());
        let created = RunCreated::new(run, Arc::new(workflow), "Add user auth", "test");
        let created = RunCreated { inputs, forecasts, ..created };
        let now = Time(0);
        let events = Run::begin(now, created);
        let mut story = Story {
            run: Run::replay(&number(0, now, events.clone())).expect("a run"),
            now,
            log: number(0, now, events),
        };
        story.check();
        story
    }

    /// Makes the current run the beginning, after a test has changed it directly.
    pub(crate) fn restart(&mut self) {
        let (now, id) = (self.now, RunId(Uuid::from_u128(9)));
        let events = self.run.fork(now, id, "test".into()).expect("it goes on");
        *self = Story::from_events(now, events);
    }

    /// Creates a story that begins with these events.
    pub(crate) fn from_events(now: Time, events: Vec<Event>) -> Self {
        let log = number(0, now, events);
        let mut story = Story { run: Run::replay(&log).expect("a run"), now, log };
        story.check();
        story
    }

    /// Creates a story from RELAY with additional settings.
    pub(crate) fn relay_with(more: &str) -> Self {
        Self::new(&format!("{RELAY}{more}"))
    }

    pub(crate) fn input(&mut self, input: impl Into<Input>) -> &mut Self {
        self.reply(input);
        self
    }

    /// Feeds an input and returns the reply.
    pub(crate) fn reply(&mut self, input: impl Into<Input>) -> Reply {
        let input = input.into();
        let ticks = input == Input::Tick;
        let Decision { events, reply, next } = self.run.decide(self.now, input);
        self.run = next;
        let from = self.log.len() as u64;
        self.log.extend(number(from, self.now, events));
        self.check();
        let due = self.run.deadline();
        assert!(!ticks || due.is_none_or(|due| due > self.now), "a tick leaves nothing due");
        reply
    }

    fn check(&mut self) {
        let stored = serde_json::to_string(&self.log).expect("events are JSON");
        let read: Vec<Recorded> = serde_json::from_str(&stored).expect("JSON is events");
        let replayed = Run::replay(&read).expect("a run");
        assert_eq!(replayed, self.run, "the replayed run is the one that lived");
        assert_eq!(self.run.seq, self.log.len() as u64);
        let snapshot = serde_json::to_string(&self.run).expect("a run is JSON");
        assert_eq!(serde_json::from_str::<Run>(&snapshot).expect("JSON is a run"), self.run);
        let undecided = self.run.open().any(crate::Handoff::is_undecided);
        assert!(!undecided, "a step decides about everything that it touches");
        if !self.run.status().is_final() {
            assert!(self.run.deadline().is_some(), "everything that waits has a deadline");
        }
        let out: Usage = self
            .run
            .open()
            .filter_map(|h| h.state.turn())
            .fold(Usage::default(), |sum, turn| sum + turn.reserved);
        assert_eq!(self.run.purse.reserved, out, "only what is out is set aside");
    }

    pub(crate) fn key(&self, id: HandoffId) -> TurnKey {
        self.run.handoff(id).expect("a handoff").key(self.run.id)
    }

    pub(crate) fn accept(&mut self, id: HandoffId) -> &mut Self {
        let turn = self.key(id);
        self.input(Input::Receipt { turn, receipt: Receipt::Acknowledged })
    }

    pub(crate) fn heartbeat(&mut self, id: HandoffId) -> &mut Self {
        let turn = self.key(id);
        self.input(Input::Heartbeat { turn, note: None })
    }

    /// The agent accepts, works and hands on.
    pub(crate) fn hands(&mut self, id: HandoffId, offers: Vec<Offer>) -> &mut Self {
        self.ends(id, TurnResult { offers, ..done() })
    }

    /// The agent accepts, works and is done.
    pub(crate) fn done(&mut self, id: HandoffId) -> &mut Self {
        self.ends(id, done())
    }

    /// The agent answers with these values.
    pub(crate) fn answers(&mut self, id: HandoffId, outcome: Outcome, outputs: Value) -> &mut Self {
        let response =
            Response { outputs: fields(outputs), ..Response::new(Party::Orchestrator, outcome) };
        self.ends(id, TurnResult { response, ..done() })
    }

    pub(crate) fn ends(&mut self, id: HandoffId, result: TurnResult) -> &mut Self {
        self.accept(id);
        let turn = self.key(id);
        self.input(Input::Finish { turn, result: Box::new(result) })
    }

    pub(crate) fn breaks(&mut self, id: HandoffId, kind: FailureKind) -> &mut Self {
        self.breaks_with(id, Failure::new(kind, "it broke"))
    }

    pub(crate) fn breaks_with(&mut self, id: HandoffId, failure: Failure) -> &mut Self {
        let turn = self.key(id);
        self.input(Input::Fail { turn, failure, usage: Usage::default() })
    }

    pub(crate) fn person_says(&mut self, id: HandoffId, text: &str) -> &mut Self {
        let (values, by) = (Fields::new(), "ada".into());
        self.input(Input::Answer { handoff: id, values, text: text.into(), by })
    }

    /// Time passes, and the timer fires.
    pub(crate) fn later(&mut self, span: Millis) -> &mut Self {
        self.now = self.now + span;
        self.input(Input::Tick)
    }

    /// Time passes until the next deadline.
    pub(crate) fn until_due(&mut self) -> &mut Self {
        self.now = self.run.deadline().expect("a deadline").max(self.now);
        self.input(Input::Tick)
    }

    pub(crate) fn state(&self, id: HandoffId) -> &'static str {
        self.run.handoff(id).expect("a handoff").state.word()
    }

    pub(crate) fn status(&self) -> Status {
        self.run.status()
    }

    pub(crate) fn question(&self, id: HandoffId) -> Question {
        self.run.handoff(id).and_then(|h| h.offer.question.clone()).expect("a question")
    }

    pub(crate) fn closing(&self, id: HandoffId) -> Closing {
        match &self.run.handoff(id).expect("a handoff").state {
            State::Closed(closing) => (**closing).clone(),
            other => panic!("{id} is open: {other:?}"),
        }
    }

    /// Returns the events, one line each.
    pub(crate) fn transcript(&self) -> String {
        self.log.iter().map(|recorded| line(&recorded.event) + "\n").collect()
    }
}

pub(crate) fn done() -> TurnResult {
    TurnResult::new(Response::new(Party::Orchestrator, Outcome::Resolved))
}

/// Returns forecasts of zero cost, so that no agent waits for another.
pub(crate) fn free(workflow: &Workflow) -> BTreeMap<String, Forecast> {
    let names = workflow.agents.keys();
    names.map(|name| (name.to_string(), Forecast::Known(Usage::default()))).collect()
}

pub(crate) fn costing(dollars: f64) -> Usage {
    Usage::exactly(0, Usd::from_dollars(dollars).expect("an amount"))
}

fn number(from: u64, at: Time, events: Vec<Event>) -> Vec<Recorded> {
    (from + 1..).zip(events).map(|(seq, event)| Recorded { seq, at, event }).collect()
}

fn line(event: &Event) -> String {
    match event {
        Event::RunCreated(e) => format!("run created: {}", e.request),
        Event::RunForked(e) => format!("forked from event {}", e.after),
        Event::RunAdopted(e) => format!("run adopted, redelivered {:?}", e.redelivered),
        Event::RunPaused(_) => "run paused".into(),
        Event::RunUnpaused(_) => "run unpaused".into(),
        Event::RunFinished(e) => format!("run {}: {}", e.ending.status, e.ending.why),
        Event::HandoffAdmitted(e) => format!(
            "{} {} → {} ({})",
            e.id,
            e.offer.from,
            e.offer.to,
            e.offer.question.as_ref().map_or(e.offer.reason.as_str(), |q| q.reason.as_str())
        ),
        Event::HandoffRefused(e) => {
            format!("{} {} → {} refused: {}", e.id, e.offer.from, e.offer.to, e.refusal)
        }
        Event::HandoffBlocked(e) => format!("{} waits for {:?}", e.handoff, e.on),
        Event::HandoffResumed(e) => format!("{} goes on", e.handoff),
        Event::HandoffClosed(e) => match e.succeeded_by.as_slice() {
            [_, ..] if e.response.outcome == Outcome::Failed => {
                format!("{} {:?}, {:?} instead", e.handoff, e.response.outcome, e.succeeded_by)
            }
            _ => format!("{} {:?} by {}", e.handoff, e.response.outcome, e.response.by),
        },
        Event::InputsAssessed(e) => format!(
            "{} can start: {} ({}), missing {:?}",
            e.handoff, e.can_handle, e.confidence, e.missing
        ),
        Event::TurnOrdered(e) => {
            format!("{} turn {}.{} ordered", e.turn.handoff, e.turn.attempt, e.turn.turn)
        }
        Event::ReceiptGiven(e) => format!("{} {:?}", e.turn.handoff, e.receipt).to_lowercase(),
        Event::SessionChanged(e) => format!("{} is {:?}", e.agent, e.state).to_lowercase(),
        Event::TurnTaken(e) => format!("{} taken by {}", e.turn.handoff, e.taken.by),
        Event::TurnTold(e) => format!("{} told {} offers", e.turn.handoff, e.told.offers.len()),
        Event::PermitGiven(e) => format!("{} may: {}", e.turn.handoff, e.permit.choice),
        Event::LeaseRenewed(e) => format!("{} lives", e.turn.handoff),
        Event::TurnFinished(e) => format!("{} turn ended", e.turn.handoff),
        Event::TurnFailed(e) => format!("{} turn failed: {}", e.turn.handoff, e.failure.message),
        Event::RetryScheduled(e) => format!("{} attempt {} later", e.handoff, e.attempt),
        Event::QuestionPostponed(e) => format!("{} more time: {}", e.handoff, e.why),
        Event::HandoffOverdue(e) => format!("{} is overdue", e.handoff),
        Event::HandoffParked(e) => format!("{} parked until {}: {}", e.handoff, e.until, e.why),
        Event::LateResultKept(e) => {
            format!("{} late result of {}.{} kept", e.turn.handoff, e.turn.attempt, e.turn.turn)
        }
        Event::RecoveryChosen(e) => format!("{} recovery: {:?}", e.handoff, e.action),
        Event::QuestionAnswered(e) => format!("{} answered: {}", e.handoff, e.answer.text),
        Event::BudgetReached(e) => format!("budget reached: {}", e.why),
        Event::BudgetRaised(e) => format!("budget raised to {}", e.limit.money),
        Event::AlertRaised(e) => format!("alert {}: {}", e.code, e.message),
        Event::FrameIgnored(e) => format!("{} ignored a frame: {}", e.turn.handoff, e.reason),
        Event::MessageSent(e) => format!("{} {} → {}: {}", e.id, e.from, e.to, e.text),
        Event::MessageDelivered(e) => {
            format!("{:?} delivered to {}, {:?}", e.messages, e.turn.handoff, e.way)
        }
        Event::MessageUnread(e) => format!("{:?} unread", e.messages),
        Event::Team(event) => team_line(event),
    }
}

fn team_line(event: &TeamEvent) -> String {
    match event {
        TeamEvent::PhaseBegun(e) => format!("{} phase begins, {:?}", e.phase, e.parts),
        TeamEvent::PhaseEnded(e) => format!("{:?}: {}", e.decision, e.why),
        TeamEvent::TurnMeasured(e) => format!("{} measured", e.turn.handoff),
        TeamEvent::ChangeProposed(e) => {
            format!("{} proposed, revision {}", e.set.change, e.set.revision)
        }
        TeamEvent::ChangeCommented(e) => format!("{} commented: {}", e.change, e.comment.text),
        TeamEvent::ChangeReturned(e) => format!("{} goes back with {:?}", e.change, e.handoff),
        TeamEvent::ChangeOrdered(e) => format!("{} to {:?}", e.change, e.work).to_lowercase(),
        TeamEvent::ChangeSettled(e) => {
            format!("{} {}{}", e.change, if e.unchanged { "stays " } else { "" }, e.status.as_str())
        }
        TeamEvent::OrderDone(e) => match &e.left {
            Some(left) => format!("done: {:?}; {}", e.order, left.told()),
            None => format!("done: {:?}", e.order),
        },
        TeamEvent::CouncilOpened(e) => format!("{} council on: {}", e.handoff, e.topic),
        TeamEvent::CouncilHeard(e) => format!(
            "{} {} says {}",
            e.handoff,
            e.member,
            e.vote.as_ref().map_or("nothing", |vote| vote.signal.as_str())
        ),
        TeamEvent::CouncilConcluded(e) => format!("{} {}", e.handoff, e.verdict.why),
        TeamEvent::CouncilReopened(e) => format!("{} council speaks on", e.handoff),
        TeamEvent::NoteLeft(e) => format!("{} notes: {}", e.by, e.text),
        TeamEvent::GenerationHandedOver(e) => {
            format!("generation {} handed over: {:?}, {}", e.number, e.action, e.why)
        }
    }
}
