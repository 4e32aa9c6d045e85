//! Places where this process kills itself on request, so that anyone can see what a crash costs.

use std::cell::{Cell, RefCell};
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

thread_local! {
    static SIMULATED: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
    static PUT_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Has `point` called at every such place of this thread: a simulation kills its daemon there.
/// Without effect in a build for users.
pub fn simulate(point: impl FnMut() + 'static) {
    SIMULATED.set(Some(Box::new(point)));
}

/// Puts an old fault back on this thread, to show that a simulation finds it: a run's task leaves its
/// queue to the sessions that it waits for. Without effect in a build for users.
pub fn put_back(fault: bool) {
    PUT_BACK.set(fault);
}

pub(crate) fn is_put_back() -> bool {
    cfg!(debug_assertions) && PUT_BACK.get()
}

/// A point where a crash would hurt: between two steps of the flow.
pub(crate) fn point() {
    if cfg!(debug_assertions) {
        SIMULATED.with_borrow_mut(|point| point.iter_mut().for_each(|point| point()));
    }
    if LEFT.load(Ordering::Relaxed) != i64::MAX && LEFT.fetch_sub(1, Ordering::Relaxed) <= 0 {
        // No destructor, no flush, no goodbye: exactly what a power cut leaves behind.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
