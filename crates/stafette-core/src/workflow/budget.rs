//! `[budget]`: what a run may spend, and what an agent may spend of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, Usd};

/// What a run may spend. Finite by default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Budget {
    /// In money.
    pub money: Usd,
    /// In tokens.
    pub tokens: u64,
    /// In handoffs that an agent begins to work on.
    pub handoffs: u32,
    /// In time, waits for people included.
    pub time: Millis,
}

/// What one agent may spend of a run's budget; what is not said is not limited further.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct AgentBudget {
    /// In money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Usd>,
    /// In tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// In handoffs that it begins to work on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoffs: Option<u32>,
    /// In time at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Millis>,
}

impl AgentBudget {
    /// Whether it limits nothing.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        *self == AgentBudget::default()
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
