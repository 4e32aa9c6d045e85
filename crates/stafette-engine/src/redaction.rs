//! Takes secrets out of messages before anything of them is stored.
//!
//! The inputs of a run are redacted in one place: by its task, right before it decides (`task.rs`),
//! or where the store is used for a run that has ended (`after_end.rs`). A run begins clean
//! (`engine.rs`, `fork.rs`). This file is for the rest: what is written beside the runs, what is
//! compared with stored text, and what is returned to a caller.

use stafette_core::redact::Redact;

use crate::Engine;

impl Engine {
    /// Returns the same value without its secrets, as it would be stored.
    #[must_use]
    pub fn redacted<T: Redact>(&self, mut said: T) -> T {
        said.redact(&self.settings().redactor);
        said
    }
}
