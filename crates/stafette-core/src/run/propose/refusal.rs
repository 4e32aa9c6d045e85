//! The rules under which a proposal is refused, and how each is said.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Party, Response};

/// The rule under which a proposal is refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Refusal {
    /// It carries too much.
    TooLarge {
        /// How much.
        bytes: usize,
        /// How much is allowed.
        limit: usize,
    },
    /// The turn has proposed as many handoffs as it may.
    TooMany {
        /// How many are allowed.
        limit: usize,
    },
    /// The work item was handed over too often.
    ItemLimit {
        /// Which item.
        item: String,
        /// How often is allowed.
        limit: u32,
    },
    /// The run has seen too many handoffs.
    RunLimit {
        /// How many are allowed.
        limit: u32,
    },
    /// The same step was just taken, twice.
    Repeated {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
    },
    /// The work would come back to someone who had it.
    Cycle {
        /// The way round.
        path: Vec<Party>,
    },
    /// A declared loop has had its rounds.
    LoopExhausted {
        /// Which loop.
        name: String,
        /// How many rounds.
        rounds: u32,
    },
    /// A round of a declared loop changed nothing.
    NoProgress {
        /// Which loop.
        name: String,
        /// Which round.
        round: u32,
    },
    /// Nobody has that name.
    UnknownTarget {
        /// The name.
        to: Party,
    },
    /// The path is forbidden.
    Denied {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
        /// Why.
        why: String,
    },
    /// The path is not on the list.
    NoRoute {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
        /// Who would be possible.
        possible: Vec<Party>,
    },
    /// The path requires what is not there.
    MissingEvidence {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
        /// What is missing.
        missing: Vec<String>,
    },
    /// Something that the stages keep to speaks against it.
    Objected {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
        /// What.
        objections: Vec<String>,
    },
}

impl Refusal {
    /// The refusal in the contract's words, where it has some.
    #[must_use]
    pub fn headline(&self) -> &'static str {
        match self {
            Refusal::TooLarge { .. } => "Payload too large",
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

    /// What is wrong, with names and numbers.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Refusal::TooLarge { bytes, limit } => {
                format!("it carries {bytes} bytes, and {limit} are allowed")
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

    /// Whether it is about going round in circles.
    #[must_use]
    pub fn is_circular(&self) -> bool {
        matches!(self, Refusal::Repeated { .. } | Refusal::Cycle { .. })
    }

    /// Whether only a person can help: trying again cannot.
    pub(in crate::run) fn parks(&self) -> bool {
        matches!(self, Refusal::LoopExhausted { .. } | Refusal::NoProgress { .. })
    }

    /// The answer that the proposer gets.
    #[must_use]
    pub fn response(&self) -> Response {
        Response { recommendations: vec![self.detail()], ..Response::failed(self.headline()) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.headline(), self.detail())
    }
}
