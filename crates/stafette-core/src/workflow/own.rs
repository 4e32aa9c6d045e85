//! `[self]`: the team's own program, which the team may change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The team's own program: how it is built, tried and started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Own {
    /// The command that builds it, such as `["cargo", "build", "--release"]`.
    pub build: Vec<String>,
    /// How long that may take.
    #[serde(default = "ten_minutes")]
    pub build_timeout: Millis,
    /// The file that comes of it, in the project.
    pub program: String,
    /// The command by which a new one proves that it can read what the old one has left.
    pub prove: Vec<String>,
    /// How long that may take.
    #[serde(default = "one_minute")]
    pub prove_timeout: Millis,
    /// The command that runs it for as long as the daemon lives; without one nothing is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// How long a new one has to stay up before it counts as started.
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
