//! `[locks]`: the duration of locks, and the handling of conflicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The rules for locks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LockRules {
    /// The action to take if another holder has the lock.
    pub on_conflict: OnConflict,
    /// The duration of a lock unless it is renewed.
    pub lease: Millis,
    /// The maximum time to wait for a lock.
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

/// The action to take if another holder has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Wait until the lock is free.
    #[default]
    Wait,
    /// Continue without the lock.
    Skip,
    /// Take it from its holder, who can no longer write with it.
    TakeOver,
}
