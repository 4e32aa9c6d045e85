use std::cell::Cell;

thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

pub(crate) fn count() {
    STEPS.set(STEPS.get() + 1);
}

/// Returns how many were made by this.
pub(super) fn of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = STEPS.get();
    let done = work();
    (STEPS.get() - before, done)
}
