//! What begins runs by itself: the clock, and other programs.

mod cron;
mod template;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cron::{Cron, NotCron};
pub use template::{Template, TemplateError};

/// A workflow has no more triggers.
pub const MAX_TRIGGERS: usize = 64;

/// Something that begins a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Trigger {
    /// Its name, which is part of the address of a webhook.
    pub name: String,
    /// When, in five fields: minute, hour, day of the month, month, day of the week; or `@daily`
    /// and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Where the clock hangs, such as `Europe/Vienna`; where the daemon is otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Whether one run makes up for the times that nobody was there to keep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub catch_up: bool,
    /// Whether a program may begin it by `POST /v1/triggers/NAME`, signed with the secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub webhook: bool,
    /// The environment variable with the secret that webhooks are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// What the agents should do. `{payload.issue.title}` is a part of what the webhook brought,
    /// `{trigger}` the name, `{time}` the moment.
    pub request: String,
}

impl Trigger {
    /// Whether the name can be part of an address.
    #[must_use]
    pub fn is_named_well(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=64).contains(&self.name.len()) && self.name.chars().all(plain)
    }
}
