//! `[locks]`: how long a lock is held, and what happens when somebody else has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// How locks are given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LockRules {
    /// What happens when somebody else has it.
    pub on_conflict: OnConflict,
    /// How long a lock is held unless it is renewed.
    pub lease: Millis,
    /// How long to wait for one at most.
    pub wait: Millis,
}

impl Default for LockRules {
    fn default() -> Self {
        LockRules {
            on_conflict: OnConflict::Wait,
            lease: Millis::minutes(30),
            wait: Millis::minutes(5),
        }
    }
}

/// What happens when somebody else has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Wait in line until it is free.
    #[default]
    Wait,
    /// Go on without it.
    Skip,
    /// Take it from its holder, who can no longer write with it.
    TakeOver,
}
