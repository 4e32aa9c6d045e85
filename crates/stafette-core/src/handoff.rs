//! A handoff: one piece of work on its way from one party to another.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run::permission::Permit;
use crate::run::tell::TurnReport;
use crate::team::TeamAbout;
use crate::trace::Traceparent;
use crate::{Fields, HandoffId, Millis, Party, Time, TurnKey, Usage};

/// What happens to the giver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The baton moves on: the giver's own work is done.
    Transfer,
    /// The giver waits for the answer and goes on with it.
    Delegate,
}

/// Why work is handed over. The first five are the contract's, the next six the messages', the last
/// one the frames'.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Something that the giver needs is not there.
    MissingRequiredInput,
    /// A check did not hold.
    ValidationFailure,
    /// Someone else is better at it.
    ExpertiseMismatch,
    /// The giver ran out of something.
    ResourceExhausted,
    /// A person must choose.
    RequiresHumanDecision,
    /// Pass a specification for implementation.
    TaskHandoff,
    /// Ask for a review.
    ReviewRequest,
    /// Ask for repairs.
    FixRequest,
    /// Ask for another review after repairs.
    RereviewRequest,
    /// A part of the work is complete.
    Completion,
    /// A person is needed.
    Escalation,
    /// The next stage of a line takes over.
    Stage,
    /// A reason of a coordinator's, or of the workflow's own.
    #[serde(untagged)]
    Other(String),
}

impl Reason {
    /// The word on the wire.
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

/// How urgent it is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// When there is time.
    Low,
    /// As usual.
    #[default]
    Medium,
    /// Before the usual.
    High,
    /// Before everything.
    Critical,
}

/// An input that the giver lacks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissingInput {
    /// Its name.
    pub key: String,
    /// What it should look like.
    pub expected_type: String,
    /// What it is.
    pub description: String,
    /// Where it comes from: `external`, `market`, `user`, `decision`, a document or an earlier step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Something that was tried before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PriorAttempt {
    /// Which try it was.
    pub attempt: u32,
    /// What was done.
    pub action: String,
    /// What came of it.
    pub result: String,
    /// The party that was tried, where recovery tried it: only the kernel says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Party>,
}

/// What a dialect says that the model has no place for, kept so that nothing is lost on the way
/// back.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Foreign {
    /// Which dialect, by the name that it has under `wire/`.
    pub dialect: String,
    /// The id that the other side knows it by.
    pub id: String,
    /// The rest, under the dialect's own names.
    pub fields: Fields,
}

/// A question to a person.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Question {
    /// One word for why it is asked.
    pub reason: String,
    /// The question itself.
    pub details: String,
    /// Answers to choose from; free text is always possible.
    pub options: Vec<String>,
    /// Where it came up.
    pub context: String,
    /// Whether the asker waits.
    pub blocking: bool,
    /// How long to wait before `default` is taken.
    pub within: Option<Millis>,
    /// The answer when nobody gives one.
    pub default: Option<String>,
    /// What the answer decides.
    pub about: About,
    /// How to say the values that are asked for, such as `competitors=A,B size=1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer_with: String,
}

/// What the answer to a question decides.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// It fills in these inputs of the asker (none named: a single one called `answer`).
    #[default]
    Inputs,
    /// What becomes of a handoff that failed: retry, skip or stop; anything else is the result.
    Recovery(HandoffId),
    /// What becomes of a loop that went round too often, or changed nothing: accept or stop;
    /// anything else is advice for another round.
    Loop(HandoffId),
    /// Whether handoffs that were only read off plain output are meant: allow or refuse.
    Confirm(HandoffId, Box<crate::TurnResult>),
    /// Whether an agent may do what it asks for in the middle of its turn.
    Permission(TurnKey, String),
    /// Whether the run may spend more: raise, an amount, or stop.
    Budget,
    /// Something that a coordinator asks.
    #[serde(untagged)]
    Team(TeamAbout),
}

/// A handoff as somebody proposes it: a request in any dialect, translated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// Who gives.
    pub from: Party,
    /// Who is to take.
    pub to: Party,
    /// Whether the giver waits.
    pub kind: Kind,
    /// Why.
    pub reason: Reason,
    /// Why, in a sentence.
    #[serde(default)]
    pub detail: String,
    /// The work item that limits are counted by; nothing means the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// How urgent.
    #[serde(default)]
    pub priority: Priority,
    /// What the taker should know first.
    #[serde(default)]
    pub summary: String,
    /// What the taker should do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What the giver hands along: evidence, artefacts, values.
    #[serde(default)]
    pub outputs: Fields,
    /// What the giver wants back.
    #[serde(default)]
    pub missing: Vec<MissingInput>,
    /// What was tried before.
    #[serde(default)]
    pub prior_attempts: Vec<PriorAttempt>,
    /// How long the whole handoff may take, accepted or not. For a person it bounds the `escalated`
    /// answer, which is given immediately; the question has a time of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// The question, when a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What only the dialect knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Foreign>,
    /// What speaks against it, found by whoever looked at it on its way in: it is refused for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<String>,
    /// What the giver did it in, in a trace of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Traceparent>,
}

impl Offer {
    /// The plainest offer between two parties.
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

/// How a piece of work came out, in the contract's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Done.
    #[default]
    Resolved,
    /// Done in part.
    Partial,
    /// Not done.
    Failed,
    /// A person has it now.
    Escalated,
}

/// The answer to a handoff: a response in any dialect, translated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Who answers.
    pub by: Party,
    /// How it came out.
    pub outcome: Outcome,
    /// What is provided.
    #[serde(default)]
    pub outputs: Fields,
    /// What could not be provided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<String>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recommendations: Vec<String>,
    /// In a few sentences.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// How long it took.
    #[serde(default)]
    pub took: Millis,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
    /// What only the dialect knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Foreign>,
}

impl Response {
    /// An answer with nothing but its outcome.
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

    /// The orchestrator's answer when it cannot be done.
    #[must_use]
    pub fn failed(failure: impl Into<String>) -> Self {
        Response {
            failure: Some(failure.into()),
            ..Self::new(Party::Orchestrator, Outcome::Failed)
        }
    }
}

/// A turn that has been given out and has not come back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// When it was given out.
    pub ordered_at: Time,
    /// When the next sign of life is due: acceptance first, then the lease.
    pub due: Time,
    /// When it must have ended.
    pub finish_by: Time,
    /// What was set aside for it.
    pub reserved: Usage,
    /// How often it was delivered, counting again after each restart.
    pub deliveries: u32,
    /// How far it got.
    #[serde(default)]
    pub receipt: Receipt,
    /// What the agent last said it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who has it, when that is somebody from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

/// In whose hands a turn is that nobody here carries out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// Who has it.
    pub by: String,
    /// How often they show up.
    pub lease: Millis,
}

/// How far a turn got on its way into the agent, the same on every transport.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// It is given out.
    #[default]
    Queued,
    /// The agent's process has it.
    Delivered,
    /// The agent has demonstrably taken it in.
    Ingested,
    /// The agent says so itself.
    Acknowledged,
}

/// Where a handoff stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Admitted; its next turn is given out when nothing holds it back.
    Pending {
        /// Not before this: cooldown or backoff.
        not_before: Time,
    },
    /// The agent's quota is used up; its next turn is given out when it is not.
    Parked {
        /// When that should be.
        until: Time,
    },
    /// Its turn is given out, and nobody has taken it yet.
    Ordered(Turn),
    /// The agent has taken it.
    Accepted(Turn),
    /// The agent has shown that it works on it.
    Running(Turn),
    /// Its turn has ended, and the rest of the same step decides what follows. Never the end of a
    /// step.
    Undecided,
    /// It waits for other handoffs.
    Blocked {
        /// Those that are still open.
        on: Vec<HandoffId>,
    },
    /// A person has been asked.
    Asked {
        /// When the default is taken, or the handoff expires.
        until: Time,
    },
    /// It is over.
    Closed(Box<Closing>),
}

/// How a handoff ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Closing {
    /// When.
    pub at: Time,
    /// With which answer.
    pub response: Response,
    /// Which way.
    pub way: Way,
}

/// Which way a handoff ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Somebody answered.
    Answered,
    /// Nobody answered in time.
    Expired,
    /// It was called off.
    Cancelled,
}

impl State {
    /// The word that people see.
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

    /// When its next turn may be given out, if that is what it waits for.
    #[must_use]
    pub fn not_before(&self) -> Option<Time> {
        match self {
            State::Pending { not_before: moment } | State::Parked { until: moment } => {
                Some(*moment)
            }
            _ => None,
        }
    }

    /// The turn that is out, if one is.
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

    /// Whether it is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, State::Closed(_))
    }
}

/// How far a request has come: who had it, and how often round which declared loops. Bounded by the
/// workflow: nobody is listed twice, and there is one lap for each loop.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trail {
    /// Everyone who has held the request, oldest first; a way round a loop is listed as none.
    pub held_by: Vec<Party>,
    /// The loop that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// How often it has gone round each loop so far.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub laps: BTreeMap<String, Lap>,
}

impl Trail {
    /// The lap of the loop that it is in.
    #[must_use]
    pub fn lap(&self) -> Option<&Lap> {
        self.laps.get(self.within.as_ref()?)
    }

    pub(crate) fn lap_mut(&mut self) -> Option<&mut Lap> {
        self.laps.get_mut(self.within.as_ref()?)
    }
}

/// How often a request has gone round a declared loop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lap {
    /// Who was in it first: each return to them begins a round.
    pub head: Party,
    /// Counts from 1.
    pub round: u32,
    /// Whether the work is out with a member, to come back as an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub away: bool,
    /// How often each member has had the work.
    pub visits: BTreeMap<Party, u32>,
    /// What the work looked like when each member last passed it on, to notice a round that
    /// changed nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<Party, String>,
}

impl Lap {
    /// The work comes to `party`.
    pub(crate) fn visit(&mut self, party: &Party) {
        *self.visits.entry(party.clone()).or_default() += 1;
        if *party == self.head {
            self.round += 1;
        }
    }
}

/// What holds for a handoff because a coordinator gave it out. Nothing does for any other handoff.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Constraints {
    /// It begins with what it is given: neither the inputs nor the trail of its cause belong to it, and
    /// it is no repetition.
    pub fresh: bool,
    /// Only its taker can do it: nobody is tried instead, and it counts against no limit.
    pub fixed_taker: bool,
    /// Its taker answers for it: what the taker hands on, it waits for.
    pub keeps: bool,
    /// When it cannot be done, the work goes on without it.
    pub optional: bool,
}

impl Constraints {
    /// Whether nothing special holds.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Constraints::default()
    }
}

/// A handoff with all that has become of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// Its name within the run.
    pub id: HandoffId,
    /// What was asked.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// The handoff that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_to: Option<HandoffId>,
    /// Where it stands.
    pub state: State,
    /// Which try, from 1.
    pub attempt: u32,
    /// Which turn, from 1; 0 before the first.
    pub turn: u32,
    /// How many turns it may have before a person is asked.
    pub turn_limit: u32,
    /// What the taker has to work with.
    pub inputs: Fields,
    /// Answers that came back to it since its last turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Response>,
    /// What it was allowed and refused in the turn that is out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permits: Vec<Permit>,
    /// What its agent has told in the turn that is out.
    #[serde(default)]
    pub told: TurnReport,
    /// Answers of those who had it before and could not give all of it: what they gave counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gathered: Vec<Response>,
    /// When it has to be answered, where its document says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Whether each use of its path is followed by the cooldown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cools: bool,
    /// What holds for it because a coordinator gave it out.
    #[serde(default, skip_serializing_if = "Constraints::is_none")]
    pub constraints: Constraints,
    /// How often its own proposals were refused.
    #[serde(default)]
    pub refusals: u32,
    /// The needs that were already asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assessed: Vec<String>,
    /// How far the request has come.
    pub trail: Trail,
    /// When it was admitted.
    pub admitted_at: Time,
    /// What it has used so far.
    #[serde(default)]
    pub usage: Usage,
}

impl Handoff {
    /// The key of the turn that is out, or was last.
    #[must_use]
    pub fn key(&self, run: crate::RunId) -> TurnKey {
        TurnKey { run, handoff: self.id, attempt: self.attempt, turn: self.turn }
    }

    /// Whether it is still open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.state.is_closed()
    }

    /// Whether a step ended before it was decided what follows; older releases had no state of its own
    /// for that.
    pub(crate) fn is_undecided(&self) -> bool {
        match &self.state {
            State::Undecided => true,
            State::Blocked { on } => on.is_empty(),
            _ => false,
        }
    }

    /// A value that the taker was given.
    #[must_use]
    pub fn input(&self, key: &str) -> Option<&Value> {
        self.inputs.get(key)
    }
}
