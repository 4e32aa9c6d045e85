//! Triggers that start runs automatically: schedules and webhooks.

mod cron;
mod template;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cron::{Cron, NotCron};
pub use template::{Template, TemplateError};

/// The maximum number of triggers in a workflow.
pub const MAX_TRIGGERS: usize = 64;

/// A trigger that starts a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Trigger {
    /// The name of the trigger, which is part of the address of a webhook.
    pub name: String,
    /// The schedule in five fields: minute, hour, day of the month, month, day of the week; or
    /// `@daily` and similar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone, such as `Europe/Vienna`; the daemon's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// True if one run makes up for all times that were missed while the daemon was not running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub catch_up: bool,
    /// True if a program may fire it with `POST /v1/triggers/NAME`, signed with the secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub webhook: bool,
    /// The environment variable with the secret that webhooks are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// The request for the agents. `{payload.issue.title}` is a part of the webhook's payload,
    /// `{trigger}` the name, `{time}` the time.
    pub request: String,
}

impl Trigger {
    /// True if the name can be part of an address.
    pub fn is_named_well(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=64).contains(&self.name.len()) && self.name.chars().all(plain)
    }
}
