//! A handoff: one unit of work passed from one party to another.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run::permission::Permit;
use crate::run::tell::TurnReport;
use crate::team::TeamAbout;
use crate::trace::Traceparent;
use crate::{Fields, HandoffId, Millis, Party, Time, TurnKey, Usage};

/// The effect of a handoff on its giver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The baton moves on: the giver's own work is done.
    Transfer,
    /// The giver waits for the answer and continues with it.
    Delegate,
}

/// The reason for handing work over. The first five come from the contract, the next six from the
/// messages, the last one from the frames.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The giver lacks a required input.
    MissingRequiredInput,
    /// A check of the work failed.
    ValidationFailure,
    /// Another agent is better suited to the work.
    ExpertiseMismatch,
    /// The giver ran out of a resource, such as budget or context.
    ResourceExhausted,
    /// A person must choose.
    RequiresHumanDecision,
    /// Passes a specification on for implementation.
    TaskHandoff,
    /// Asks for a review.
    ReviewRequest,
    /// Asks for fixes after a review.
    FixRequest,
    /// Asks for another review after the fixes.
    RereviewRequest,
    /// A part of the work is complete.
    Completion,
    /// A person is needed.
    Escalation,
    /// The next stage of a pipeline takes over.
    Stage,
    /// A reason defined by a coordinator or by the workflow.
    #[serde(untagged)]
    Other(String),
}

impl Reason {
    /// Returns the reason as it is written on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Reason::MissingRequiredInput => "missing_required_input",
            Reason::ValidationFailure => "validation_failure",
            Reason::ExpertiseMismatch => "expertise_mismatch",
            Reason::ResourceExhausted => "resource_exhausted",
            Reason::RequiresHumanDecision => "requires_human_decision",
            Reason::TaskHandoff => "task_handoff",
            Reason::ReviewRequest => "review_request",
            Reason::FixRequest => "fix_request",
            Reason::RereviewRequest => "rereview_request",
            Reason::Completion => "completion",
            Reason::Escalation => "escalation",
            Reason::Stage => "stage",
            Reason::Other(word) => word,
        }
    }
}

/// The urgency of a piece of work, for its taker and for planning. It does not change the order of
/// turns.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Can wait for other work.
    Low,
    /// The usual urgency, which is the default.
    #[default]
    Medium,
    /// More urgent than usual.
    High,
    /// The most urgent of all.
    Critical,
}

/// An input that the giver lacks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissingInput {
    /// The name of the input.
    pub key: String,
    /// The expected type of the value, such as `string`, `number` or `string[]`.
    pub expected_type: String,
    /// A description of the input for the taker.
    pub description: String,
    /// The origin of the input: `external`, `market`, `user`, `decision`, a document or an earlier
    /// step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// An earlier attempt at the same work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PriorAttempt {
    /// The number of the attempt.
    pub attempt: u32,
    /// The action that was taken.
    pub action: String,
    /// The outcome of the attempt.
    pub result: String,
    /// The party that recovery tried. Only the kernel sets this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Party>,
}

/// Data of a dialect that the model has no field for, kept so that nothing is lost when translating
/// back.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Foreign {
    /// The dialect, by its name under `wire/`.
    pub dialect: String,
    /// The id that the other side uses.
    pub id: String,
    /// The remaining fields, under the dialect's own names.
    pub fields: Fields,
}

/// A question to a person.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Question {
    /// The reason for asking, as one word.
    pub reason: String,
    /// The question as the person reads it.
    pub details: String,
    /// Suggested answers; free text is always possible.
    pub options: Vec<String>,
    /// The situation in which the question arose.
    pub context: String,
    /// True if the asker waits for the answer.
    pub blocking: bool,
    /// The time to wait before `default` is taken.
    pub within: Option<Millis>,
    /// The answer that is used if none arrives in time.
    pub default: Option<String>,
    /// The decision that the answer makes.
    pub about: About,
    /// The format for the requested values, such as `competitors=A,B size=1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer_with: String,
}

/// The decision that the answer to a question makes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Fills in the asker's missing inputs (if none are named, a single one called `answer`).
    #[default]
    Inputs,
    /// Decides how to handle a failed handoff: retry, skip or stop; any other text is taken as the
    /// result.
    Recovery(HandoffId),
    /// Decides how to handle a loop that ran too often or changed nothing: accept or stop; any
    /// other text is advice for another round.
    Loop(HandoffId),
    /// Confirms handoffs that were only inferred from plain output: allow or refuse.
    Confirm(HandoffId, Box<crate::TurnResult>),
    /// Decides whether an agent may perform an action that it asks for during its turn.
    Permission(TurnKey, String),
    /// Decides whether the run may spend more: raise, an amount, or stop.
    Budget,
    /// A question asked by a coordinator.
    #[serde(untagged)]
    Team(TeamAbout),
}

/// A proposed handoff: a request in any dialect, translated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// The party that hands the work over.
    pub from: Party,
    /// The party that should take the work.
    pub to: Party,
    /// Whether the giver waits for the answer.
    pub kind: Kind,
    /// The reason for the handoff, as a code.
    pub reason: Reason,
    /// The reason for the handoff, in a sentence.
    #[serde(default)]
    pub detail: String,
    /// The work item that limits are counted against; `None` means the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The urgency of the handoff.
    #[serde(default)]
    pub priority: Priority,
    /// The context that the taker should read first.
    #[serde(default)]
    pub summary: String,
    /// The task for the taker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Data that the giver passes along: evidence, artefacts, values.
    #[serde(default)]
    pub outputs: Fields,
    /// The inputs that the giver wants back.
    #[serde(default)]
    pub missing: Vec<MissingInput>,
    /// Earlier attempts at the same work.
    #[serde(default)]
    pub prior_attempts: Vec<PriorAttempt>,
    /// The time limit for the whole handoff, accepted or not. For a person it bounds the
    /// `escalated` answer, which is given immediately; the question has a time limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// The question, if the taker is a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Data that only the dialect understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Foreign>,
    /// Objections raised by the checks on the way in; the offer is refused if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<String>,
    /// The span of the giver's own trace in which the offer was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Traceparent>,
}

impl Offer {
    /// Creates an offer between two parties with defaults for everything else.
    #[must_use]
    pub fn new(from: Party, to: Party, kind: Kind, reason: Reason) -> Self {
        Offer {
            from,
            to,
            kind,
            reason,
            detail: String::new(),
            item: None,
            priority: Priority::default(),
            summary: String::new(),
            instructions: None,
            outputs: Fields::new(),
            missing: Vec::new(),
            prior_attempts: Vec::new(),
            timeout: None,
            question: None,
            foreign: None,
            objections: Vec::new(),
            trace: None,
        }
    }
}

/// The result of a piece of work, in the contract's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The work is done.
    #[default]
    Resolved,
    /// Part of the work is done.
    Partial,
    /// The work is not done.
    Failed,
    /// The work was passed to a person.
    Escalated,
}

/// The answer to a handoff: a response in any dialect, translated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The party that answers.
    pub by: Party,
    /// The result of the work.
    pub outcome: Outcome,
    /// The values that are provided.
    #[serde(default)]
    pub outputs: Fields,
    /// The names of the inputs that could not be provided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<String>,
    /// The cause, if the work failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Suggested next steps for the asker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recommendations: Vec<String>,
    /// A summary in a few sentences.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The duration of the work.
    #[serde(default)]
    pub took: Millis,
    /// The resources that the work used.
    #[serde(default)]
    pub usage: Usage,
    /// Data that only the dialect understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Foreign>,
}

impl Response {
    /// Creates an answer with nothing but its outcome.
    #[must_use]
    pub fn new(by: Party, outcome: Outcome) -> Self {
        Response {
            by,
            outcome,
            outputs: Fields::new(),
            unresolved: Vec::new(),
            failure: None,
            recommendations: Vec::new(),
            summary: String::new(),
            took: Millis(0),
            usage: Usage::default(),
            foreign: None,
        }
    }

    /// Creates the orchestrator's answer for work that cannot be done.
    #[must_use]
    pub fn failed(failure: impl Into<String>) -> Self {
        Response {
            failure: Some(failure.into()),
            ..Self::new(Party::Orchestrator, Outcome::Failed)
        }
    }
}

/// A turn that was ordered and has not been completed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// The time at which the turn was ordered.
    pub ordered_at: Time,
    /// The deadline for the next sign of life: acceptance first, then the lease.
    pub due: Time,
    /// The deadline for the end of the turn.
    pub finish_by: Time,
    /// The budget that is reserved for the turn.
    pub reserved: Usage,
    /// The number of deliveries, counted anew after each restart.
    pub deliveries: u32,
    /// The progress of the delivery.
    #[serde(default)]
    pub receipt: Receipt,
    /// The agent's latest description of its activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The external agent that claimed the turn, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

/// An external agent's claim on a turn that no local agent carries out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// The name of the external agent.
    pub by: String,
    /// The longest interval between two of its signs of life.
    pub lease: Millis,
}

/// The progress of a turn's delivery to the agent, the same on every transport.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// The turn is ordered.
    #[default]
    Queued,
    /// The agent's process has received it.
    Delivered,
    /// There is evidence that the agent has read it.
    Ingested,
    /// The agent has confirmed it.
    Acknowledged,
}

/// The state of a handoff.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Admitted; its next turn is ordered as soon as nothing prevents it.
    Pending {
        /// The earliest time for the next turn: cooldown or backoff.
        not_before: Time,
    },
    /// The agent's quota is used up; the next turn is ordered when it is restored.
    Parked {
        /// The time at which the quota should be restored.
        until: Time,
    },
    /// Its turn is ordered, and no agent has accepted it yet.
    Ordered(Turn),
    /// The agent has accepted the turn.
    Accepted(Turn),
    /// The agent has shown that it works on the turn.
    Running(Turn),
    /// Its turn has ended, and the rest of the same step decides what follows. No step ends in this
    /// state.
    Undecided,
    /// Waits for other handoffs.
    Blocked {
        /// The handoffs that are still open.
        on: Vec<HandoffId>,
    },
    /// A person was asked.
    Asked {
        /// The time at which the default is taken or the handoff expires.
        until: Time,
    },
    /// The handoff has ended.
    Closed(Box<Closing>),
}

/// The end of a handoff.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Closing {
    /// The time of the end.
    pub at: Time,
    /// The answer that closed it.
    pub response: Response,
    /// The way in which it ended.
    pub way: Way,
}

/// The way in which a handoff ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The taker or a person answered.
    Answered,
    /// No answer arrived in time.
    Expired,
    /// The handoff was cancelled.
    Cancelled,
}

impl State {
    /// Returns the name of the state as shown to people.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            State::Pending { .. } | State::Ordered(_) => "pending",
            State::Parked { .. } => "parked",
            State::Accepted(_) => "accepted",
            State::Running(_) => "running",
            State::Undecided | State::Blocked { .. } => "blocked",
            State::Asked { .. } => "asked",
            State::Closed(closing) => match (closing.way, closing.response.outcome) {
                (Way::Expired, _) => "expired",
                (Way::Cancelled, _) => "cancelled",
                (Way::Answered, Outcome::Resolved) => "resolved",
                (Way::Answered, Outcome::Partial) => "partial",
                (Way::Answered, Outcome::Failed) => "failed",
                (Way::Answered, Outcome::Escalated) => "escalated",
            },
        }
    }

    /// Returns the earliest time for the next turn, if the handoff waits for it.
    #[must_use]
    pub fn not_before(&self) -> Option<Time> {
        match self {
            State::Pending { not_before: moment } | State::Parked { until: moment } => {
                Some(*moment)
            }
            _ => None,
        }
    }

    /// Returns the open turn, if there is one.
    #[must_use]
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            State::Ordered(turn) | State::Accepted(turn) | State::Running(turn) => Some(turn),
            _ => None,
        }
    }

    pub(crate) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            State::Ordered(turn) | State::Accepted(turn) | State::Running(turn) => Some(turn),
            _ => None,
        }
    }

    /// True if the handoff has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, State::Closed(_))
    }
}

/// The path of a request: the parties that held it, and the rounds in each declared loop. Bounded
/// by the workflow: no party is listed twice, and there is one lap per loop.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trail {
    /// All parties that have held the request, oldest first; rounds of a loop add no entries.
    pub held_by: Vec<Party>,
    /// The loop that the request is in, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The progress in each loop so far, by the loop's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub laps: BTreeMap<String, Lap>,
}

impl Trail {
    /// Returns the lap of the current loop.
    #[must_use]
    pub fn lap(&self) -> Option<&Lap> {
        self.laps.get(self.within.as_ref()?)
    }

    pub(crate) fn lap_mut(&mut self) -> Option<&mut Lap> {
        self.laps.get_mut(self.within.as_ref()?)
    }
}

/// The progress of a request in a declared loop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lap {
    /// The party that entered the loop first: each return to it begins a round.
    pub head: Party,
    /// The number of the round, from 1.
    pub round: u32,
    /// True if the work was delegated to a member and will return as an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub away: bool,
    /// The number of times that each member has received the work.
    pub visits: BTreeMap<Party, u32>,
    /// A fingerprint of the work as each member last passed it on, to detect a round that changed
    /// nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<Party, String>,
}

impl Lap {
    /// Records that the work arrives at `party`.
    pub(crate) fn visit(&mut self, party: &Party) {
        *self.visits.entry(party.clone()).or_default() += 1;
        if *party == self.head {
            self.round += 1;
        }
    }
}

/// Special rules for a handoff that a coordinator created. No other handoff has any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Constraints {
    /// The handoff starts fresh: it inherits neither inputs nor trail from its cause, and it does
    /// not count as a repetition.
    pub fresh: bool,
    /// Only the given taker can do it: no replacement is tried, and it counts against no limit.
    pub fixed_taker: bool,
    /// The taker stays responsible: the handoff waits for everything that the taker hands on.
    pub keeps: bool,
    /// If it cannot be done, the work continues without it.
    pub optional: bool,
}

impl Constraints {
    /// True if no special rule applies.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Constraints::default()
    }
}

/// A handoff with its complete state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// The id of the handoff, unique in the run.
    pub id: HandoffId,
    /// The offer as it was admitted.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// The handoff that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_to: Option<HandoffId>,
    /// The current state, from pending to closed.
    pub state: State,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The number of the latest turn, from 1; 0 before the first.
    pub turn: u32,
    /// The number of turns after which a person is asked.
    pub turn_limit: u32,
    /// The values that the taker can work with.
    pub inputs: Fields,
    /// The answers that arrived since the last turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Response>,
    /// The permissions granted and denied in the open turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permits: Vec<Permit>,
    /// The agent's reports during the open turn.
    #[serde(default)]
    pub told: TurnReport,
    /// The reasons why frames in the output of the open turn could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Partial answers of earlier takers; their outputs still count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gathered: Vec<Response>,
    /// The deadline for the answer, if the document sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// True if each use of its path starts the cooldown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cools: bool,
    /// The special rules set by the coordinator that created it.
    #[serde(default, skip_serializing_if = "Constraints::is_none")]
    pub constraints: Constraints,
    /// The number of its own proposals that were refused.
    #[serde(default)]
    pub refusals: u32,
    /// True once its agent was reminded that its last turn ended without an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reminded: bool,
    /// The needs that were already requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assessed: Vec<String>,
    /// The path of the request so far.
    pub trail: Trail,
    /// The time at which it was admitted.
    pub admitted_at: Time,
    /// The resources used so far.
    #[serde(default)]
    pub usage: Usage,
}

impl Handoff {
    /// Returns the key of the open turn, or of the last one.
    #[must_use]
    pub fn key(&self, run: crate::RunId) -> TurnKey {
        TurnKey { run, handoff: self.id, attempt: self.attempt, turn: self.turn }
    }

    /// True if the handoff has not ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.state.is_closed()
    }

    /// True if a step ended before the next action was decided; older releases had no separate
    /// state for that.
    pub(crate) fn is_undecided(&self) -> bool {
        match &self.state {
            State::Undecided => true,
            State::Blocked { on } => on.is_empty(),
            _ => false,
        }
    }

    /// Returns a value that the taker was given.
    #[must_use]
    pub fn input(&self, key: &str) -> Option<&Value> {
        self.inputs.get(key)
    }
}
