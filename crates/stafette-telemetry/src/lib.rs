//! See everything: metrics, alerts, traces and the event log.
//!
//! Everything here is a projection of the events. [`book::Book`] folds them into facts with what
//! they are about; metrics, alerts, spans and lines of the log follow from facts alone.
//!
//! Invariants:
//! - The same events give the same numbers, spans and lines, whoever folds them and however often
//!   the daemon starts: each projection is kept with the position that it includes.
//! - No clock: time is in the events, or handed in. Only the tasks that follow the feed read one.
//! - Nothing grows without a limit: what is open is bounded by the runs, names by
//!   [`metrics::NAMES`], windows by their slices, files by their rotation.
//! - Nothing leaves the machine unless the workflow of the run says where to.

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

/// Those who follow here are in no hurry: what happens within this time is read together, so that
/// a handoff costs no reading of its own.
const GATHER: std::time::Duration = std::time::Duration::from_millis(5);

/// How long those who ask wait for what has happened to be known here: on a machine that stands still
/// for a while they should be told all of it, and what cannot follow at all must not hold them up.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(15);
