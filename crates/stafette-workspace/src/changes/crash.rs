//! Points where this process kills itself on request, to test a crash in the middle of a change.

use std::sync::atomic::{AtomicI64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

/// Kills the process with SIGKILL after this many points.
pub fn arm(after: i64) {
    LEFT.store(after, Ordering::SeqCst);
}

/// Returns the number of points left; used to count them.
pub fn left() -> i64 {
    LEFT.load(Ordering::SeqCst)
}

/// A point where a crash would hurt: between two steps that are each complete.
pub(crate) fn point() {
    if LEFT.load(Ordering::Relaxed) != i64::MAX && LEFT.fetch_sub(1, Ordering::SeqCst) <= 0 {
        // No destructor, no flush.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
