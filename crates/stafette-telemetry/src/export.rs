//! Sends spans to a receiver, if the run's workflow names one.
//!
//! The store is the queue: spans that were not accepted yet are built again from the events, so
//! that memory use stays constant however long a receiver is away. The position is saved regularly,
//! and immediately after a batch was accepted; a crash between the two can send a batch twice, with
//! the same ids. Events of runs without a receiver are skipped unread.

mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stafette_core::Event;
use stafette_core::workflow::telemetry::Telemetry;
use stafette_engine::{Feed, Seen};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::book::{Book, Fact};
use crate::trace::{Span, otlp, span};
use crate::{GATHER, snapshot};

pub use wire::{Receiver, SendError};

/// Maximum number of spans in one request.
const BATCH: usize = 512;
/// Time that a span waits for others to be sent with it.
const COMPANY: Duration = Duration::from_secs(1);
/// Interval of saving the position if nothing is sent.
const KEEP: Duration = Duration::from_secs(5);
/// Pause before the second attempt; it doubles each time.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between attempts.
const LONGEST: Duration = Duration::from_secs(60);
/// Time after which the spans for an unreachable receiver are dropped.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Time limit of the last batch when the daemon ends.
const END: Duration = Duration::from_secs(2);

/// Saved state of the exporter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Told {
    position: u64,
    book: Book,
}

/// Counts of exported spans.
#[derive(Debug, Default)]
pub struct Sent {
    /// Accepted and dropped spans.
    counts: watch::Sender<(u64, u64)>,
}

impl Sent {
    /// Returns the number of spans that were accepted, and of those that were dropped.
    pub fn counts(&self) -> (u64, u64) {
        *self.counts.borrow()
    }

    /// Waits until that many spans were accepted or dropped.
    pub async fn reached(&self, spans: u64) {
        let mut counts = self.counts.subscribe();
        // Cannot fail: the sender lives in `self`.
        let _ = counts.wait_for(|(sent, dropped)| sent + dropped >= spans).await;
    }

    fn add(&self, sent: u64, dropped: u64) {
        self.counts.send_modify(|counts| *counts = (counts.0 + sent, counts.1 + dropped));
    }
}

/// Spans for one receiver.
#[derive(Debug)]
struct Batch {
    telemetry: Telemetry,
    requests: Vec<otlp::Request>,
}

impl Batch {
    fn for_whom(telemetry: Telemetry) -> Self {
        Batch { telemetry, requests: Vec::new() }
    }

    fn add(&mut self, span: &Span) {
        let last = self.requests.last_mut().filter(|request| request.count() < BATCH);
        match last {
            Some(request) => request.add(span),
            None => {
                let mut request = otlp::Request::new(self.telemetry.protocol);
                request.add(span);
                self.requests.push(request);
            }
        }
    }

    fn count(&self) -> usize {
        self.requests.iter().map(otlp::Request::count).sum()
    }
}

/// Exports the spans of everything that ends.
#[derive(Debug)]
pub struct Exporter {
    told: Told,
    path: PathBuf,
    sent: Arc<Sent>,
    /// Spans that are not sent yet, a batch for each receiver.
    batches: Vec<Batch>,
    /// Time to send the batches, or to save the position.
    due: Option<Instant>,
}

impl Exporter {
    /// Continues from the position that was saved in `folder`. `head` is the last position of the
    /// store.
    #[must_use]
    pub fn open(folder: &Path, head: u64) -> Self {
        let path = folder.join("traces.json");
        let told: Option<Told> = snapshot::load(&path);
        let told = told.filter(|told| told.position <= head).unwrap_or_default();
        Exporter { told, path, sent: Arc::default(), batches: Vec::new(), due: None }
    }

    /// Returns the position of the last exported event.
    pub fn position(&self) -> u64 {
        self.told.position
    }

    /// Returns the live counts of exported spans.
    pub fn sent(&self) -> Arc<Sent> {
        self.sent.clone()
    }

    /// Follows the feed, which must begin after [`position`](Self::position), until `stop` is set
    /// or the engine is gone. The next exporter sends the rest.
    pub async fn follow(mut self, feed: Feed, mut stop: watch::Receiver<bool>) {
        let mut feed = feed.gather(GATHER);
        loop {
            let due = self.due.unwrap_or_else(Instant::now);
            let page = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                () = sleep_until(due), if self.due.is_some() => None,
                page = feed.seen() => Some(page),
            };
            let Some(page) = page else {
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => break,
                    () = self.settle() => continue,
                }
            };
            match page {
                Ok(Some(page)) => self.take_in(&page),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the events cannot be read");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        if timeout(END, self.settle()).await.is_err() {
            tracing::info!("the last traces are sent when the daemon starts again");
        }
    }

    /// Sends all batches, and saves the position.
    async fn settle(&mut self) {
        // If cancelled in the middle, nothing is saved, as if it had not begun.
        for batch in &self.batches {
            for request in &batch.requests {
                self.send(&batch.telemetry, request).await;
            }
        }
        self.batches.clear();
        self.due = None;
        if let Err(error) = snapshot::save(&self.path, &self.told) {
            tracing::warn!(%error, "what was sent cannot be noted");
        }
    }

    /// Takes in the spans that ended with these events.
    fn take_in(&mut self, page: &[Arc<Seen>]) {
        for seen in page {
            if seen.position <= self.told.position {
                continue;
            }
            self.told.position = seen.position;
            if self.is_told(seen) {
                self.hear(seen);
            }
        }
        let waiting: usize = self.batches.iter().map(Batch::count).sum();
        let latest = match waiting {
            0 => Instant::now() + KEEP,
            1..BATCH => Instant::now() + COMPANY,
            _ => Instant::now(),
        };
        self.due = Some(self.due.map_or(latest, |due| due.min(latest)));
    }

    /// Returns true if a receiver gets the event.
    fn is_told(&self, seen: &Seen) -> bool {
        match seen.name() {
            "run_created" | "run_forked" => match seen.event() {
                Some(Event::RunCreated(created)) => created.workflow.telemetry.otlp.is_some(),
                Some(Event::RunForked(forked)) => forked.state.workflow.telemetry.otlp.is_some(),
                _ => false,
            },
            _ => self.told.book.telemetry(seen.run).is_some(),
        }
    }

    fn hear(&mut self, seen: &Seen) {
        let (at, facts) = (seen.at(), self.told.book.hear(seen));
        let last = facts.iter().find_map(|fact| match fact {
            Fact::RunEnded { run, .. } => Some(run.telemetry.clone()),
            _ => None,
        });
        for fact in &facts {
            let known = self.told.book.telemetry(seen.run).or(last.as_ref());
            let Some(telemetry) = known.filter(|known| known.otlp.is_some()) else { continue };
            let Some(ended) = span(seen.run, at, fact) else { continue };
            match self.batches.iter_mut().find(|batch| batch.telemetry == *telemetry) {
                Some(batch) => batch.add(&ended),
                None => {
                    let mut batch = Batch::for_whom(telemetry.clone());
                    batch.add(&ended);
                    self.batches.push(batch);
                }
            }
        }
    }

    /// Retries until the receiver accepts or refuses the spans, or is away for too long.
    async fn send(&self, telemetry: &Telemetry, spans: &otlp::Request) {
        let count = spans.count() as u64;
        let since = Instant::now();
        let mut pause = PAUSE;
        let error = loop {
            let receiver = match Receiver::of(telemetry, |name| std::env::var(name).ok()) {
                Ok(receiver) => receiver,
                Err(error) => break error,
            };
            match receiver.send(spans).await {
                Ok(()) => {
                    return self.sent.add(count, 0);
                }
                Err(error) if error.is_final() || since.elapsed() > PATIENCE => break error,
                Err(error) => tracing::debug!(%error, "the receiver of traces is tried again"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        };
        self.sent.add(0, count);
        tracing::warn!(%error, spans = count, "traces were not taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Story;

    #[test]
    fn s2_10_whoever_has_a_key_of_their_own_gets_their_spans_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut exporter = Exporter::open(folder.path(), 0);
        let begun = |run: u128, key: &str| {
            let settings = "[telemetry]\notlp = \"http://127.0.0.1:9\"\n[telemetry.headers]";
            let mut story = Story::relay(&format!("{settings}\nx-key = \"{key}\"\n"));
            story.receipt().pass("builder", stafette_core::Reason::TaskHandoff);
            let stored = story.stored().into_iter().map(|stored| stafette_engine::Stored {
                run: stafette_core::RunId(uuid::Uuid::from_u128(run)),
                position: stored.position + u64::try_from(run).expect("small") * 100,
                ..stored
            });
            stored.map(|stored| Arc::new(Seen::from(stored))).collect::<Vec<_>>()
        };
        for (run, key) in [(1, "ADAS_KEY"), (2, "BOBS_KEY"), (3, "ADAS_KEY")] {
            exporter.take_in(&begun(run, key));
        }
        let whose = |batch: &Batch| (batch.telemetry.headers["x-key"].clone(), batch.count());
        let batches: Vec<_> = exporter.batches.iter().map(whose).collect();
        let spans = batches[1].1;
        assert!(spans > 0);
        assert_eq!(batches, [("ADAS_KEY".into(), 2 * spans), ("BOBS_KEY".into(), spans)]);
    }
}
