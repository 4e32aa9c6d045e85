//! Sends spans to a receiver, when the run's workflow names one.
//!
//! The store is the queue: what has not been taken yet is read again, so that memory stays the same
//! however long a receiver is away. What was taken is noted with its position; between the two a
//! crash can send a page twice, with the same names.

mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stafette_core::Event;
use stafette_core::workflow::telemetry::Telemetry;
use stafette_engine::{Feed, Stored};

use crate::book::{Book, Fact, is_silent};
use crate::snapshot;
use crate::trace::{Span, spans};

pub use wire::{Receiver, SendError};

/// The most spans in one request.
const BATCH: usize = 512;
/// The pause before the second try; it doubles each time.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);
/// A receiver that is away for longer than this misses what it was meant to get.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// What has been told.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Told {
    position: u64,
    book: Book,
}

/// How many spans went where.
#[derive(Debug, Default)]
pub struct Sent {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl Sent {
    /// Spans that a receiver took, and spans that none would take.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }
}

/// Sends the spans of everything that ends.
#[derive(Debug)]
pub struct Exporter {
    told: Told,
    path: PathBuf,
    sent: Arc<Sent>,
}

impl Exporter {
    /// Goes on where it was when it was last kept in `folder`. `head` is the last event that there
    /// is.
    #[must_use]
    pub fn open(folder: &Path, head: u64) -> Self {
        let path = folder.join("traces.json");
        let told: Option<Told> = snapshot::load(&path);
        let told = told.filter(|told| told.position <= head).unwrap_or_default();
        Exporter { told, path, sent: Arc::default() }
    }

    /// The last event that was told.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.told.position
    }

    /// How many spans went where, as they go.
    #[must_use]
    pub fn sent(&self) -> Arc<Sent> {
        self.sent.clone()
    }

    /// Follows the feed, which must begin after [`position`](Self::position), until the engine is
    /// gone.
    pub async fn follow(mut self, mut feed: Feed) {
        loop {
            let page = match feed.next().await {
                Ok(Some(page)) => page,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "the events cannot be read");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let batches = self.take_in(&page);
            let any = !batches.is_empty();
            for (_, (receiver, spans)) in batches {
                for some in spans.chunks(BATCH) {
                    self.send(&receiver, some).await;
                }
            }
            // Without anything sent there is nothing that could be sent twice, so that a quiet
            // project need not write for every event.
            if any && let Err(error) = snapshot::save(&self.path, &self.told) {
                tracing::warn!(%error, "what was sent cannot be noted");
            }
        }
    }

    /// The spans that ended with these events, by their receiver.
    fn take_in(&mut self, page: &[Stored]) -> BTreeMap<String, (Telemetry, Vec<Span>)> {
        let mut batches: BTreeMap<String, (Telemetry, Vec<Span>)> = BTreeMap::new();
        for stored in page {
            if stored.position <= self.told.position {
                continue;
            }
            self.told.position = stored.position;
            let entry = &stored.entry;
            if is_silent(&entry.name) {
                continue;
            }
            let Ok(event) = serde_json::from_str::<Event>(&entry.body) else { continue };
            for fact in self.told.book.apply(stored.run, entry.at, &event) {
                let open = match &fact {
                    Fact::RunEnded { run, .. } => Some(&**run),
                    _ => self.told.book.run(stored.run),
                };
                let Some(telemetry) = open.map(|run| &run.telemetry) else { continue };
                let Some(otlp) = &telemetry.otlp else { continue };
                let key = format!("{otlp} {:?}", telemetry.protocol);
                let ended = spans(stored.run, entry.at, &fact);
                if !ended.is_empty() {
                    let batch = batches.entry(key).or_insert_with(|| (telemetry.clone(), vec![]));
                    batch.1.extend(ended);
                }
            }
        }
        batches
    }

    /// Tries until the receiver takes them, refuses them, or is away for too long.
    async fn send(&self, telemetry: &Telemetry, spans: &[Span]) {
        let count = spans.len() as u64;
        let since = tokio::time::Instant::now();
        let mut pause = PAUSE;
        let error = loop {
            let receiver = match Receiver::of(telemetry, |name| std::env::var(name).ok()) {
                Ok(receiver) => receiver,
                Err(error) => break error,
            };
            match receiver.send(spans).await {
                Ok(()) => {
                    self.sent.sent.fetch_add(count, Ordering::Relaxed);
                    return;
                }
                Err(error) if error.is_final() || since.elapsed() > PATIENCE => break error,
                Err(error) => tracing::debug!(%error, "the receiver of traces is tried again"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        };
        self.sent.dropped.fetch_add(count, Ordering::Relaxed);
        tracing::warn!(%error, spans = count, "traces were not taken");
    }
}
