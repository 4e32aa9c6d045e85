//! Takes secrets out of messages before anything of them is stored.
//!
//! The inputs of a run are redacted in one place: by its task, right before it decides (`task.rs`),
//! or where the store is used for a run that has ended (`after_end.rs`). A run begins clean
//! (`engine.rs`, `fork.rs`). This file is for the rest: what is written beside the runs, what is
//! compared with stored text, and what is returned to a caller.

use stafette_core::Workflow;
use stafette_core::redact::Redact;
use stafette_core::run::create::RunCreated;

use crate::Engine;

impl Engine {
    /// Returns a new run without its secrets, the values that its workflow injects among them.
    pub(crate) fn clean_start(&self, created: RunCreated) -> RunCreated {
        self.learn_variables(&created.workflow);
        self.redacted(created)
    }

    /// Learns the values of the variables that a workflow names: its agents may print them.
    pub(crate) fn learn_variables(&self, workflow: &Workflow) {
        let variable = |name: &str| std::env::var(name).ok();
        self.settings().redactor.learn_variables(workflow.variables(), variable);
    }

    /// Returns the same value without its secrets, as it would be stored.
    pub fn redacted<T: Redact>(&self, mut said: T) -> T {
        said.redact(&self.settings().redactor);
        said
    }
}
