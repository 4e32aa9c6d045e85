//! Measures the cost of a handoff, with agents that cost nothing, and the cost of terminals.
//!
//! Invariants:
//! - A rate that depends on the disk is measured alternating with a plain file on the same disk, so
//!   that a noisy machine is noisy for both; the ratio is what counts.
//! - A rate that depends on the processor alternates with its reference, too.
//! - Nothing is reported that was not counted: afterwards the content of the store is checked, and
//!   a difference is an error.
//!
//! Absent on purpose: targets. A measurement does not decide what is fast enough.

mod decision;
mod durable;
mod history;
mod null;
mod plain;
mod report;
mod sample;
mod scanning;
mod terminals;
mod watching;

use std::path::Path;
use std::sync::Arc;

use stafette_store::{MemoryStore, Options, SqliteStore};

pub use report::{
    Crowd, Decisions, History, Opening, Pace, Phases, Point, Report, Scanning, TerminalCosts,
    Watched, Watching,
};
pub use sample::Interval;
pub use terminals::terminals;

/// Any error that makes a measurement invalid.
pub type BenchError = Box<dyn std::error::Error + Send + Sync>;

/// Measures handoffs in `folder`, which should be on the disk that matters and is left with a few
/// files in it.
///
/// Each part makes about `handoffs` handoffs, in one run and in `runs` parallel runs; the long
/// history is five times as long. Both numbers are at least 1.
///
/// # Errors
/// If the store fails, or its content differs from what was counted.
pub async fn handoffs(folder: &Path, handoffs: u32, runs: u32) -> Result<Report, BenchError> {
    let (handoffs, runs) = (handoffs.max(1), runs.max(1));
    let memory = || Arc::new(MemoryStore::new());
    let one_run = durable::on_disk(folder, "one", 1, handoffs).await?;
    Ok(Report {
        handoffs,
        runs,
        watching: watching::measure(folder, handoffs).await?,
        one_run,
        many_runs: durable::on_disk(folder, "many", runs, handoffs).await?,
        one_run_in_memory: durable::pace(memory(), 1, handoffs, None).await?,
        many_runs_in_memory: durable::pace(memory(), runs, handoffs, None).await?,
        decisions: decision::measure(handoffs)?,
        histories: vec![
            history::measure(folder, null::Shape::Delegations, handoffs).await?,
            history::measure(folder, null::Shape::Loop, handoffs).await?,
        ],
        scanner: scanning::measure(handoffs)?,
        terminals: None,
    })
}

fn open(folder: &Path, name: &str) -> Result<Arc<SqliteStore>, BenchError> {
    Ok(Arc::new(SqliteStore::open(folder.join(name), Options::default())?))
}
