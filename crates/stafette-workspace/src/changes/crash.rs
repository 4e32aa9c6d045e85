//! Places where this process kills itself on request, so that anyone can see what a crash in the
//! middle of a change costs.

use std::sync::atomic::{AtomicI64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

/// After so many places, SIGKILL.
pub fn arm(after: i64) {
    LEFT.store(after, Ordering::SeqCst);
}

/// How many places are left before it; to count how many there are.
#[must_use]
pub fn left() -> i64 {
    LEFT.load(Ordering::SeqCst)
}

/// A place where a crash would hurt: between two steps that are each whole.
pub(crate) fn point() {
    if LEFT.load(Ordering::Relaxed) != i64::MAX && LEFT.fetch_sub(1, Ordering::SeqCst) <= 0 {
        // No destructor, no flush, no goodbye.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
