//! Reports of upkeep.

use serde::Serialize;

/// Result of [`crate::Store::retain`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Removed {
    pub runs: u64,
    pub events: u64,
}

impl Removed {
    /// Adds the result of one step, and returns true if it removed anything.
    pub(crate) fn took(&mut self, step: Removed) -> bool {
        self.runs += step.runs;
        self.events += step.events;
        step.runs > 0
    }
}

/// Result of [`crate::Store::compact`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Compacted {
    /// Number of removed snapshots, which newer ones had replaced.
    pub snapshots: u64,
    /// Size before, in bytes.
    pub bytes_before: u64,
    /// Size after, in bytes.
    pub bytes_after: u64,
}

/// Result of an integrity check.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Health {
    pub backend: &'static str,
    /// Schema version of the tables.
    pub schema: u32,
    /// Problems that were found; empty if the store is valid.
    pub problems: Vec<String>,
    /// Size in bytes, including the log of recent writes.
    pub bytes: u64,
    /// Maximum size in bytes, without that log; `None` for no limit.
    pub max_bytes: Option<u64>,
    pub runs: u64,
    /// Number of runs that have not ended.
    pub unfinished: u64,
    pub events: u64,
    /// Number of events without a checksum, which older versions wrote.
    pub unchecked: u64,
    pub handoffs: u64,
    pub snapshots: u64,
}

impl Health {
    /// Returns true if no problem was found.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}
