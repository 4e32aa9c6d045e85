//! A single notification.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::clean::Clean;
use stafette_core::handoff::About;
use stafette_core::redact::Redactor;
use stafette_core::workflow::notify::{News, Notify};
use stafette_core::{RunId, Time};
use stafette_engine::Stored;
use uuid::Uuid;

use super::alarm::Alert;
use crate::payload::is_question;

/// Maximum length of a title and of a text, in characters.
const TITLE: usize = 120;
const TEXT: usize = 1000;

/// A single notification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    /// The same notification has the same id, however often it is sent.
    pub(crate) id: Uuid,
    pub(crate) news: News,
    pub(crate) at: Time,
    /// Run that it is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    pub(crate) title: String,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
}

/// Returns true if the event may lead to a notification.
pub(super) fn may_be_news(name: &str) -> bool {
    matches!(name, "handoff_admitted" | "alert_raised" | "run_finished" | "budget_reached")
}

impl Note {
    /// Returns the notification for an event, if it is wanted.
    pub(super) fn of(
        stored: &Stored,
        request: &str,
        base: Option<&str>,
        wanted: &Notify,
    ) -> Option<Self> {
        let name = stored.entry.name.as_str();
        let data: Value = serde_json::from_str(&stored.entry.body).ok()?;
        let said =
            |path: &str| data.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let wants = |news| wanted.on.contains(&news);
        let run = format!("/runs/{}", stored.run);
        let (news, title, text, path) = match name {
            "handoff_admitted" if is_question(name, &data) => {
                // A question about the budget is sent once, as a budget notification.
                let about = data.pointer("/offer/question/about").map(About::deserialize);
                if about.is_some_and(|it| matches!(it, Ok(About::Budget))) && wants(News::Budget) {
                    return None;
                }
                let options = data.pointer("/offer/question/options").and_then(Value::as_array);
                let options: Vec<&str> =
                    options.into_iter().flatten().filter_map(Value::as_str).collect();
                let text = match options.is_empty() {
                    true => request.to_owned(),
                    false => format!("{}\n{request}", options.join(" | ")),
                };
                let handoff = stored.entry.handoff.map(|id| id.to_string()).unwrap_or_default();
                let path = format!("/inbox/{handoff}?run={}", stored.run);
                (News::Question, said("/offer/question/details"), text, path)
            }
            "alert_raised" => {
                let printed = if data["printed"] == true { " (printed)" } else { "" };
                let title = format!("{}{printed}: {}", said("/code"), said("/message"));
                (News::Alert, title, request.to_owned(), run)
            }
            "run_finished" => {
                let title = format!("{}: {request}", said("/status"));
                (News::Finished, title, said("/why"), run)
            }
            "budget_reached" => (News::Budget, said("/why"), request.to_owned(), run),
            _ => return None,
        };
        wants(news).then(|| Note {
            id: Uuid::new_v5(&stored.run.0, &stored.entry.seq.to_be_bytes()),
            news,
            at: stored.entry.at,
            run: Some(stored.run),
            title: short(&title, TITLE),
            text: short(&text, TEXT),
            link: link(base, &path),
        })
    }

    /// Creates the notification that an alert began to fire, or stopped.
    pub(super) fn alert(alert: &Alert, base: Option<&str>) -> Self {
        let name = format!("{} {} {}", alert.name, alert.firing, alert.at.0);
        Note {
            id: Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()),
            news: News::Alert,
            at: alert.at,
            run: None,
            title: short(&alert.title, TITLE),
            text: short(&alert.text, TEXT),
            link: link(base, "/"),
        }
    }

    /// Removes secrets from the texts.
    pub(super) fn redacted(mut self, redactor: &Redactor) -> Self {
        self.title = redactor.text(&self.title).into_owned();
        self.text = redactor.text(&self.text).into_owned();
        self
    }
}

fn link(base: Option<&str>, path: &str) -> Option<String> {
    base.map(|base| format!("{}{path}", base.trim_end_matches('/')))
}

/// Cuts a text to a number of characters, without control characters.
fn short(text: &str, most: usize) -> String {
    let mut kept: String = Clean::from(text).as_str().chars().take(most + 1).collect();
    if let Some((cut, _)) = kept.char_indices().nth(most) {
        kept.truncate(cut);
        kept.push('…');
    }
    kept
}
