//! Where the runs are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place for the runs other than the file in `.stafette`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Store {
    /// The environment variable with the address of a PostgreSQL database, such as
    /// `postgres://user:password@localhost/team?schema=stafette`. The address itself, which may
    /// hold a password, is never in this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_env: Option<String>,
}

impl Store {
    /// Whether it says nothing.
    pub(crate) fn is_silent(&self) -> bool {
        *self == Store::default()
    }
}
