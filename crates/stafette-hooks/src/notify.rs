//! Notifications for people.

mod alarm;
mod channel;
mod desk;
mod note;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::redact::Redactor;
use stafette_core::workflow::notify::{News, Notify};
use stafette_core::{Millis, RunId, Time};
use stafette_engine::{Engine, Stored};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use crate::memory::Memory;
use crate::{ReadWorkflow, clock};
use channel::Channel;
use desk::{Desk, Sending};
use note::Note;

pub use alarm::{Alarms, Alert};

/// Interval of checking the workflow for changes, while notifications are held back.
const LOOK: Duration = Duration::from_secs(60);

/// Pause before a store that cannot be read is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the URL of the page, if it is served.
pub type Page = dyn Fn() -> Option<String> + Send + Sync;

/// Sends notifications about runs and alerts.
pub struct Notifier {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    page: Arc<Page>,
    alarms: Alarms,
    redactor: Redactor,
    desk: Mutex<Memory<Desk>>,
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").finish_non_exhaustive()
    }
}

/// Result of a test message on a channel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// Name of the channel: `desktop`, `ntfy` or `webhook`.
    pub channel: String,
    /// True if the channel accepted the message.
    pub sent: bool,
    /// Reason of the failure; left out if it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Notifier {
    /// Creates a notifier for the settings of `workflow`, from the last position or from now on;
    /// `memory` is the file that keeps pending notifications.
    pub async fn open(
        engine: Engine,
        workflow: Arc<ReadWorkflow>,
        page: Arc<Page>,
        alarms: Alarms,
        redactor: Redactor,
        memory: PathBuf,
    ) -> Self {
        let desk = Mutex::new(Memory::open(memory));
        let notifier = Notifier { engine, workflow, page, alarms, redactor, desk };
        // Saved now and not in `live`, so that events in between are reported, too.
        let _ = notifier.begin().await;
        notifier
    }

    /// Returns the start position: the last one, or the present.
    async fn begin(&self) -> Option<u64> {
        let head = self.engine.store().head().await.ok()?;
        let mut desk = self.desk.lock().await;
        let cursor = desk.value.cursor.filter(|cursor| *cursor <= head).unwrap_or(head);
        desk.value.cursor = Some(cursor);
        Some(cursor)
    }

    /// Follows the feed and sends notifications until `stop` is set or the engine is gone.
    pub async fn live(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let Some(cursor) = self.begin().await else { return };
        let mut feed = self.engine.feed(cursor);
        let (mut alarms, mut heard) = (self.alarms.clone(), 0);
        loop {
            let rung = *alarms.rung.borrow_and_update();
            if rung > heard {
                heard = rung;
                self.ring(&(alarms.look)()).await;
            }
            let wake = self.step(clock::now()).await;
            let page = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => None,
                page = feed.next() => Some(page),
                () = alarms.changed() => continue,
                () = clock::reach(wake, LOOK), if wake.is_some() => continue,
            };
            let Some(page) = page else { return self.desk.lock().await.save() };
            match page {
                Ok(Some(page)) => self.take(&page).await,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "news cannot follow the store");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Returns the current settings, if they name a channel.
    fn wanted(&self) -> Option<Notify> {
        let notify = (self.workflow)().ok()?.notify?;
        notify.is_heard().then_some(notify)
    }

    async fn take(&self, page: &[Stored]) {
        let Some(last) = page.last() else { return };
        let wanted = self.wanted();
        let mut news = Vec::new();
        if let Some(notify) = &wanted {
            let base = self.base(notify);
            for stored in page.iter().filter(|stored| note::may_be_news(&stored.entry.name)) {
                let request = self.request(stored.run).await;
                let note = Note::of(stored, &request, base.as_deref(), notify);
                news.extend(note.map(|note| note.redacted(&self.redactor)));
            }
        }
        let mut desk = self.desk.lock().await;
        desk.value.cursor = Some(last.position);
        let changed = !news.is_empty();
        for note in news {
            desk.value.hold(note);
        }
        if changed {
            desk.save();
        }
    }

    /// Takes in alerts that began or stopped. Unwanted ones count as reported.
    async fn ring(&self, alerts: &[Alert]) {
        let wanted = self.wanted().filter(|notify| notify.on.contains(&News::Alert));
        let base = wanted.as_ref().and_then(|notify| self.base(notify));
        let mut desk = self.desk.lock().await;
        let mut changed = false;
        for alert in alerts {
            if !desk.value.alerts.is_news(alert) {
                continue;
            }
            changed = true;
            if wanted.is_some() {
                desk.value.hold(Note::alert(alert, base.as_deref()).redacted(&self.redactor));
            }
        }
        if changed {
            desk.save();
        }
    }

    /// Returns the URL of the page.
    fn base(&self, notify: &Notify) -> Option<String> {
        notify.link.clone().or_else(|| (self.page)())
    }

    async fn request(&self, run: RunId) -> String {
        self.engine.view(run).await.map(|(view, _)| view.request).unwrap_or_default()
    }

    /// Sends what is due by `now`, and returns the time of the next message.
    async fn step(&self, now: Time) -> Option<Time> {
        let mut desk = self.desk.lock().await;
        let Some(notify) = self.wanted() else {
            // Notifications were turned off.
            if desk.value.forget() {
                desk.save();
            }
            return None;
        };
        if desk.value.gather(now, &notify) {
            desk.save();
        }
        let due = desk.value.due(now);
        drop(desk);
        if !due.is_empty() {
            let outcomes = send(due, &notify, now).await;
            let mut desk = self.desk.lock().await;
            for (sending, outcome) in outcomes {
                desk.value.settle(&sending, outcome, clock::now());
            }
            desk.save();
        }
        self.desk.lock().await.value.wake(clock::now(), &notify)
    }

    /// Sends a message on every channel immediately, also in quiet hours.
    pub async fn test(&self) -> Result<Vec<Tried>, String> {
        let notify = (self.workflow)()?.notify.unwrap_or_default();
        if !notify.is_heard() {
            return Err("the workflow names no channel in [notify]".to_owned());
        }
        let now = clock::now();
        let link = self.base(&notify);
        let message = desk::Message::test(now, link);
        let sending = |channel| Sending::new(message.clone(), channel, now);
        let due = Channel::of(&notify).into_iter().map(sending).collect();
        let outcomes = send(due, &notify, now).await;
        let tried = |(sending, outcome): (Sending, Result<(), channel::Failed>)| Tried {
            channel: sending.channel.word().to_owned(),
            sent: outcome.is_ok(),
            why: outcome.err().map(|failed| failed.why),
        };
        let mut tried: Vec<Tried> = outcomes.into_iter().map(tried).collect();
        tried.sort_by(|a, b| a.channel.cmp(&b.channel));
        Ok(tried)
    }
}

/// Sends all messages in parallel; each has its own time limit.
async fn send(
    due: Vec<Sending>,
    notify: &Notify,
    now: Time,
) -> Vec<(Sending, Result<(), channel::Failed>)> {
    let mut tasks = JoinSet::new();
    for sending in due {
        let notify = notify.clone();
        tasks.spawn(async move {
            let outcome = sending.channel.send(&sending.message, &notify, now).await;
            if let Err(failed) = &outcome {
                tracing::warn!(channel = sending.channel.word(), why = failed.why, "not told");
            }
            (sending, outcome)
        });
    }
    tasks.join_all().await
}

/// Time limit of one attempt.
const TRY: Millis = Millis::seconds(10);
