//! `[changes]`: how changes get into the project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;
use crate::lock::Pattern;

/// How changes get into the project.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ChangeRules {
    /// The command that says whether the project still works, such as `["cargo", "test"]`; nothing
    /// is asked when it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub validate: Vec<String>,
    /// How long that may take.
    pub timeout: Millis,
    /// Whether what is applied is committed, with the touched files as they were in a commit
    /// before it.
    pub commit: bool,
    /// Whether a person is asked about every set that an agent proposes, not only about deletions,
    /// what steers the team and dependencies.
    pub ask_always: bool,
    /// What steers the team itself, so that a person has to say yes; `stafette.toml` always does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<Pattern>,
    /// What no change may touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<Pattern>,
}

impl Default for ChangeRules {
    fn default() -> Self {
        ChangeRules {
            validate: Vec::new(),
            timeout: Millis::minutes(10),
            commit: true,
            ask_always: false,
            own: Vec::new(),
            protected: Vec::new(),
        }
    }
}

impl ChangeRules {
    /// Whether nothing is said that differs from what holds anyway.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        *self == ChangeRules::default()
    }
}
