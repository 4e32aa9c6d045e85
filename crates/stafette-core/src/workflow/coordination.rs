//! The coordination folder of a project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where handoffs and the shared state are mirrored as files, and taken in from files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Coordination {
    /// The folder, within the project.
    pub folder: String,
}

impl Default for Coordination {
    fn default() -> Self {
        Coordination { folder: ".claude".into() }
    }
}
