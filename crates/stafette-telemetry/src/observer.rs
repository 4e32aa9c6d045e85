//! The task that follows the feed and maintains metrics, alerts and the event log.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stafette_engine::clock::now;
use stafette_engine::{Feed, Seen};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::alerts::{Alert, Alerts, Change};
use crate::book::{Book, Fact};
use crate::journal::{self, Journal};
use crate::metrics::{self, Live, Metrics};
use crate::{GATHER, LONGEST, snapshot};

/// Interval of evaluating the alerts; a request for them evaluates them as well.
const TICK: Duration = Duration::from_secs(1);
/// Minimum time between two saves of the state.
const KEEP: Duration = Duration::from_secs(5);

/// State of the observer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Shown {
    /// Position of the last included event.
    pub position: u64,
    /// Open runs and handoffs.
    pub book: Book,
    /// Counters over all events so far.
    pub metrics: Metrics,
    pub alerts: Alerts,
}

impl Shown {
    /// Takes in an event. An event that is already included changes nothing.
    pub fn apply(&mut self, seen: &Seen, mut tell: impl FnMut(&Fact)) {
        if seen.position <= self.position {
            return;
        }
        self.position = seen.position;
        let at = seen.at();
        for fact in self.book.hear(seen) {
            self.metrics.apply(at, &fact);
            self.alerts.hear(at, &fact);
            tell(&fact);
        }
    }
}

/// Metrics and alerts that follow the feed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Observer {
    shown: Arc<Mutex<Shown>>,
    position: watch::Sender<u64>,
    /// Number of alert changes; 0 until all earlier events are included.
    rung: watch::Sender<u64>,
    /// Position of the last event from before the start.
    head: u64,
    path: PathBuf,
}

impl Observer {
    /// Loads the state that was saved in `folder`. `head` is the last position of the store: a
    /// state that is ahead of it belongs to another store.
    #[must_use]
    pub fn open(folder: &Path, head: u64) -> Self {
        let path = folder.join("telemetry.json");
        let kept: Option<Shown> = snapshot::load(&path);
        let shown = kept.filter(|shown| shown.position <= head).unwrap_or_default();
        let position = watch::Sender::new(shown.position);
        let rung = watch::Sender::new(0);
        Observer { shown: Arc::new(Mutex::new(shown)), position, rung, head, path }
    }

    /// Returns the position of the last included event.
    pub fn position(&self) -> u64 {
        *self.position.borrow()
    }

    /// Waits until an event is included, up to a time limit.
    pub async fn reached(&self, position: u64) {
        let mut known = self.position.subscribe();
        let wait = known.wait_for(|known| *known >= position);
        let _ = tokio::time::timeout(LONGEST, wait).await;
    }

    /// Returns all alerts, evaluated now.
    pub fn alerts(&self) -> Vec<Alert> {
        self.evaluate();
        self.lock().alerts.all()
    }

    /// Returns the latest changes of alerts, the oldest first.
    pub fn changes(&self) -> Vec<Change> {
        self.lock().alerts.changes().cloned().collect()
    }

    /// Returns the latest changes and then the current state of each alert: a reader that knows
    /// what it last reported finds here what to report next, across any number of restarts.
    pub fn standing(&self) -> Vec<Change> {
        let shown = self.lock();
        shown.alerts.changes().cloned().chain(shown.alerts.standing(now())).collect()
    }

    /// Grows whenever an alert begins to fire or stops. 0 means that the state is not known yet.
    #[must_use]
    pub fn rung(&self) -> watch::Receiver<u64> {
        self.rung.subscribe()
    }

    /// Returns the text that Prometheus scrapes.
    pub fn page(&self, mut live: Live) -> String {
        let shown = self.lock();
        live.position = shown.position;
        metrics::page(&shown.metrics, &shown.book, &shown.alerts, &live)
    }

    /// Saves the state for the next daemon.
    pub fn keep(&self) {
        let shown = self.lock().clone();
        if let Err(error) = snapshot::save(&self.path, &shown) {
            tracing::warn!(%error, "metrics cannot be kept; they are counted again");
        }
    }

    /// Follows the feed, which must begin after [`position`](Self::position), until the engine is
    /// gone. Log lines go to the journal, if there is one.
    pub async fn follow(self, feed: Feed, mut journal: Option<Journal>) {
        let mut feed = feed.gather(GATHER);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut kept, mut kept_at) = (self.position(), Instant::now());
        loop {
            tokio::select! {
                page = feed.seen() => match page {
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

    fn take_in(&self, page: &[Arc<Seen>], journal: &mut Option<Journal>) {
        let mut shown = self.lock();
        for seen in page {
            let mut lines = Vec::new();
            shown.apply(seen, |fact| {
                if journal.is_some() {
                    lines.extend(journal::lines(seen.position, seen.run, seen.at(), fact));
                }
            });
            if let Some(writer) = journal
                && let Err(error) = writer.write(seen.position, &lines)
            {
                tracing::warn!(%error, "the event log cannot be written");
                *journal = None;
            }
        }
        let position = shown.position;
        drop(shown);
        self.position.send_replace(position);
    }

    fn evaluate(&self) {
        if self.position() < self.head {
            return;
        }
        let changes = self.lock().alerts.evaluate(now());
        for change in &changes {
            tracing::warn!("{}", change.sentence());
        }
        self.rung.send_if_modified(|rung| {
            let first = *rung == 0;
            *rung += changes.len() as u64 + u64::from(first);
            first || !changes.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
