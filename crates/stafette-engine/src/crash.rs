//! Places where this process kills itself on request, so that anyone can see what a crash costs.

use std::sync::atomic::{AtomicI64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

/// The environment variable that arms them: after so many places, SIGKILL.
pub const VARIABLE: &str = "STAFETTE_CRASH_AFTER";

static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

/// Reads the environment once, when the daemon starts.
pub fn arm() {
    if let Some(after) = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()) {
        LEFT.store(after, Ordering::Relaxed);
    }
}

/// A point where a crash would hurt: between two steps of the flow.
pub(crate) fn point() {
    if LEFT.load(Ordering::Relaxed) != i64::MAX && LEFT.fetch_sub(1, Ordering::Relaxed) <= 0 {
        // No destructor, no flush, no goodbye: exactly what a power cut leaves behind.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
