//! State of all open runs, so that an event can be reported with its context: the one fold that
//! metrics, alerts, traces and the event log share.

mod change;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stafette_core::handoff::Way;
use stafette_core::run::session::SessionState;
use stafette_core::trace::Traceparent;
use stafette_core::workflow::Budget;
use stafette_core::workflow::Strategy;
use stafette_core::workflow::alerts::AlertRules;
use stafette_core::workflow::telemetry::Telemetry;
use stafette_core::{
    Event, Failure, Handoff, HandoffId, Offer, Outcome, Party, Response, RunId, State, TeamEvent,
    Time, TurnKey, Usage, Workflow,
};
use stafette_engine::Seen;

pub use change::{ChangeEnded, OpenChange};
use change::{Changes, OverRuns};

/// All runs that have not ended, with their open handoffs and changes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Book {
    runs: BTreeMap<RunId, OpenRun>,
    /// Ended runs with changes that are not settled.
    #[serde(default)]
    over: OverRuns,
}

/// A run that has not ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenRun {
    pub workflow: Arc<str>,
    pub request: String,
    pub began: Time,
    /// Receiver of its trace.
    pub telemetry: Telemetry,
    /// Span of the caller that started the run, in the caller's trace.
    #[serde(default)]
    pub asked_in: Option<Traceparent>,
    pub limit: Budget,
    /// Usage of all turns so far.
    pub spent: Usage,
    /// Open handoffs, by id.
    pub handoffs: BTreeMap<HandoffId, OpenHandoff>,
    pub sessions: BTreeMap<String, SessionState>,
    #[serde(default)]
    changes: Changes,
}

/// A handoff that has not ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenHandoff {
    /// Constant properties of the handoff.
    pub about: Arc<About>,
    pub state: Phase,
    /// True once an agent or a person has accepted it.
    pub accepted: bool,
    /// Turn that is given out, and when.
    pub turn: Option<(TurnKey, Time)>,
}

/// Phase of an open handoff.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The next turn is to be given out.
    Pending,
    /// The agent's quota is used up.
    Parked,
    /// The turn is given out.
    Ordered,
    /// The agent has accepted the turn.
    Accepted,
    /// The agent works on the turn.
    Running,
    /// The handoff waits for others.
    Blocked,
    Asked,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 7] = [
        Phase::Pending,
        Phase::Parked,
        Phase::Ordered,
        Phase::Accepted,
        Phase::Running,
        Phase::Blocked,
        Phase::Asked,
    ];

    /// Returns the name of the phase.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::Parked => "parked",
            Phase::Ordered => "ordered",
            Phase::Accepted => "accepted",
            Phase::Running => "running",
            Phase::Blocked => "blocked",
            Phase::Asked => "asked",
        }
    }

    fn of(state: &State) -> Self {
        match state {
            State::Parked { .. } => Phase::Parked,
            State::Ordered(_) => Phase::Ordered,
            State::Accepted(_) => Phase::Accepted,
            State::Running(_) => Phase::Running,
            State::Undecided | State::Blocked { .. } => Phase::Blocked,
            State::Asked { .. } => Phase::Asked,
            State::Pending { .. } | State::Closed(_) => Phase::Pending,
        }
    }
}

/// Constant properties of a handoff.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct About {
    /// Run that the handoff belongs to.
    pub run: RunId,
    /// Id of the handoff within the run.
    pub id: HandoffId,
    /// Span of the caller that started the run.
    #[serde(default)]
    pub asked_in: Option<Traceparent>,
    /// Span of the giver, in the giver's own trace.
    #[serde(default)]
    pub given_in: Option<Traceparent>,
    pub workflow: Arc<str>,
    /// Party that gave the work.
    pub from: Party,
    pub to: Party,
    /// Reason code, such as `task_handoff`.
    pub reason: String,
    pub summary: String,
    pub trace_id: String,
    pub cause: Option<HandoffId>,
    /// Keys of the inputs that the giver wants back.
    pub missing: Vec<String>,
    /// Specification that the handoff is about.
    pub spec: Option<String>,
    /// True if it starts another round of a loop.
    pub again: bool,
    pub admitted: Time,
}

impl About {
    /// Returns true for a handoff by an agent or the orchestrator; the user's request does not
    /// count.
    pub fn counts(&self) -> bool {
        self.from != Party::Human
    }
}

/// End of a handoff.
#[derive(Clone, PartialEq, Debug)]
pub struct Closed {
    pub way: Way,
    pub outcome: Outcome,
    pub provided: usize,
    /// Number of inputs that were wanted and not provided.
    pub missing: usize,
    /// Reason of the failure, if it failed.
    pub failure: Option<String>,
}

impl Closed {
    fn of(about: &About, way: Way, response: &Response) -> Self {
        let wanted = about.missing.iter().filter(|key| !response.outputs.contains_key(*key));
        let wanted = wanted.filter(|key| !response.unresolved.contains(key));
        Closed {
            way,
            outcome: response.outcome,
            provided: response.outputs.len(),
            missing: response.unresolved.len() + wanted.count(),
            failure: response.failure.clone(),
        }
    }

    /// Returns the contract's word for the outcome.
    pub fn status(&self) -> &'static str {
        match (self.way, self.outcome) {
            (Way::Expired | Way::Cancelled, _) | (_, Outcome::Failed) => "failed",
            (_, Outcome::Resolved) => "resolved",
            (_, Outcome::Partial) => "partial",
            (_, Outcome::Escalated) => "escalated",
        }
    }
}

/// Something that happened, with its context.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    RunBegan {
        workflow: Arc<str>,
        alerts: Box<AlertRules>,
    },
    RunEnded {
        run: Box<OpenRun>,
        /// Final status, as one word.
        status: &'static str,
        why: String,
    },
    /// A handoff was admitted.
    Made(Arc<About>),
    Refused {
        /// Properties of the refused handoff.
        about: Arc<About>,
        circular: bool,
        rule: String,
        /// Explanation of the rule, as a sentence.
        why: String,
    },
    /// A handoff was accepted for the first time.
    Accepted(Arc<About>),
    /// A handoff has ended.
    Closed(Arc<About>, Closed),
    TurnBegan(Arc<About>, TurnKey),
    TurnEnded {
        about: Arc<About>,
        turn: TurnKey,
        began: Time,
        usage: Usage,
        /// Failure of the turn, if it failed.
        failure: Option<Failure>,
        cancelled: bool,
    },
    ChangeEnded(Box<ChangeEnded>),
    LeaseRenewed,
    /// Another attempt will be made.
    Retried(Arc<About>),
    /// A result came too late.
    Late,
    /// A recovery strategy was chosen.
    Recovered(&'static str),
    /// A run reached a limit of its budget.
    BudgetReached(String),
    /// An agent raised an alert.
    Alerted {
        code: String,
        /// Message of the alert, as a sentence.
        message: String,
    },
}

/// Returns true for events that lead to no fact; their body need not be parsed.
pub fn is_silent(name: &str) -> bool {
    matches!(
        name,
        "run_paused"
            | "run_unpaused"
            | "turn_told"
            | "permit_given"
            | "message_sent"
            | "message_delivered"
            | "message_unread"
            | "inputs_assessed"
            | "frame_ignored"
    )
}

impl Book {
    /// Returns the runs that have not ended.
    pub fn runs(&self) -> impl Iterator<Item = (&RunId, &OpenRun)> {
        self.runs.iter()
    }

    /// Returns an open run.
    pub fn run(&self, run: RunId) -> Option<&OpenRun> {
        self.runs.get(&run)
    }

    /// Returns the trace settings of a run, also of an ended run with unsettled changes.
    pub fn telemetry(&self, run: RunId) -> Option<&Telemetry> {
        let over = || self.over.get(run).map(|over| &over.telemetry);
        self.runs.get(&run).map(|open| &open.telemetry).or_else(over)
    }

    /// Takes in a stored event and returns the facts.
    pub fn hear(&mut self, seen: &Seen) -> Vec<Fact> {
        let (run, at) = (seen.run, seen.at());
        if is_silent(seen.name()) {
            return Vec::new();
        }
        // Events of a newer version are skipped; the others still count.
        seen.event().map_or_else(Vec::new, |event| self.apply(run, at, event))
    }

    /// Takes in an event and returns the facts.
    pub fn apply(&mut self, run: RunId, at: Time, event: &Event) -> Vec<Fact> {
        match event {
            Event::RunCreated(created) => {
                let mut open =
                    OpenRun::new(&created.workflow, &created.request, at, &created.budget);
                open.asked_in = created.trace;
                vec![self.begin(run, open, &created.workflow.alerts)]
            }
            Event::RunForked(forked) => {
                let state = &forked.state;
                let mut open =
                    OpenRun::new(&state.workflow, &state.request, at, &state.purse.limit);
                open.asked_in = state.trace;
                for handoff in state.open() {
                    open.take_over(run, handoff);
                }
                vec![self.begin(run, open, &state.workflow.alerts)]
            }
            Event::RunFinished(finished) => {
                let Some(mut open) = self.runs.remove(&run) else { return Vec::new() };
                let mut facts = open.leave_changes(run, &mut self.over);
                let ending = &finished.ending;
                let (status, why) = (ending.status.word(), ending.why.clone());
                facts.push(Fact::RunEnded { run: Box::new(open), status, why });
                facts
            }
            _ => match self.runs.get_mut(&run) {
                Some(open) => open.apply(run, at, event),
                None => self.over.apply(run, at, event).into_iter().collect(),
            },
        }
    }

    fn begin(&mut self, run: RunId, open: OpenRun, alerts: &AlertRules) -> Fact {
        let workflow = open.workflow.clone();
        self.runs.insert(run, open);
        Fact::RunBegan { workflow, alerts: Box::new(alerts.clone()) }
    }
}

impl OpenRun {
    fn new(workflow: &Workflow, request: &str, began: Time, limit: &Budget) -> Self {
        OpenRun {
            workflow: workflow.workflow.name.as_str().into(),
            request: request.to_owned(),
            began,
            telemetry: workflow.telemetry.clone(),
            asked_in: None,
            limit: limit.clone(),
            spent: Usage::default(),
            handoffs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            changes: Changes::default(),
        }
    }

    /// Takes over a handoff that was open in another run when this one was forked.
    fn take_over(&mut self, run: RunId, handoff: &Handoff) {
        let mut about =
            self.about(run, handoff.id, &handoff.offer, handoff.cause, handoff.admitted_at);
        about.again = false;
        let key = TurnKey { run, ..handoff.key(run) };
        let turn = handoff.state.turn().map(|turn| (key, turn.ordered_at));
        let state = Phase::of(&handoff.state);
        let open = OpenHandoff { about: Arc::new(about), state, accepted: true, turn };
        self.handoffs.insert(handoff.id, open);
    }

    fn about(
        &self,
        run: RunId,
        id: HandoffId,
        offer: &Offer,
        cause: Option<HandoffId>,
        admitted: Time,
    ) -> About {
        let foreign = offer.foreign.as_ref().filter(|foreign| !foreign.id.is_empty());
        let spec = offer.outputs.get("spec").and_then(serde_json::Value::as_str);
        let inherited = || cause.and_then(|id| self.handoffs.get(&id)?.about.spec.clone());
        About {
            run,
            id,
            asked_in: self.asked_in,
            given_in: offer.trace,
            workflow: self.workflow.clone(),
            from: offer.from.clone(),
            to: offer.to.clone(),
            reason: offer.reason.as_str().to_owned(),
            summary: offer.summary.clone(),
            trace_id: foreign
                .map_or_else(|| id.uuid(run).to_string(), |foreign| foreign.id.clone()),
            cause,
            missing: offer.missing.iter().map(|missing| missing.key.clone()).collect(),
            spec: spec.map(str::to_owned).or_else(inherited),
            again: false,
            admitted,
        }
    }

    fn apply(&mut self, run: RunId, at: Time, event: &Event) -> Vec<Fact> {
        match event {
            Event::HandoffAdmitted(admitted) => {
                let (id, offer) = (admitted.id, &admitted.offer);
                let mut about = self.about(run, id, offer, admitted.cause, at);
                let lap = admitted.trail.lap();
                about.again = lap.is_some_and(|lap| lap.round > 1 && lap.head == offer.to);
                let (about, state) = (Arc::new(about), Phase::of(&admitted.state));
                let open = OpenHandoff { about: about.clone(), state, accepted: false, turn: None };
                self.handoffs.insert(id, open);
                vec![Fact::Made(about)]
            }
            Event::HandoffRefused(refused) => {
                let about = self.about(run, refused.id, &refused.offer, refused.cause, at);
                let rule = serde_json::to_value(&refused.refusal).ok();
                let rule = rule.and_then(|rule| Some(rule["rule"].as_str()?.to_owned()));
                vec![Fact::Refused {
                    about: Arc::new(about),
                    circular: refused.refusal.is_circular(),
                    rule: rule.unwrap_or_default(),
                    why: refused.refusal.to_string(),
                }]
            }
            Event::SessionChanged(changed) => {
                match changed.state {
                    SessionState::Ended => self.sessions.remove(changed.agent.as_str()),
                    state => self.sessions.insert(changed.agent.to_string(), state),
                };
                Vec::new()
            }
            Event::RunAdopted(adopted) => {
                for id in &adopted.redelivered {
                    if let Some(open) = self.handoffs.get_mut(id) {
                        open.state = Phase::Ordered;
                    }
                }
                Vec::new()
            }
            Event::BudgetReached(reached) => vec![Fact::BudgetReached(reached.part.clone())],
            Event::BudgetRaised(raised) => {
                self.limit = raised.limit.clone();
                Vec::new()
            }
            Event::AlertRaised(alert) => {
                let (code, message) = (alert.code.clone(), alert.message.clone());
                vec![Fact::Alerted { code, message }]
            }
            Event::Team(TeamEvent::ChangeProposed(_))
            | Event::Team(TeamEvent::ChangeOrdered(_))
            | Event::Team(TeamEvent::ChangeSettled(_)) => {
                self.change(run, at, event).into_iter().collect()
            }
            Event::LateResultKept(_) => vec![Fact::Late],
            Event::RecoveryChosen(chosen) => vec![Fact::Recovered(word(chosen.action))],
            Event::TurnFinished(finished) => {
                self.spent += finished.result.usage;
                self.ended(finished.turn, finished.result.usage, None)
            }
            Event::TurnFailed(failed) => {
                self.spent += failed.usage;
                self.ended(failed.turn, failed.usage, Some(failed.failure.clone()))
            }
            _ => match event.handoff().and_then(|id| self.handoffs.get_mut(&id)) {
                Some(open) => {
                    let facts = open.apply(at, event);
                    if let Event::HandoffClosed(closed) = event {
                        self.handoffs.remove(&closed.handoff);
                    }
                    facts
                }
                None => Vec::new(),
            },
        }
    }

    fn ended(&mut self, turn: TurnKey, usage: Usage, failure: Option<Failure>) -> Vec<Fact> {
        let Some(open) = self.handoffs.get_mut(&turn.handoff) else { return Vec::new() };
        open.state = Phase::Blocked;
        let Some((_, began)) = open.turn.take() else { return Vec::new() };
        let about = open.about.clone();
        vec![Fact::TurnEnded { about, turn, began, usage, failure, cancelled: false }]
    }
}

impl OpenHandoff {
    fn apply(&mut self, at: Time, event: &Event) -> Vec<Fact> {
        let about = self.about.clone();
        match event {
            Event::HandoffBlocked(_) => self.state = Phase::Blocked,
            Event::HandoffResumed(_) => self.state = Phase::Pending,
            Event::HandoffParked(_) => self.state = Phase::Parked,
            Event::RetryScheduled(_) => {
                self.state = Phase::Pending;
                return vec![Fact::Retried(about)];
            }
            Event::TurnOrdered(ordered) => {
                self.state = Phase::Ordered;
                self.turn = Some((ordered.turn, at));
                return vec![Fact::TurnBegan(about, ordered.turn)];
            }
            Event::ReceiptGiven(_) | Event::TurnTaken(_) => {
                self.state = self.state.max(Phase::Accepted);
                if !std::mem::replace(&mut self.accepted, true) {
                    return vec![Fact::Accepted(about)];
                }
            }
            Event::LeaseRenewed(_) => {
                self.state = Phase::Running;
                return vec![Fact::LeaseRenewed];
            }
            Event::HandoffClosed(closed) => {
                let mut facts = Vec::new();
                if let Some((turn, began)) = self.turn.take() {
                    let usage = Usage::default();
                    let about = about.clone();
                    let ended = Fact::TurnEnded {
                        about,
                        turn,
                        began,
                        usage,
                        failure: None,
                        cancelled: true,
                    };
                    facts.push(ended);
                }
                let closed = Closed::of(&about, closed.way, &closed.response);
                facts.push(Fact::Closed(about, closed));
                return facts;
            }
            _ => {}
        }
        Vec::new()
    }
}

fn word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::RetryDifferentTarget => "retry_different_target",
        Strategy::ProceedPartial => "proceed_partial",
        Strategy::Escalate => "escalate",
        Strategy::SkipAndContinue => "skip_and_continue",
        Strategy::FallbackDefault => "fallback_default",
    }
}

#[cfg(test)]
mod tests;
