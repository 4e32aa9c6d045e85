//! The channels for notifications.

use std::path::PathBuf;
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use serde_json::json;
use stafette_core::Time;
use stafette_core::workflow::notify::{Notify, Ntfy, Webhook};
use stafette_http::{Address, HttpError, HttpRequest};
use tokio::process::Command;

use super::TRY;
use super::desk::Message;
use crate::signature::sign_message;

/// A channel for notifications.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Channel {
    Desktop,
    Ntfy,
    Webhook,
}

/// A message was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Failed {
    pub(super) why: String,
    /// True if another attempt would fail the same way.
    pub(super) for_good: bool,
}

impl Failed {
    pub(super) fn now(why: impl Into<String>) -> Self {
        Failed { why: why.into(), for_good: false }
    }

    pub(super) fn for_good(why: impl Into<String>) -> Self {
        Failed { why: why.into(), for_good: true }
    }
}

impl Channel {
    /// Returns the configured channels.
    pub(super) fn of(notify: &Notify) -> Vec<Channel> {
        let desktop = notify.desktop.then_some(Channel::Desktop);
        let ntfy = notify.ntfy.as_ref().map(|_| Channel::Ntfy);
        let webhook = notify.webhook.as_ref().map(|_| Channel::Webhook);
        desktop.into_iter().chain(ntfy).chain(webhook).collect()
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Channel::Desktop => "desktop",
            Channel::Ntfy => "ntfy",
            Channel::Webhook => "webhook",
        }
    }

    pub(super) async fn send(
        self,
        message: &Message,
        notify: &Notify,
        now: Time,
    ) -> Result<(), Failed> {
        let sent = async {
            match (self, &notify.ntfy, &notify.webhook) {
                (Channel::Desktop, _, _) => show(message).await,
                (Channel::Ntfy, Some(ntfy), _) => publish(message, ntfy).await,
                (Channel::Webhook, _, Some(webhook)) => call(message, webhook, now).await,
                _ => Err(Failed::for_good("the channel is not wanted any more")),
            }
        };
        let late = |_| Failed::now(format!("nobody answered within {TRY}"));
        tokio::time::timeout(TRY.into(), sent).await.map_err(late)?
    }
}

/// Shows the message on this desktop, with the program that the system has for it.
async fn show(message: &Message) -> Result<(), Failed> {
    let (title, text) = (message.title(), message.text());
    let mut command = if let Some(program) = in_path("notify-send") {
        let mut command = Command::new(program);
        let urgency = if message.is_urgent() { "critical" } else { "normal" };
        command.args(["--app-name", "Stafette", "--urgency", urgency, "--"]);
        command
    } else if let Some(program) = in_path("osascript") {
        let mut command = Command::new(program);
        // The text is an argument, never a part of the script.
        command.args(["-e", "on run argv", "-e"]);
        command.arg("display notification (item 2 of argv) with title (item 1 of argv)");
        command.args(["-e", "end run", "--"]);
        command
    } else {
        return Err(Failed::for_good("neither notify-send nor osascript is installed"));
    };
    let text = match message.link() {
        Some(link) => format!("{text}\n{link}"),
        None => text,
    };
    command.arg(title).arg(text).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status().await {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failed::now(format!("it ended with {status}"))),
        Err(error) => Err(Failed::now(error.to_string())),
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

async fn publish(message: &Message, ntfy: &Ntfy) -> Result<(), Failed> {
    let mut headers = vec![("x-stafette-id", message.id.to_string())];
    if let Some(variable) = &ntfy.token_env {
        headers.push(("authorization", format!("Bearer {}", secret(variable)?)));
    }
    let body = json!({
        "topic": ntfy.topic,
        "title": message.title(),
        "message": message.text(),
        "priority": if message.is_urgent() { 4 } else { 3 },
        "click": message.link(),
    });
    post(&ntfy.url, headers, body.to_string()).await
}

async fn call(message: &Message, webhook: &Webhook, now: Time) -> Result<(), Failed> {
    let secret = secret(&webhook.secret_env)?;
    let note = |note: &super::note::Note| {
        json!({
            "id": note.id, "news": note.news, "at": note.at.rfc3339(), "run": note.run,
            "title": note.title, "text": note.text, "link": note.link,
        })
    };
    let body = json!({
        "id": message.id,
        "at": message.at.rfc3339(),
        "title": message.title(),
        "text": message.text(),
        "link": message.link(),
        "notes": message.notes.iter().map(note).collect::<Vec<_>>(),
        "more": message.more,
    })
    .to_string();
    let (id, seconds) = (message.id.to_string(), now.0 / 1000);
    let headers = vec![
        ("webhook-signature", sign_message(&secret, &id, seconds, &body)),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-id", id),
    ];
    post(&webhook.url, headers, body).await
}

/// Posts JSON; every response but success is a failure.
async fn post(url: &str, headers: Vec<(&str, String)>, body: String) -> Result<(), Failed> {
    let failed = |error: HttpError| match error.may_pass() {
        true => Failed::now(error.to_string()),
        false => Failed::for_good(error.to_string()),
    };
    let address = Address::parse(url).map_err(failed)?;
    let mut asked = HttpRequest::post(&address, "application/json", body);
    for (name, value) in headers {
        asked = asked.header(name, value);
    }
    // The rest of the response does not matter.
    match asked.send().await.map_err(failed)?.status {
        200..=299 => Ok(()),
        // The receiver asks for a pause, or has an internal error.
        status @ (408 | 425 | 429 | 500..=599) => Err(Failed::now(format!("it answered {status}"))),
        status => Err(Failed::for_good(format!("it answered {status}"))),
    }
}

fn secret(variable: &str) -> Result<String, Failed> {
    match std::env::var(variable) {
        Ok(secret) if !secret.is_empty() => Ok(secret),
        _ => Err(Failed::for_good(format!("{variable} is not set where the daemon runs"))),
    }
}
