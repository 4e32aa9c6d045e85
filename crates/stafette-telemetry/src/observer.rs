//! The task that follows the feed and keeps metrics, alerts and the event log.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use stafette_core::{Event, Time};
use stafette_engine::{Feed, Stored};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::alerts::{Alert, Alerts, Change};
use crate::book::{Book, is_silent};
use crate::journal::{self, Journal};
use crate::metrics::{self, Live, Metrics};
use crate::snapshot;

/// How often the clock alone can change an alert.
const TICK: Duration = Duration::from_secs(1);
/// How often what is known is kept, at most.
const KEEP: Duration = Duration::from_secs(5);
/// How many changes of alerts a slow listener may be behind.
const BEHIND: usize = 64;

/// What the observer knows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Shown {
    /// The last event that it includes.
    pub position: u64,
    /// What is open.
    pub book: Book,
    /// What was counted.
    pub metrics: Metrics,
    /// What fires.
    pub alerts: Alerts,
}

impl Shown {
    /// Takes an event in. One that it includes already changes nothing.
    pub fn apply(&mut self, stored: &Stored, mut tell: impl FnMut(&crate::book::Fact)) {
        if stored.position <= self.position {
            return;
        }
        self.position = stored.position;
        let entry = &stored.entry;
        if is_silent(&entry.name) {
            return;
        }
        let event: Event = match serde_json::from_str(&entry.body) {
            Ok(event) => event,
            Err(error) => {
                // Of a newer version, maybe: the rest can still be counted.
                tracing::warn!(%error, position = stored.position, "an event is not understood");
                return;
            }
        };
        for fact in self.book.apply(stored.run, entry.at, &event) {
            self.metrics.apply(entry.at, &fact);
            self.alerts.hear(entry.at, &fact);
            tell(&fact);
        }
    }
}

/// A view of metrics and alerts that follows the feed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Observer {
    shown: Arc<Mutex<Shown>>,
    position: watch::Sender<u64>,
    changes: broadcast::Sender<Change>,
    path: PathBuf,
}

impl Observer {
    /// What was known when it was last kept in `folder`. `head` is the last event that there is: a
    /// view that knows more is of another store.
    #[must_use]
    pub fn open(folder: &Path, head: u64) -> Self {
        let path = folder.join("telemetry.json");
        let kept: Option<Shown> = snapshot::load(&path);
        let shown = kept.filter(|shown| shown.position <= head).unwrap_or_default();
        let position = watch::Sender::new(shown.position);
        let (changes, _) = broadcast::channel(BEHIND);
        Observer { shown: Arc::new(Mutex::new(shown)), position, changes, path }
    }

    /// The last event that is known.
    #[must_use]
    pub fn position(&self) -> u64 {
        *self.position.borrow()
    }

    /// Waits until an event is known, but not for long.
    pub async fn reached(&self, position: u64) {
        let mut known = self.position.subscribe();
        let wait = known.wait_for(|known| *known >= position);
        let _ = tokio::time::timeout(Duration::from_secs(2), wait).await;
    }

    /// All alerts.
    #[must_use]
    pub fn alerts(&self) -> Vec<Alert> {
        self.lock().alerts.all()
    }

    /// What began to fire and stopped lately, the oldest first.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.lock().alerts.changes().cloned().collect()
    }

    /// Hears of every alert that begins to fire or stops, from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// The page for Prometheus.
    #[must_use]
    pub fn page(&self, mut live: Live) -> String {
        let shown = self.lock();
        live.position = shown.position;
        metrics::page(&shown.metrics, &shown.book, &shown.alerts, &live)
    }

    /// Keeps what is known, for the next daemon.
    pub fn keep(&self) {
        let shown = self.lock().clone();
        if let Err(error) = snapshot::save(&self.path, &shown) {
            tracing::warn!(%error, "metrics cannot be kept; they are counted again");
        }
    }

    /// Follows the feed, which must begin after [`position`](Self::position), until the engine is
    /// gone. Lines go to the journal when there is one.
    pub async fn follow(self, mut feed: Feed, mut journal: Option<Journal>) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut kept, mut kept_at) = (self.position(), Instant::now());
        loop {
            tokio::select! {
                page = feed.next() => match page {
                    Ok(Some(page)) => self.take_in(&page, &mut journal),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(%error, "the events cannot be read");
                        tokio::time::sleep(TICK).await;
                    }
                },
                _ = ticks.tick() => self.evaluate(),
            }
            if self.position() != kept && kept_at.elapsed() >= KEEP {
                (kept, kept_at) = (self.position(), Instant::now());
                self.keep();
            }
        }
        self.keep();
    }

    fn take_in(&self, page: &[Stored], journal: &mut Option<Journal>) {
        let mut shown = self.lock();
        for stored in page {
            let mut lines = Vec::new();
            shown.apply(stored, |fact| {
                if journal.is_some() {
                    let at = stored.entry.at;
                    lines.extend(journal::lines(stored.position, stored.run, at, fact));
                }
            });
            if let Some(writer) = journal
                && let Err(error) = writer.write(stored.position, &lines)
            {
                tracing::warn!(%error, "the event log cannot be written");
                *journal = None;
            }
        }
        let position = shown.position;
        drop(shown);
        self.evaluate();
        self.position.send_replace(position);
    }

    fn evaluate(&self) {
        for change in self.lock().alerts.evaluate(now()) {
            tracing::warn!("{}", change.sentence());
            // Nobody has to listen.
            let _ = self.changes.send(change);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
