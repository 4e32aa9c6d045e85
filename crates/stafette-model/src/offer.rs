//! What parties offer and answer each other: one unit of work, in no particular dialect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trace::Traceparent;
use crate::{Fields, Millis, Party, Usage, fields};

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

impl Foreign {
    fn size(&self) -> usize {
        length([&self.dialect, &self.id]) + fields::size(&self.fields)
    }
}

/// Returns the length of all texts, in bytes.
fn length<'a>(texts: impl IntoIterator<Item = &'a String>) -> usize {
    texts.into_iter().map(String::len).sum()
}

/// A question to a person.
// Only the kernel knows what an answer can decide (`A`), so that no dialect has to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Question", bound = "A: JsonSchema + Serialize + Default")]
pub struct Question<A: Default> {
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
    pub about: A,
    /// The format for the requested values, such as `competitors=A,B size=1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer_with: String,
}

impl<A: Default> Question<A> {
    fn size(&self) -> usize {
        let texts = [&self.reason, &self.details, &self.context, &self.answer_with];
        length(texts) + length(&self.options) + length(&self.default)
    }
}

/// A proposed handoff: a request in any dialect, translated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Offer", bound = "A: JsonSchema + Serialize + Default")]
pub struct Offer<A: Default> {
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
    pub question: Option<Question<A>>,
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

impl<A: Default> Offer<A> {
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

    /// Returns the approximate size of everything that it says, in bytes.
    pub fn size(&self) -> usize {
        let missing = self.missing.iter().map(|input| {
            length([&input.key, &input.expected_type, &input.description]) + length(&input.source)
        });
        // Those that the kernel adds are short, and no reason to refuse what was admitted before.
        let prior = self.prior_attempts.iter().filter(|prior| prior.tried.is_none());
        let prior = prior.map(|prior| length([&prior.action, &prior.result]));
        length([&self.detail, &self.summary])
            + length(self.item.iter().chain(&self.instructions).chain(&self.objections))
            + fields::size(&self.outputs)
            + missing.chain(prior).sum::<usize>()
            + self.question.as_ref().map_or(0, Question::size)
            + self.foreign.as_ref().map_or(0, Foreign::size)
    }

    /// True if it names a target, and says nothing about the work.
    pub fn is_bare(&self) -> bool {
        self.detail.is_empty()
            && self.summary.is_empty()
            && self.instructions.is_none()
            && self.outputs.is_empty()
            && self.missing.is_empty()
            && self.question.is_none()
    }

    /// True if both say the same about the work.
    pub fn says_the_same(&self, other: &Self) -> bool
    where
        A: PartialEq,
    {
        self.detail == other.detail
            && self.summary == other.summary
            && self.instructions == other.instructions
            && self.outputs == other.outputs
            && self.missing == other.missing
            && self.question == other.question
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

impl Outcome {
    /// Returns the outcome that an agent gives its work, in any case: `resolved`, `partial` or `failed`.
    pub fn read(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "resolved" => Some(Outcome::Resolved),
            "partial" => Some(Outcome::Partial),
            "failed" => Some(Outcome::Failed),
            _ => None,
        }
    }
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
    /// The question that it answers, if a person was asked one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
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
            question: None,
            foreign: None,
        }
    }

    /// Returns the approximate size of everything that it says besides its values, in bytes.
    pub fn words(&self) -> usize {
        let lists = self.unresolved.iter().chain(&self.recommendations);
        length(lists.chain(&self.failure).chain(&self.question).chain([&self.summary]))
            + self.foreign.as_ref().map_or(0, Foreign::size)
    }

    /// Returns the approximate size of everything that it says, in bytes.
    pub fn size(&self) -> usize {
        fields::size(&self.outputs) + self.words()
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
