//! `[notify]`: notifications for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The notifications for people who are not watching. None are sent without a channel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Notify {
    /// The events to notify about.
    pub on: Vec<News>,
    /// True if notifications are shown on this desktop.
    pub desktop: bool,
    /// A topic of an ntfy server, for phones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntfy: Option<Ntfy>,
    /// A program that receives notifications over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// The hours in which only urgent notifications are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Quiet>,
    /// The time to wait for further notifications before sending them together.
    pub batch: Millis,
    /// The maximum number of messages per hour; further ones are combined and sent later.
    pub per_hour: u32,
    /// The address of the web page, for links; the daemon's own address if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A kind of notification.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// A person is asked a question.
    Question,
    /// An alert was raised.
    Alert,
    /// A run has ended.
    Finished,
    /// A budget limit was reached.
    Budget,
}

/// A topic of an ntfy server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ntfy {
    /// The address of the server.
    #[serde(default = "ntfy_server")]
    pub url: String,
    /// The topic. Anyone who knows it can read the messages, unless the server requires a token.
    pub topic: String,
    /// The environment variable with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
}

/// A program that receives notifications over HTTP.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Webhook {
    /// The address that messages are sent to.
    pub url: String,
    /// The environment variable with the secret that messages are signed with.
    pub secret_env: String,
}

/// Hours in which only urgent notifications are sent; all others follow as one message afterwards.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Quiet {
    /// The first quiet minute, such as `22:00`.
    pub from: String,
    /// The first minute that is no longer quiet, such as `07:00`.
    pub to: String,
    /// The time zone, such as `Europe/Vienna`; the daemon's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The urgent kinds, which are sent even in quiet hours.
    #[serde(default = "urgent")]
    pub except: Vec<News>,
}

fn ntfy_server() -> String {
    "https://ntfy.sh".into()
}

fn urgent() -> Vec<News> {
    vec![News::Budget]
}

impl Default for Notify {
    fn default() -> Self {
        Notify {
            on: vec![News::Question, News::Alert, News::Finished, News::Budget],
            desktop: false,
            ntfy: None,
            webhook: None,
            quiet: None,
            batch: Millis::seconds(5),
            per_hour: 30,
            link: None,
        }
    }
}

impl Notify {
    /// True if at least one channel is set up.
    pub fn is_heard(&self) -> bool {
        self.desktop || self.ntfy.is_some() || self.webhook.is_some()
    }
}

/// Parses a text such as `22:00` into minutes after midnight.
pub fn minutes_of(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, below: u16| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|n| digits && *n < below)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}
