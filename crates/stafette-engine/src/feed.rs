//! The live stream of events: what was missed first, then what happens, without a gap.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stafette_core::Event;
use stafette_store::{ReadError, Store, Stored};
use tokio::sync::{Mutex, watch};

/// How many events a reader gets at once.
const PAGE: usize = 256;

/// How many of the newest events are held for those who follow, and how many bytes of them.
const RECENT: usize = 1024;
const RECENT_BYTES: usize = 4 << 20;

/// A stored event as those who follow see it: read from the store once, and understood once, for
/// all of them.
#[derive(Debug)]
pub struct Seen {
    stored: Stored,
    event: OnceLock<Option<Event>>,
}

impl From<Stored> for Seen {
    fn from(stored: Stored) -> Self {
        Seen { stored, event: OnceLock::new() }
    }
}

impl Seen {
    /// What became true, unless a newer version wrote it.
    #[must_use]
    pub fn event(&self) -> Option<&Event> {
        let understand = || match serde_json::from_str(&self.stored.entry.body) {
            Ok(event) => Some(event),
            Err(error) => {
                let position = self.stored.position;
                tracing::warn!(%error, position, "an event is not understood");
                None
            }
        };
        self.event.get_or_init(understand).as_ref()
    }
}

impl Deref for Seen {
    type Target = Stored;

    fn deref(&self) -> &Stored {
        &self.stored
    }
}

/// The newest events, without a gap.
#[derive(Debug, Default)]
struct Recent {
    /// All that happened after this is here, as far as anyone has read.
    after: u64,
    seen: VecDeque<Arc<Seen>>,
    bytes: usize,
}

impl Recent {
    fn last(&self) -> u64 {
        self.seen.back().map_or(self.after, |seen| seen.position)
    }

    /// Some of what came after `cursor`, when it is here.
    fn page(&self, cursor: u64) -> Option<Vec<Arc<Seen>>> {
        if cursor < self.after || cursor >= self.last() {
            return None;
        }
        let first = self.seen.partition_point(|seen| seen.position <= cursor);
        Some(self.seen.range(first..).take(PAGE).cloned().collect())
    }

    /// Takes in what came right after `cursor`.
    fn add(&mut self, cursor: u64, page: &[Arc<Seen>]) {
        if cursor != self.last() {
            *self = Recent { after: cursor, ..Recent::default() };
        }
        self.bytes += page.iter().map(|seen| seen.entry.body.len()).sum::<usize>();
        self.seen.extend(page.iter().cloned());
        while self.seen.len() > RECENT || self.bytes > RECENT_BYTES {
            let Some(oldest) = self.seen.pop_front() else { break };
            self.after = oldest.position;
            self.bytes -= oldest.entry.body.len();
        }
    }
}

/// Where those who follow read.
#[derive(Clone)]
pub struct Source {
    store: Arc<dyn Store>,
    head: watch::Receiver<u64>,
    recent: Arc<Mutex<Recent>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl Source {
    /// What `store` holds; `head` grows with it.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, head: watch::Receiver<u64>) -> Self {
        Source { store, head, recent: Arc::default() }
    }

    /// Everything that happens after `cursor`, in all runs.
    #[must_use]
    pub fn feed(&self, cursor: u64) -> Feed {
        Feed { source: self.clone(), cursor, pause: Duration::ZERO }
    }

    /// What came after `cursor`, read once for all who are as far.
    async fn page(&self, cursor: u64) -> Result<Vec<Arc<Seen>>, ReadError> {
        let mut recent = self.recent.lock().await;
        if let Some(page) = recent.page(cursor) {
            return Ok(page);
        }
        if cursor < recent.last() {
            // Far behind: nobody else wants that, and nobody waits for it.
            drop(recent);
            return self.read(cursor).await;
        }
        let page = self.read(cursor).await?;
        if !page.is_empty() {
            recent.add(cursor, &page);
        }
        Ok(page)
    }

    async fn read(&self, cursor: u64) -> Result<Vec<Arc<Seen>>, ReadError> {
        let page = self.store.feed(cursor, PAGE).await?;
        Ok(page.into_iter().map(|stored| Arc::new(Seen::from(stored))).collect())
    }
}

/// A reader of everything that happens after its cursor. What it reads is what the store holds, so
/// that it can neither miss nor repeat anything; the engine only tells it when to look.
#[derive(Debug)]
pub struct Feed {
    source: Source,
    cursor: u64,
    pause: Duration,
}

impl Feed {
    /// The same for somebody who is in no hurry: what happens within `pause` comes together.
    #[must_use]
    pub fn gather(self, pause: Duration) -> Self {
        Feed { pause, ..self }
    }

    /// The next events: at once when there are some, otherwise when there are. Nothing when the
    /// engine is gone.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Stored>>, ReadError> {
        let page = self.seen().await?;
        Ok(page.map(|page| page.iter().map(|seen| seen.stored.clone()).collect()))
    }

    /// The same, shared with all who follow: an event is understood once for all of them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn seen(&mut self) -> Result<Option<Vec<Arc<Seen>>>, ReadError> {
        loop {
            // Marks the present as seen first: what is appended during the read wakes us again.
            self.source.head.borrow_and_update();
            let page = self.source.page(self.cursor).await?;
            if let Some(last) = page.last() {
                self.cursor = last.position;
                return Ok(Some(page));
            }
            if self.source.head.changed().await.is_err() {
                return Ok(None);
            }
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stafette_core::{RunId, Time};
    use stafette_store::Entry;
    use uuid::Uuid;

    use super::*;

    fn page(positions: std::ops::RangeInclusive<u64>, bytes: usize) -> Vec<Arc<Seen>> {
        let seen = |position| {
            let (name, body) = ("run_paused".to_owned(), " ".repeat(bytes));
            let entry = Entry { seq: position, at: Time(0), name, handoff: None, body };
            Arc::new(Seen::from(Stored { position, run: RunId(Uuid::nil()), entry }))
        };
        positions.map(seen).collect()
    }

    fn positions(recent: &Recent, cursor: u64) -> Option<Vec<u64>> {
        recent.page(cursor).map(|page| page.iter().map(|seen| seen.position).collect())
    }

    #[test]
    fn what_one_has_read_the_others_need_not_read() {
        let mut recent = Recent::default();
        recent.add(7, &page(8..=9, 1));
        recent.add(9, &page(12..=12, 1));
        assert_eq!(positions(&recent, 7), Some(vec![8, 9, 12]));
        assert_eq!(positions(&recent, 9), Some(vec![12]));
        assert_eq!(positions(&recent, 12), None, "nobody has read on");
        assert_eq!(positions(&recent, 6), None, "something may be missing");
        // Nobody read what came between.
        recent.add(20, &page(21..=21, 1));
        assert_eq!((positions(&recent, 12), positions(&recent, 20)), (None, Some(vec![21])));
    }

    #[test]
    fn only_so_much_is_held_and_what_is_held_has_no_gap() {
        let mut recent = Recent::default();
        recent.add(0, &page(1..=3000, 1));
        assert_eq!((recent.after, recent.seen.len()), (3000 - RECENT as u64, RECENT));
        recent.add(3000, &page(3001..=3001, RECENT_BYTES - 5));
        assert_eq!(recent.seen.len(), 6, "the largest leaves room for a few");
        assert_eq!(positions(&recent, 2994), None);
        assert_eq!(positions(&recent, 2995).map(|page| page.len()), Some(6));
        recent.add(3001, &page(3002..=3002, RECENT_BYTES + 1));
        assert_eq!((recent.seen.len(), recent.after, recent.last()), (0, 3002, 3002));
    }
}
