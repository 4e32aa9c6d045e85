//! `[changes]`: the rules for applying changes to the project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;
use crate::lock::Pattern;

/// The rules for applying changes to the project.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ChangeRules {
    /// The command that checks whether the project still works, such as `["cargo", "test"]`; no
    /// check if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub validate: Vec<String>,
    /// The environment variables that it may see, besides the harmless ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The time limit for that command.
    pub timeout: Millis,
    /// True if applied changes are committed, with the previous state of the touched files in a
    /// commit before.
    pub commit: bool,
    /// True if a person has to approve every set that an agent proposes, not only deletions,
    /// dependencies and the orchestrator's own code.
    pub ask_always: bool,
    /// The files of the orchestrator's own code, whose changes a person has to approve. Always
    /// included are `stafette.toml`, every file that a command of the workflow names, continuous
    /// integration, hooks, and the files that agents and tools obey.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<Pattern>,
    /// The files that no change may touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<Pattern>,
    /// The files that commands of the workflow name: see [`crate::Workflow::change_rules`].
    #[serde(skip)]
    pub named: Vec<String>,
}

impl Default for ChangeRules {
    fn default() -> Self {
        ChangeRules {
            validate: Vec::new(),
            env: Vec::new(),
            timeout: Millis::minutes(10),
            commit: true,
            ask_always: false,
            own: Vec::new(),
            protected: Vec::new(),
            named: Vec::new(),
        }
    }
}
