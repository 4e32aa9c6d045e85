//! `[self]`: the team's own program, which the team may change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The team's own program: how it is built, tested and started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Own {
    /// The command that builds it, such as `["cargo", "build", "--release"]`.
    pub build: Vec<String>,
    /// The time limit for the build.
    #[serde(default = "ten_minutes")]
    pub build_timeout: Millis,
    /// The path of the built file, within the project.
    pub program: String,
    /// The command that checks whether a new version can read the state of the old one.
    pub prove: Vec<String>,
    /// The time limit for that check.
    #[serde(default = "one_minute")]
    pub prove_timeout: Millis,
    /// The command that runs it as long as the daemon runs; nothing is started if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// The environment variables that these commands may see, besides the harmless ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The time that a new version has to stay up before it counts as started.
    #[serde(default = "two_seconds")]
    pub settle: Millis,
}

fn ten_minutes() -> Millis {
    Millis::minutes(10)
}

fn one_minute() -> Millis {
    Millis::minutes(1)
}

fn two_seconds() -> Millis {
    Millis::seconds(2)
}
