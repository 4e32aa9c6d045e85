//! What arrives: the only way into a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::handoff::Receipt;
use crate::run::session::SessionState;
use crate::run::tell::TurnReport;
use crate::team::{Said, TeamInput};
use crate::{
    AgentName, Fields, HandoffId, Millis, Offer, Question, Response, Time, TurnKey, Usage, Usd,
};

/// Something that arrived.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Time has passed; whatever was due is due.
    Tick,
    /// A process took this run over: at its start, after a crash, on another machine.
    Adopt {
        /// Who took it.
        by: String,
    },
    /// A turn got so far on its way into the agent.
    Receipt {
        /// Which turn.
        turn: TurnKey,
        /// How far.
        receipt: Receipt,
    },
    /// Somebody from outside takes a turn that nobody here starts.
    Take {
        /// Which turn.
        turn: TurnKey,
        /// Who.
        by: String,
        /// How often they promise to show up, when not as often as everyone.
        lease: Option<Millis>,
    },
    /// An agent says by a channel of its own what it hands on, answers or used.
    Tell {
        /// Which turn.
        turn: TurnKey,
        /// What.
        told: Box<TurnReport>,
    },
    /// An agent asks in the middle of its turn whether it may do something.
    Ask {
        /// Which turn.
        turn: TurnKey,
        /// Its own name for the request.
        request: String,
        /// What it asks.
        question: Question,
    },
    /// An agent's process changed.
    Session {
        /// Whose.
        agent: AgentName,
        /// How it stands now.
        state: SessionState,
        /// What there is to know about it.
        note: String,
    },
    /// An agent is alive.
    Heartbeat {
        /// Which turn.
        turn: TurnKey,
        /// What it says it is doing.
        note: Option<String>,
    },
    /// An agent ended its turn.
    Finish {
        /// Which turn.
        turn: TurnKey,
        /// With what.
        result: Box<TurnResult>,
    },
    /// A turn broke.
    Fail {
        /// Which turn.
        turn: TurnKey,
        /// How.
        failure: Failure,
        /// What it used until then.
        usage: Usage,
    },
    /// Someone outside a turn proposes a handoff.
    Propose {
        /// What.
        offer: Box<Offer>,
    },
    /// A person answers a question.
    Answer {
        /// Which one.
        handoff: HandoffId,
        /// With these values.
        values: Fields,
        /// Or in these words.
        text: String,
        /// Who it was.
        by: String,
    },
    /// Nobody can answer a question in its time.
    Postpone {
        /// Which question.
        handoff: HandoffId,
        /// Until when it can be answered.
        until: Time,
        /// Why.
        why: String,
    },
    /// Something went wrong that people must see.
    Alert {
        /// An UPPER_SNAKE code.
        code: String,
        /// In a sentence.
        message: String,
    },
    /// Allow the run to spend more.
    RaiseBudget {
        /// By this much.
        money: Usd,
        /// And this many tokens.
        tokens: u64,
    },
    /// Give out nothing new.
    Pause {
        /// Who says so.
        by: String,
    },
    /// Go on after a pause.
    Unpause {
        /// Who says so.
        by: String,
    },
    /// Call the run off.
    Cancel {
        /// Who says so.
        by: String,
        /// Why.
        why: String,
    },
    /// Something arrived for a coordinator.
    #[serde(untagged)]
    Team(TeamInput),
}

/// What a turn ended with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnResult {
    /// The answer to the handoff that was worked on.
    pub response: Response,
    /// What is handed on.
    #[serde(default)]
    pub offers: Vec<Offer>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// What the work looks like now: a round of a loop that leaves it as it was changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// What its coordinator wants to know besides.
    #[serde(flatten)]
    pub said: Said,
    /// What would move work was read off plain output, which anyone can imitate.
    #[serde(default)]
    pub bare: bool,
}

impl TurnResult {
    /// A turn that ends with this answer and hands nothing on.
    #[must_use]
    pub fn new(response: Response) -> Self {
        TurnResult {
            response,
            offers: Vec::new(),
            usage: Usage::default(),
            fingerprint: None,
            said: Said::default(),
            bare: false,
        }
    }
}

/// How a turn broke.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What kind of thing it was.
    pub kind: FailureKind,
    /// In a sentence.
    pub message: String,
    /// When another try makes sense, for [`FailureKind::Quota`] and where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Failure {
    /// A failure that says nothing about when to try again.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into(), until: None }
    }

    /// The agent may do nothing before `until`.
    pub fn quota(until: Option<Time>, message: impl Into<String>) -> Self {
        Failure { until, ..Failure::new(FailureKind::Quota, message) }
    }
}

/// What kind of failure it was, which decides what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Worth another try.
    Recoverable,
    /// Another try would end the same way: a person must look.
    Fatal,
    /// The agent's quota is used up: it is nobody's fault and passes by itself.
    Quota,
    /// What it printed cannot be understood: worth another try, unless it has told its answer by its
    /// own channel, for then what it printed does not count.
    Invalid,
}
