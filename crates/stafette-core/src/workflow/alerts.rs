//! `[alerts]`: the conditions for alerts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The conditions for alerts, over a time window that ends now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct AlertRules {
    /// The number of failed handoffs; more than 5 in five minutes by default.
    pub failed: Threshold,
    /// The number of handoffs escalated to a person; more than 10 in an hour by default.
    pub escalated: Threshold,
    /// The number of circular handoffs prevented; more than 0 in five minutes by default.
    pub circular_blocked: Threshold,
    /// The 95th percentile of handoff durations, in milliseconds; more than 30 minutes, over a
    /// window of five minutes, by default.
    pub duration_ms_p95: Threshold,
}

/// A limit on a value within a time window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Threshold {
    /// The highest value that raises no alert.
    pub above: u64,
    /// The length of the time window.
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
