//! The coordination folder of a project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where handoffs and the shared state are mirrored as files, and taken in from files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Coordination {
    /// The folder, within the project.
    pub folder: String,
    /// How many files `completed` and `rejected` hold each, at most; the oldest go.
    #[schemars(range(min = 1, max = 5000))]
    pub keep: usize,
}

impl Default for Coordination {
    fn default() -> Self {
        Coordination { folder: ".claude".into(), keep: 1000 }
    }
}
