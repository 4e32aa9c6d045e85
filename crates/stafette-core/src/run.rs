//! A run: one instance of a workflow, from the user's request to its end.
//!
//! Each file below is one transition: the events that it records, the decision that leads to them,
//! and their effect on the state.

pub mod adopt;
pub mod alert;
pub mod answer;
mod arbitrate;
pub mod assess;
pub mod budget;
mod cancel;
pub mod close;
pub mod create;
pub(crate) mod escalate;
pub mod expire;
pub mod fail;
pub mod finish;
pub mod fork;
mod legacy;
pub mod message;
pub mod park;
pub mod pause;
pub mod permission;
pub mod postpone;
pub mod printed;
pub mod propose;
pub mod receipt;
pub mod recover;
pub mod renew;
pub mod resume;
pub mod session;
#[cfg(test)]
pub(crate) mod story;
pub mod take;
pub mod tell;
pub mod turn;
mod whole;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::handoff::State;
use crate::team::order::Order;
use crate::team::{self, Team};
use crate::trace::Traceparent;
use crate::{
    AgentName, Event, Handoff, HandoffId, Ignored, Input, Party, Reason, Recorded, Reply, RunId,
    Time, TurnKey, TurnOrder, Workflow,
};
use budget::Purse;
pub use close::Ending;

/// The number of closed handoffs that a run keeps in memory; the store has them all.
const CLOSED_KEPT: usize = 64;

/// The state of a run. Bounded: the open handoffs, the most recently closed ones, and counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The id of the run.
    pub id: RunId,
    /// The number of events applied so far.
    pub seq: u64,
    /// The workflow that the run follows.
    pub workflow: Arc<Workflow>,
    /// The user's request, word for word.
    pub request: String,
    /// The span of the requester's own trace in which the run was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Traceparent>,
    /// Whether the run is active, paused or finished.
    pub stage: Stage,
    /// The open handoffs, and the most recently closed ones.
    pub handoffs: BTreeMap<HandoffId, Arc<Handoff>>,
    /// The number of the next handoff.
    pub next_handoff: u32,
    /// Counts over the whole run.
    pub tally: Tally,
    /// The last paths taken, for the contract's circularity window.
    pub recent: VecDeque<Step>,
    /// The last use of each path, for the cooldown.
    pub last_use: Vec<PathUse>,
    /// The budget and spending of the run.
    pub purse: Purse,
    /// The state of each agent's process, where there is one to observe.
    #[serde(default)]
    pub sessions: BTreeMap<AgentName, session::SessionState>,
    /// The messages to its agents.
    #[serde(default, skip_serializing_if = "message::Mailbox::is_empty")]
    pub mail: message::Mailbox,
    /// The state of the run's coordinators.
    #[serde(flatten)]
    pub team: Team,
    /// The time at which the run began.
    pub created_at: Time,
    /// The time of the last change.
    pub updated_at: Time,
}

/// The stage of a run's life.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Turns are ordered as usual.
    Active,
    /// No new turns are ordered.
    Paused,
    /// The run has ended.
    Finished(Ending),
}

/// Counts over the whole run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tally {
    /// The handoffs that count against the limit of the run.
    pub handoffs: u32,
    /// The handoffs that count against the limit of each work item.
    pub per_item: BTreeMap<String, u32>,
    /// The proposals that were refused.
    pub refused: u32,
    /// The proposals that were refused because of a cycle.
    pub circular: u32,
    /// The questions asked of people.
    pub escalated: u32,
    /// The attempts after the first.
    pub retries: u32,
    /// The turns delivered again after a restart.
    pub redelivered: u32,
    /// The largest number of rounds that any loop has had.
    pub rounds: u32,
    /// The results that arrived after their turn had ended.
    pub late: u32,
}

/// One step on the path of the work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The party that handed the work over.
    pub from: Party,
    /// The party that took the work.
    pub to: Party,
    /// The reason for the handoff.
    pub reason: Reason,
}

/// The last use of a path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathUse {
    /// The party that handed the work over.
    pub from: Party,
    /// The party that took the work.
    pub to: Party,
    /// The time of the last use.
    pub at: Time,
}

/// The status of a run, as shown to people.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// At least one agent is working.
    Running,
    /// The run waits for a person.
    WaitingForHuman,
    /// The run waits for a larger budget.
    WaitingForBudget,
    /// The run waits for a cooldown or a backoff to end.
    WaitingForCooldown,
    /// The run waits for an agent's quota to be restored.
    WaitingForQuota,
    /// The run was paused.
    Paused,
    /// The run ended successfully.
    Succeeded,
    /// The run ended without success.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl Status {
    /// Returns the name of the status as shown to people.
    pub fn word(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::WaitingForHuman
            | Status::WaitingForBudget
            | Status::WaitingForCooldown
            | Status::WaitingForQuota => "waiting",
            Status::Paused => "paused",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// Returns what a waiting run waits for.
    pub fn waiting_on(self) -> Option<&'static str> {
        match self {
            Status::WaitingForHuman => Some("human"),
            Status::WaitingForBudget => Some("budget"),
            Status::WaitingForCooldown => Some("cooldown"),
            Status::WaitingForQuota => Some("quota"),
            _ => None,
        }
    }

    /// True if the run has ended.
    pub fn is_final(self) -> bool {
        matches!(self, Status::Succeeded | Status::Failed | Status::Cancelled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.waiting_on() {
            Some(on) => write!(f, "waiting for {on}"),
            None => f.write_str(self.word()),
        }
    }
}

impl Run {
    /// Returns the events that follow from `input`. Changes nothing.
    pub fn decide(&self, now: Time, input: Input) -> Decision {
        let mut draft = self.draft(now);
        let reply = draft.take(input);
        let (events, next) = draft.finish();
        Decision { events, reply, next }
    }

    /// Starts a step, for inputs that are decided together. A clock that was set back does not turn
    /// the run's time back.
    pub fn draft(&self, now: Time) -> Draft {
        Draft { run: self.clone(), now: now.max(self.updated_at), events: Vec::new() }
    }

    /// Applies `event` to the state.
    pub fn apply(&mut self, at: Time, event: &Event) {
        self.seq += 1;
        if !matches!(self.stage, Stage::Finished(_)) {
            // Events after the end do not move the time of the end.
            self.updated_at = at;
        }
        match event {
            Event::RunCreated(_) | Event::RunForked(_) => {}
            Event::RunAdopted(e) => e.apply(self, at),
            Event::RunPaused(e) => e.apply(self),
            Event::RunUnpaused(e) => e.apply(self),
            Event::RunFinished(e) => e.apply(self),
            Event::HandoffAdmitted(e) => e.apply(self, at),
            Event::HandoffRefused(e) => e.apply(self),
            Event::HandoffBlocked(e) => e.apply(self),
            Event::HandoffResumed(e) => e.apply(self, at),
            Event::HandoffClosed(e) => e.apply(self, at),
            Event::InputsAssessed(e) => e.apply(self),
            Event::TurnOrdered(e) => e.apply(self, at),
            Event::ReceiptGiven(e) => e.apply(self),
            Event::TurnTaken(e) => e.apply(self),
            Event::SessionChanged(e) => e.apply(self),
            Event::PermitGiven(e) => e.apply(self),
            Event::TurnTold(e) => e.apply(self),
            Event::FrameIgnored(e) => e.apply(self),
            Event::MessageSent(e) => e.apply(self, at),
            Event::MessageDelivered(e) => e.apply(self, at),
            Event::LeaseRenewed(e) => e.apply(self),
            Event::TurnFinished(e) => e.apply(self),
            Event::TurnFailed(e) => e.apply(self),
            Event::RetryScheduled(e) => e.apply(self),
            Event::HandoffParked(e) => e.apply(self),
            Event::LateResultKept(_) => self.tally.late += 1,
            Event::BudgetReached(e) => e.apply(self),
            Event::BudgetRaised(e) => e.apply(self),
            Event::QuestionPostponed(e) => e.apply(self),
            Event::RecoveryChosen(e) => e.apply(self),
            Event::HandoffOverdue(e) => e.apply(self),
            Event::QuestionAnswered(e) => e.apply(self),
            Event::AlertRaised(_) | Event::MessageUnread(_) | Event::Team(_) => {}
        }
        team::apply(self, at, event);
    }

    /// Rebuilds a run from its events; `None` if they do not begin with its creation.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Option<Run> {
        let mut events = events.into_iter();
        let first = events.next()?;
        let mut run = match &first.event {
            Event::RunCreated(created) => Run::new(first.at, created),
            Event::RunForked(forked) => Run::forked(first.at, forked),
            _ => return None,
        };
        for recorded in events {
            run.apply(recorded.at, &recorded.event);
        }
        Some(run)
    }

    /// Returns the turns that should be under way. The engine starts what is missing and stops what
    /// is not listed: nothing else is needed after a crash.
    pub fn outbox(&self) -> impl Iterator<Item = TurnOrder> + '_ {
        self.open().filter_map(|handoff| turn::order(self, handoff))
    }

    /// Returns the turns in the outbox, each with its handoff.
    pub fn turns_out(&self) -> impl Iterator<Item = (TurnKey, &Handoff)> + '_ {
        let out = |handoff: &&Handoff| handoff.state.turn().is_some();
        self.open().filter(out).map(|handoff| (handoff.key(self.id), handoff))
    }

    /// Returns one order of the outbox; `None` if that turn is not open.
    pub fn order(&self, key: TurnKey) -> Option<TurnOrder> {
        let handoff = self.handoff(key.handoff).filter(|_| self.is_current(key))?;
        turn::order(self, handoff)
    }

    /// Returns the work besides turns that should be under way, also after the end of the run. The
    /// engine starts what it has not started yet.
    pub fn orders(&self) -> Vec<Order> {
        team::orders(self)
    }

    /// True if the run has ended and nothing more is to be done for it.
    pub fn is_settled(&self) -> bool {
        self.status().is_final() && self.orders().is_empty()
    }

    /// Returns the latest time for the next [`Input::Tick`].
    pub fn deadline(&self) -> Option<Time> {
        if self.status().is_final() {
            return None;
        }
        let over_budget = self.open_budget_question().is_some();
        let held = self.stage == Stage::Paused || over_budget;
        self.open()
            .filter_map(|handoff| match &handoff.state {
                State::Pending { .. } | State::Parked { .. } => {
                    let held = held
                        || budget::waits_for_others(self, handoff)
                        || team::holds_back(self, handoff);
                    propose::ready_at(self, handoff).filter(|_| !held)
                }
                State::Asked { until } => Some(*until),
                state => state.turn().map(|turn| {
                    let due = permission::due(self, handoff);
                    due.map_or(turn.finish_by, |due| due.min(turn.finish_by))
                }),
            })
            .chain(self.open().filter_map(|handoff| handoff.deadline))
            .chain((!over_budget).then(|| self.out_of_time()))
            .min()
    }

    /// Returns the status of the run.
    pub fn status(&self) -> Status {
        match &self.stage {
            Stage::Finished(ending) => return ending.status,
            Stage::Paused => return Status::Paused,
            Stage::Active => {}
        }
        if self.open().any(|handoff| handoff.state.turn().is_some()) {
            return Status::Running;
        }
        if self.open_budget_question().is_some() {
            return Status::WaitingForBudget;
        }
        let pending = |handoff: &Handoff| matches!(handoff.state, State::Pending { .. });
        if self.open().any(pending) {
            return Status::WaitingForCooldown;
        }
        if self.open().any(|handoff| matches!(handoff.state, State::Parked { .. })) {
            return Status::WaitingForQuota;
        }
        if self.open().any(|handoff| matches!(handoff.state, State::Asked { .. })) {
            return Status::WaitingForHuman;
        }
        Status::Running
    }

    /// Returns the open handoffs, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Handoff> + '_ {
        self.handoffs.values().map(|handoff| &**handoff).filter(|handoff| handoff.is_open())
    }

    /// Returns a handoff that is open or was closed recently.
    pub fn handoff(&self, id: HandoffId) -> Option<&Handoff> {
        self.handoffs.get(&id).map(|handoff| &**handoff)
    }

    /// True if `turn` is the open turn of its handoff.
    pub(crate) fn is_current(&self, turn: TurnKey) -> bool {
        turn.run == self.id
            && self
                .handoff(turn.handoff)
                .is_some_and(|h| h.state.turn().is_some() && h.key(self.id) == turn)
    }

    pub(crate) fn handoff_mut(&mut self, id: HandoffId) -> Option<&mut Handoff> {
        self.handoffs.get_mut(&id).map(Arc::make_mut)
    }

    fn open_budget_question(&self) -> Option<HandoffId> {
        self.open().find(|h| budget::is_budget_question(h)).map(|h| h.id)
    }

    fn out_of_time(&self) -> Time {
        self.created_at + self.purse.limit.time
    }
}

/// The decision about one input.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    pub events: Vec<Event>,
    /// The reply to the sender of the input.
    pub reply: Reply,
    /// The run after the events.
    pub next: Run,
}

/// A step in progress: a copy of the run that already includes everything decided so far, so that
/// one decision can follow from another within a single step.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) run: Run,
    pub(crate) now: Time,
    pub(crate) events: Vec<Event>,
}

impl Draft {
    /// Returns the run with everything decided so far.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the time that the step's events carry.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Decides about one more input.
    pub fn take(&mut self, input: Input) -> Reply {
        if self.run.status().is_final() {
            return after_the_end(self, input);
        }
        let reply = decide(self, input);
        self.advance();
        reply
    }

    /// Returns the events of the step, and the run after them.
    #[must_use]
    pub fn finish(self) -> (Vec<Event>, Run) {
        (self.events, self.run)
    }

    pub(crate) fn record(&mut self, event: Event) {
        self.run.apply(self.now, &event);
        self.events.push(event);
    }

    /// Carries out everything that needs no further input: the orchestrator decides, needs are
    /// assessed, turns are ordered, and a run with nothing open ends.
    fn advance(&mut self) {
        loop {
            let before = self.events.len();
            if self.run.status().is_final() {
                return;
            }
            if self.run.stage == Stage::Active {
                let pending: Vec<HandoffId> = self
                    .run
                    .open()
                    .filter(|h| propose::ready_at(&self.run, h).is_some_and(|at| at <= self.now))
                    .map(|h| h.id)
                    .collect();
                for id in pending {
                    turn::decide(self, id);
                }
            }
            team::advance(self);
            close::finish_if_done(self);
            if self.events.len() == before {
                return;
            }
        }
    }
}

fn decide(draft: &mut Draft, input: Input) -> Reply {
    match input {
        Input::Tick => expire::decide(draft),
        Input::Adopt { by } => adopt::decide(draft, by),
        Input::ClockJumped { by } => adopt::after_a_jump(draft, by),
        Input::Receipt { turn, receipt } => receipt::decide(draft, turn, receipt),
        Input::Take { turn, by, lease } => take::decide(draft, turn, by, lease),
        Input::Tell { turn, told } => tell::decide(draft, turn, *told),
        Input::Ask { turn, request, question } => permission::ask(draft, turn, request, question),
        Input::Settle { turn, request, choice } => {
            permission::settle(draft, turn, &request, choice)
        }
        Input::Session { agent, state, note } => session::decide(draft, agent, state, note),
        Input::Heartbeat { turn, note } => renew::decide(draft, turn, note),
        Input::Finish { turn, result } => finish::decide(draft, turn, *result),
        Input::Fail { turn, failure, usage } => fail::decide(draft, turn, failure, usage),
        Input::Propose { offer } => propose::decide(draft, *offer),
        Input::Answer { handoff, values, text, by } => {
            answer::decide(draft, handoff, answer::Answer { values, text, by })
        }
        Input::Postpone { handoff, until, why } => postpone::decide(draft, handoff, until, why),
        Input::Send { to, from, by, text } => message::send(draft, to, from, by, &text),
        Input::Deliver { turn, messages, way } => message::deliver(draft, turn, messages, way),
        Input::Printed { turn, frame } => printed::decide(draft, turn, frame),
        Input::Alert { code, message } => alert::decide(draft, code, message),
        Input::RaiseBudget(grant) => budget::raise(draft, grant),
        Input::Pause { by } => pause::pause(draft, by),
        Input::Unpause { by } => pause::unpause(draft, by),
        Input::Cancel { by, why } => cancel::decide(draft, &by, &why),
        Input::Team(input) => team::input(draft, input),
    }
}

/// Handles inputs after the end of the run: results are kept as evidence, and the coordinators may
/// have work to finish.
fn after_the_end(draft: &mut Draft, input: Input) -> Reply {
    match input {
        Input::Team(input) => team::input(draft, input),
        Input::Finish { turn, result } => finish::keep_late(draft, turn, *result),
        Input::Cancel { .. } => team::cancel(draft),
        _ => Reply::Ignored(Ignored::Ended),
    }
}
