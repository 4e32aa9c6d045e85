//! The coordination folder of a project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The folder in which handoffs and the shared state are mirrored as files, and read from files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Coordination {
    /// The path of the folder, within the project.
    pub folder: String,
    /// The maximum number of files in each of `completed` and `rejected`; the oldest are deleted.
    #[schemars(range(min = 1, max = 5000))]
    pub keep: usize,
}

impl Default for Coordination {
    fn default() -> Self {
        Coordination { folder: ".claude".into(), keep: 1000 }
    }
}
