//! Whom to tell that something happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// News for people who look elsewhere. Without a channel there are none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Notify {
    /// What is news.
    pub on: Vec<News>,
    /// Whether it is shown on this desktop.
    pub desktop: bool,
    /// A topic of an ntfy server, for phones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntfy: Option<Ntfy>,
    /// A program that is told by HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// When to be quiet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Quiet>,
    /// How long to wait for more before something is told.
    pub batch: Millis,
    /// The most messages in an hour; what is beyond is told together later.
    pub per_hour: u32,
    /// Where the page is, for links; the daemon's own address otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Something that people want to hear of.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// A person is asked.
    Question,
    /// Something is wrong.
    Alert,
    /// A run is over.
    Finished,
    /// A budget is reached.
    Budget,
}

/// A topic of an ntfy server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ntfy {
    /// The server.
    #[serde(default = "ntfy_server")]
    pub url: String,
    /// The topic. Whoever knows it can read along, unless the server asks for a token.
    pub topic: String,
    /// The environment variable with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
}

/// A program that is told by HTTP.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Webhook {
    /// Where it listens.
    pub url: String,
    /// The environment variable with the secret that messages are signed with.
    pub secret_env: String,
}

/// Hours in which only the urgent is told; everything else comes as one message afterwards.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Quiet {
    /// The first minute, such as `22:00`.
    pub from: String,
    /// The first minute that is not quiet any more, such as `07:00`.
    pub to: String,
    /// Where the clock hangs, such as `Europe/Vienna`; where the daemon is otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// What is urgent.
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
    /// Whether anyone would hear of anything.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.desktop || self.ntfy.is_some() || self.webhook.is_some()
    }
}

impl News {
    /// The word in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            News::Question => "question",
            News::Alert => "alert",
            News::Finished => "finished",
            News::Budget => "budget",
        }
    }
}

/// Minutes since midnight of a text such as `22:00`.
#[must_use]
pub fn minutes_of(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, below: u16| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|n| digits && *n < below)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}
