//! `[alerts]`: when people should look.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The conditions under which people should look, over a window of time that ends now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct AlertRules {
    /// Handoffs that failed; five minutes unless it says otherwise.
    pub failed: Threshold,
    /// Handoffs that were escalated to a person; an hour unless it says otherwise.
    pub escalated: Threshold,
    /// Circular handoffs that were prevented; five minutes unless it says otherwise.
    pub circular_blocked: Threshold,
    /// How many milliseconds 95 of 100 handoffs took at most; five minutes unless it says otherwise.
    pub duration_ms_p95: Threshold,
}

/// More than this within that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Threshold {
    /// What may be reached, but not passed.
    pub above: u64,
    /// How far back to look.
    pub within: Millis,
}

impl Default for AlertRules {
    fn default() -> Self {
        let within = |above, within| Threshold { above, within };
        AlertRules {
            failed: within(5, Millis::minutes(5)),
            escalated: within(10, Millis::hours(1)),
            circular_blocked: within(0, Millis::minutes(5)),
            duration_ms_p95: within(Millis::minutes(30).0, Millis::minutes(5)),
        }
    }
}

impl AlertRules {
    /// Whether it says nothing.
    pub(crate) fn is_silent(&self) -> bool {
        *self == AlertRules::default()
    }
}
