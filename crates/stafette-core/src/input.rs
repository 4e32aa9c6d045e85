//! Inputs: the only way to change a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::handoff::Receipt;
use crate::run::budget::Grant;
use crate::run::message::Way;
use crate::run::session::SessionState;
use crate::run::tell::TurnReport;
use crate::team::{Said, TeamInput};
use crate::{
    AgentName, Fields, HandoffId, MessageId, Millis, Offer, Party, Question, Response, Time,
    TurnKey, Usage,
};

/// An input to a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Time has passed; everything that is due is handled.
    Tick,
    /// A process took this run over: at its start, after a crash, on another machine.
    Adopt {
        /// The name of the process.
        by: String,
    },
    /// The clock went forward at once: the machine slept, or somebody set it.
    ClockJumped {
        /// The time that was skipped.
        by: Millis,
    },
    /// The delivery of a turn made progress.
    Receipt {
        /// The turn that was delivered.
        turn: TurnKey,
        /// The new progress of the delivery.
        receipt: Receipt,
    },
    /// An external agent claims a turn that is not started here.
    Take {
        /// The turn to claim.
        turn: TurnKey,
        /// The name of the external agent.
        by: String,
        /// The longest interval between its signs of life; `None` means the usual one.
        lease: Option<Millis>,
    },
    /// An agent reports offers, an answer or usage through its own channel.
    Tell {
        /// The turn in which it reports.
        turn: TurnKey,
        /// The content of the report.
        told: Box<TurnReport>,
    },
    /// An agent asks for permission during its turn.
    Ask {
        /// The turn in which it asks.
        turn: TurnKey,
        /// The agent's own id of the request.
        request: String,
        /// The question for a person.
        question: Question,
    },
    /// A permission request waits for no person any more: it was answered at the agent, or has
    /// expired there.
    Settle {
        /// The turn in which the agent asked.
        turn: TurnKey,
        /// The agent's own id of the request.
        request: String,
        /// The option that was taken in place of an answer; `None` if there is none.
        choice: Option<String>,
    },
    /// The state of an agent's process changed.
    Session {
        /// The agent that the process belongs to.
        agent: AgentName,
        /// The new state of the process.
        state: SessionState,
        /// Details for people, such as the last screen.
        note: String,
    },
    /// An agent is alive.
    Heartbeat {
        /// The turn that the agent works on.
        turn: TurnKey,
        /// The agent's description of its current activity.
        note: Option<String>,
    },
    /// An agent ended its turn.
    Finish {
        /// The turn that ended.
        turn: TurnKey,
        /// The result of the turn.
        result: Box<TurnResult>,
    },
    /// A turn failed before it had a result.
    Fail {
        /// The turn that failed.
        turn: TurnKey,
        /// The cause of the failure.
        failure: Failure,
        /// The usage until the failure.
        usage: Usage,
    },
    /// A handoff is proposed outside a turn.
    Propose {
        /// The handoff that is proposed.
        offer: Box<Offer>,
    },
    /// A person answers a question.
    Answer {
        /// The handoff that asks the question.
        handoff: HandoffId,
        /// The answer as values by name.
        values: Fields,
        /// The answer as free text.
        text: String,
        /// The name of the person.
        by: String,
    },
    /// A question needs a later deadline because no one can answer in time.
    Postpone {
        /// The handoff that asks the question.
        handoff: HandoffId,
        /// The new deadline for the answer.
        until: Time,
        /// The reason for the extension.
        why: String,
    },
    /// A person or an agent sends a message to an agent.
    Send {
        /// The agent that it is for.
        to: AgentName,
        /// `human`, or the agent that sends it.
        from: Party,
        /// The name of the person; empty for an agent.
        by: String,
        /// The text of the message.
        text: String,
    },
    /// An agent's program was given messages during its turn.
    Deliver {
        /// The turn that the agent works on.
        turn: TurnKey,
        /// The messages that it was given.
        messages: Vec<MessageId>,
        /// The moment at which it was given them.
        way: Way,
    },
    /// An agent's output showed a control frame that anything printed can imitate. It changes
    /// nothing: people see it, and the agent is told if nothing else came of its turn.
    Printed {
        /// The turn whose output it was in.
        turn: TurnKey,
        /// The content of the frame.
        frame: PrintedFrame,
    },
    /// An error that people must see.
    Alert {
        /// The alert code, in UPPER_SNAKE case.
        code: String,
        /// The description, in a sentence.
        message: String,
    },
    /// Allows the run to spend more.
    RaiseBudget(Grant),
    /// Pauses the run: no new turns are ordered.
    Pause {
        /// The name of the requester.
        by: String,
    },
    /// Continues the run after a pause.
    Unpause {
        /// The name of the requester.
        by: String,
    },
    /// Cancels the run and all its open handoffs.
    Cancel {
        /// The name of the requester.
        by: String,
        /// The reason for the cancellation.
        why: String,
    },
    /// An input for a coordinator.
    #[serde(untagged)]
    Team(TeamInput),
}

/// The result of a turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnResult {
    /// The answer to the handoff that was worked on.
    pub response: Response,
    /// The handoffs that the agent proposes.
    #[serde(default)]
    pub offers: Vec<Offer>,
    /// The resources that the turn used.
    #[serde(default)]
    pub usage: Usage,
    /// A fingerprint of the current work: a round of a loop that leaves it the same changed
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Additional data for its coordinator.
    #[serde(flatten)]
    pub said: Said,
    /// True if the offers were read from plain output, which any printed file can imitate.
    #[serde(default)]
    pub bare: bool,
    /// The agent's turn ended without a handoff, a result or a question: nobody knows its outcome.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

impl TurnResult {
    /// Creates a result with this answer and no offers.
    #[must_use]
    pub fn new(response: Response) -> Self {
        TurnResult {
            response,
            offers: Vec::new(),
            usage: Usage::default(),
            fingerprint: None,
            said: Said::default(),
            bare: false,
            unanswered: false,
        }
    }
}

/// A control frame in plain output that is only shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrintedFrame {
    /// It reports an error.
    Error {
        /// The code of the error, in UPPER_SNAKE case.
        code: String,
        /// The error, in a sentence.
        message: String,
    },
    /// It cannot be read.
    Unreadable {
        /// The reason, with the beginning of the frame.
        reason: String,
    },
}

/// The failure of a turn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The kind of failure, which decides the next action.
    pub kind: FailureKind,
    /// The description, in a sentence.
    pub message: String,
    /// The earliest useful time for a retry, for [`FailureKind::Quota`] and if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Failure {
    /// Creates a failure without a time for a retry.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into(), until: None }
    }

    /// Creates a failure for an agent that cannot work before `until`.
    pub fn quota(until: Option<Time>, message: impl Into<String>) -> Self {
        Failure { until, ..Failure::new(FailureKind::Quota, message) }
    }
}

/// The kind of failure, which decides the next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A retry may succeed.
    Recoverable,
    /// A retry would fail in the same way: a person must look at it.
    Fatal,
    /// The agent's quota is used up; it is restored automatically.
    Quota,
    /// The output cannot be parsed: retried, unless the agent has reported its answer through its
    /// own channel, because then its output does not count.
    Invalid,
}
