//! `[budget]`: the spending limits of a run and of its agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, Usage, Usd};

/// The spending limits of a run. Finite by default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Budget {
    /// The maximum money, in US dollars.
    pub money: Usd,
    /// The maximum number of tokens.
    pub tokens: u64,
    /// The maximum number of handoffs that agents start to work on.
    pub handoffs: u32,
    /// The maximum duration, including waits for people.
    pub time: Millis,
}

/// The spending limits of one agent within a run's budget; absent fields set no further limit.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct AgentBudget {
    /// The maximum money, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Usd>,
    /// The maximum number of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The maximum number of handoffs that it starts to work on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoffs: Option<u32>,
    /// The maximum working time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Millis>,
}

/// The expected usage of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Estimate {
    /// The tokens read and written.
    pub tokens: u64,
    /// The money spent, in US dollars.
    pub money: Usd,
}

impl From<Estimate> for Usage {
    fn from(estimate: Estimate) -> Usage {
        Usage::exactly(estimate.tokens, estimate.money)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            money: Usd(5_000_000),
            tokens: 2_000_000,
            handoffs: 1000,
            time: Millis::hours(30 * 24),
        }
    }
}
