//! The rules under which a proposal is refused, and the wording of each.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Party, Response};

/// The rule under which a proposal is refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Refusal {
    /// The data is too large.
    TooLarge {
        /// The size of the data, in bytes.
        bytes: usize,
        /// The maximum size, in bytes.
        limit: usize,
    },
    /// A person, or the orchestrator for them, is asked nothing.
    Silent {
        /// The party that is asked nothing.
        to: Party,
        /// The value among the outputs that was probably meant for the question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meant: Option<String>,
    },
    /// The turn has proposed the maximum number of handoffs.
    TooMany {
        /// The maximum number of handoffs per turn.
        limit: usize,
    },
    /// The work item was handed over too often.
    ItemLimit {
        /// The name of the work item.
        item: String,
        /// The maximum number of handoffs per item.
        limit: u32,
    },
    /// The run has reached its maximum number of handoffs.
    RunLimit {
        /// The maximum number of handoffs per run.
        limit: u32,
    },
    /// The same step was taken twice just before.
    Repeated {
        /// The giver of the handoff.
        from: Party,
        /// The taker of the handoff.
        to: Party,
    },
    /// The work would return to a party that already had it.
    Cycle {
        /// The parties of the cycle, in order.
        path: Vec<Party>,
    },
    /// A declared loop has used up its rounds.
    LoopExhausted {
        /// The name of the loop.
        name: String,
        /// The maximum number of rounds.
        rounds: u32,
    },
    /// A round of a declared loop changed nothing.
    NoProgress {
        /// The name of the loop.
        name: String,
        /// The number of the round.
        round: u32,
    },
    /// No party has that name.
    UnknownTarget {
        /// The target that is unknown.
        to: Party,
    },
    /// The path is on the deny list.
    Denied {
        /// The giver of the handoff.
        from: Party,
        /// The taker of the handoff.
        to: Party,
        /// The reason from the deny list.
        why: String,
    },
    /// The workflow has no route for the path.
    NoRoute {
        /// The giver of the handoff.
        from: Party,
        /// The taker of the handoff.
        to: Party,
        /// The targets that the giver can reach.
        possible: Vec<Party>,
    },
    /// The route requires evidence that is missing.
    MissingEvidence {
        /// The giver of the handoff.
        from: Party,
        /// The taker of the handoff.
        to: Party,
        /// The names of the missing evidence.
        missing: Vec<String>,
    },
    /// A rule of the stages objects to it.
    Objected {
        /// The giver of the handoff.
        from: Party,
        /// The taker of the handoff.
        to: Party,
        /// The objections, one sentence each.
        objections: Vec<String>,
    },
}

impl Refusal {
    /// Returns the refusal in the contract's words, where it has some.
    pub fn headline(&self) -> &'static str {
        match self {
            Refusal::TooLarge { .. } => "Payload too large",
            Refusal::Silent { .. } => "No question",
            Refusal::TooMany { .. } | Refusal::ItemLimit { .. } | Refusal::RunLimit { .. } => {
                "Handoff limit exceeded"
            }
            Refusal::Repeated { .. } | Refusal::Cycle { .. } => "Circular handoff detected",
            Refusal::LoopExhausted { .. } => "Loop limit exceeded",
            Refusal::NoProgress { .. } => "No progress",
            Refusal::UnknownTarget { .. } => "Unknown target",
            Refusal::Denied { .. } | Refusal::NoRoute { .. } => "Route not allowed",
            Refusal::MissingEvidence { .. } => "Missing evidence",
            Refusal::Objected { .. } => "Objection",
        }
    }

    /// Returns the explanation, with names and numbers.
    pub fn detail(&self) -> String {
        match self {
            Refusal::TooLarge { bytes, limit } => {
                format!("it carries {bytes} bytes, and {limit} are allowed")
            }
            Refusal::Silent { to: Party::Orchestrator, .. } => {
                "/summary: the orchestrator is told \
                 nothing: say in `summary` what a person is to decide; work that is done ends with \
                 `RESULT`"
                    .to_owned()
            }
            Refusal::Silent { meant, .. } => {
                let meant =
                    meant.as_ref().map(|key| format!("; did you mean `question` by `{key}`?"));
                let nothing = "a person is asked nothing: say it in `question` or `summary`";
                format!("/question: {nothing}{}", meant.unwrap_or_default())
            }
            Refusal::TooMany { limit } => {
                format!("one turn may propose {limit} handoffs")
            }
            Refusal::ItemLimit { item, limit } => {
                format!("`{item}` was handed over {limit} times, which is its limit")
            }
            Refusal::RunLimit { limit } => {
                format!("the run has had {limit} handoffs, which is its limit")
            }
            Refusal::Repeated { from, to } => {
                format!("{from} → {to} was just tried twice for the same reason")
            }
            Refusal::Cycle { path } => {
                let names: Vec<&str> = path.iter().map(Party::as_str).collect();
                format!("{} and no loop declares it", names.join(" → "))
            }
            Refusal::LoopExhausted { name, rounds } => {
                format!("loop `{name}` has had its {rounds} rounds")
            }
            Refusal::NoProgress { name, round } => {
                format!("round {round} of loop `{name}` changed nothing")
            }
            Refusal::UnknownTarget { to } => format!("the workflow has no agent `{to}`"),
            Refusal::Denied { from, to, why } => format!("{from} → {to} is denied: {why}"),
            Refusal::NoRoute { from, to, possible } => {
                let names: Vec<&str> = possible.iter().map(Party::as_str).collect();
                format!("no route {from} → {to}; possible: {}", names.join(", "))
            }
            Refusal::MissingEvidence { from, to, missing } => {
                format!("{from} → {to} requires {}", missing.join(", "))
            }
            Refusal::Objected { from, to, objections } => {
                format!("{from} → {to}: {}", objections.join("; "))
            }
        }
    }

    /// True if the refusal is about a cycle.
    pub fn is_circular(&self) -> bool {
        matches!(self, Refusal::Repeated { .. } | Refusal::Cycle { .. })
    }

    /// True if only a person can help, because a retry cannot.
    pub(in crate::run) fn parks(&self) -> bool {
        matches!(self, Refusal::LoopExhausted { .. } | Refusal::NoProgress { .. })
    }

    /// Returns the answer for the proposer.
    pub fn response(&self) -> Response {
        Response { recommendations: vec![self.detail()], ..Response::failed(self.headline()) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.headline(), self.detail())
    }
}
