//! `[store]`: the storage of the runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The storage of the runs, if it is not the file in the project's state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Store {
    /// The environment variable with the address of a PostgreSQL database, such as
    /// `postgres://user:password@localhost/team?schema=stafette`. The address itself, which may
    /// contain a password, is never in this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_env: Option<String>,
}
