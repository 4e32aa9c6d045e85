//! Observability: metrics, alerts, traces and the event log.
//!
//! Everything here is a projection of the events. [`book::Book`] folds them into facts with their
//! context; metrics, alerts, spans and log lines follow from facts alone.
//!
//! Invariants:
//! - The same events give the same numbers, spans and lines, regardless of restarts: each
//!   projection is saved with the position that it includes.
//! - No clock: time is in the events, or passed in. Only the tasks that follow the feed read one.
//! - Nothing grows without a limit: open items are bounded by the runs, names by
//!   [`metrics::NAMES`], windows by their slices, files by their rotation.
//! - Nothing leaves the machine unless the workflow of the run names a receiver.

pub mod alerts;
pub mod book;
pub mod export;
pub mod histogram;
pub mod journal;
pub mod metrics;
mod observer;
pub mod report;
pub mod rotation;
pub mod search;
mod snapshot;
#[cfg(test)]
mod story;
pub mod trace;

pub use observer::{Observer, Shown};

/// Time within which events are read together: the followers here are in no hurry, so that a
/// handoff costs no read of its own.
const GATHER: std::time::Duration = std::time::Duration::from_millis(5);

/// Maximum wait of a reader until the latest events are included: a slow machine should still show
/// all of them, and a follower that is stuck must not block the reader.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(15);
