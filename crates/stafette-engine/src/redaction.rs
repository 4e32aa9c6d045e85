//! Secrets are taken out of what somebody says before anything of it is kept.
//!
//! What a run hears is cleaned in one place: by its task, right before it decides (`task.rs`), or
//! where the store is asked for a run that is over (`late.rs`). A run begins clean (`engine.rs`,
//! `fork.rs`). What is here is for the rest: what is written beside the runs, what is compared with
//! what was kept, and what a caller is told.

use stafette_core::redact::Redact;

use crate::Engine;

impl Engine {
    /// The same without its secrets, as it would be kept.
    #[must_use]
    pub fn redacted<T: Redact>(&self, mut said: T) -> T {
        said.redact(&self.settings().redactor);
        said
    }
}
