//! Counters of a writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

/// Counters of the writer since the store was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Stats {
    /// Number of transactions that were committed for batches.
    pub commits: u64,
    pub batches: u64,
    /// Largest number of batches that shared one commit.
    pub largest_group: u64,
    /// Total duration of the commits, in microseconds.
    pub micros: u64,
    /// Number of commits per duration: at most each of [`COMMIT_BOUNDS`], and more than the one
    /// before it.
    pub took: [u64; COMMIT_BOUNDS.len()],
}

/// Upper bounds of the commit durations, in microseconds. The last one includes all.
pub const COMMIT_BOUNDS: [u64; 10] =
    [100, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 1_000_000, u64::MAX];

/// The live counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    batches: AtomicU64,
    largest_group: AtomicU64,
    micros: AtomicU64,
    took: [AtomicU64; COMMIT_BOUNDS.len()],
}

impl Counters {
    /// Counts a commit of that many batches.
    pub(crate) fn committed(&self, batches: u64, time: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.batches.fetch_add(batches, Ordering::Relaxed);
        self.largest_group.fetch_max(batches, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        let place = COMMIT_BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(count) = self.took.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the current counts.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            commits: self.commits.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            largest_group: self.largest_group.load(Ordering::Relaxed),
            micros: self.micros.load(Ordering::Relaxed),
            took: self.took.each_ref().map(|count| count.load(Ordering::Relaxed)),
        }
    }
}
