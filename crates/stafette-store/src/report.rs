//! What upkeep answers.

use serde::Serialize;

/// What [`crate::Store::retain`] took away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Removed {
    /// Runs.
    pub runs: u64,
    /// Their events.
    pub events: u64,
}

impl Removed {
    /// Adds what one step took away, and says whether that was anything.
    pub(crate) fn took(&mut self, step: Removed) -> bool {
        self.runs += step.runs;
        self.events += step.events;
        step.runs > 0
    }
}

/// What [`crate::Store::compact`] gave back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Compacted {
    /// Snapshots that a newer one had replaced.
    pub snapshots: u64,
    /// The size before, in bytes.
    pub bytes_before: u64,
    /// The size after, in bytes.
    pub bytes_after: u64,
}

/// How the store is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Health {
    /// Which backend this is.
    pub backend: &'static str,
    /// The version of its tables.
    pub schema: u32,
    /// What is wrong; nothing when it is sound.
    pub problems: Vec<String>,
    /// Its size in bytes, the log of recent writes included.
    pub bytes: u64,
    /// The size it may grow to, without that log.
    pub max_bytes: Option<u64>,
    /// Runs.
    pub runs: u64,
    /// Runs that have not ended.
    pub unfinished: u64,
    /// Events.
    pub events: u64,
    /// Handoffs.
    pub handoffs: u64,
    /// Snapshots.
    pub snapshots: u64,
}

impl Health {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}
