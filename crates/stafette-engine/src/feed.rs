//! The live stream of events: missed events first, then new ones, without a gap.

mod recent;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use stafette_core::{Event, HandoffId, Recorded, RunId, Time};
use stafette_store::{Damage, Entry, ReadError, Store, Stored};
use tokio::sync::watch;

use crate::record;
use recent::Recent;

/// The maximum number of events in one page.
const PAGE: usize = 256;

/// A stored event as followers see it: passed on by its writer, or read from the store once, and
/// parsed once, for all of them.
#[derive(Debug)]
pub struct Seen {
    /// Its number over all runs.
    pub position: u64,
    /// The run it belongs to.
    pub run: RunId,
    /// The approximate length of its text, in bytes.
    bytes: usize,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    /// One of the events that were stored together. Its written form is not kept, since few readers
    /// need it.
    Told(Arc<[Recorded]>, usize),
    /// The event in its written form; parsed when it is first needed.
    Read(Entry, OnceLock<Option<Event>>),
}

impl From<Stored> for Seen {
    fn from(stored: Stored) -> Self {
        let Stored { position, run, entry } = stored;
        let bytes = entry.body.len();
        Seen { position, run, bytes, kept: Kept::Read(entry, OnceLock::new()) }
    }
}

impl Seen {
    /// The event; `None` when a newer version wrote it.
    pub fn event(&self) -> Option<&Event> {
        match &self.kept {
            Kept::Told(events, index) => Some(&events[*index].event),
            Kept::Read(entry, event) => {
                let understand = || match Event::from_json(&entry.body) {
                    Ok(event) => Some(event),
                    Err(error) => {
                        let position = self.position;
                        tracing::warn!(%error, position, "an event is not understood");
                        None
                    }
                };
                event.get_or_init(understand).as_ref()
            }
        }
    }

    /// The time of the event.
    pub fn at(&self) -> Time {
        match &self.kept {
            Kept::Told(events, index) => events[*index].at,
            Kept::Read(entry, _) => entry.at,
        }
    }

    /// Its number within the run.
    pub fn seq(&self) -> u64 {
        match &self.kept {
            Kept::Told(events, index) => events[*index].seq,
            Kept::Read(entry, _) => entry.seq,
        }
    }

    /// The name of the event.
    pub fn name(&self) -> &str {
        match &self.kept {
            Kept::Told(events, index) => events[*index].event.name(),
            Kept::Read(entry, _) => &entry.name,
        }
    }

    /// The handoff that it is about, if any.
    pub fn handoff(&self) -> Option<HandoffId> {
        match &self.kept {
            Kept::Told(events, index) => events[*index].event.handoff(),
            Kept::Read(entry, _) => entry.handoff,
        }
    }

    /// The event as the store has it.
    pub fn stored(&self) -> Stored {
        let entry = match &self.kept {
            Kept::Told(events, index) => record::entry(&events[*index]),
            Kept::Read(entry, _) => entry.clone(),
        };
        Stored { position: self.position, run: self.run, entry }
    }
}

/// Events that were stored together, for followers.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// The run that they belong to.
    pub run: RunId,
    /// The events, in order.
    pub events: Arc<[Recorded]>,
    /// The length of their text, in bytes.
    pub bytes: usize,
}

impl Fresh {
    /// The events as followers see them, ending at position `last`.
    fn seen(&self, last: u64) -> Option<(u64, Vec<Arc<Seen>>)> {
        let before = last.checked_sub(self.events.len() as u64)?;
        let bytes = self.bytes / self.events.len().max(1);
        let seen = |(position, index)| {
            let kept = Kept::Told(Arc::clone(&self.events), index);
            Arc::new(Seen { position, run: self.run, bytes, kept })
        };
        Some((before, (before + 1..).zip(0..self.events.len()).map(seen).collect()))
    }
}

/// Notifies followers of stored events.
#[derive(Clone, Debug)]
pub struct Source {
    /// The last position that was announced. Followers hold no sender, so they notice when the
    /// source is gone.
    head: watch::Sender<u64>,
    shelf: Shelf,
}

impl Source {
    /// A source of the events in `store`, of which those up to `head` are known.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, head: u64) -> Self {
        let recent = Arc::new(Mutex::new(Recent::after(head)));
        Source { head: watch::Sender::new(head), shelf: Shelf { store, recent } }
    }

    /// A reader of all events after `cursor`, in all runs.
    pub fn feed(&self, cursor: u64) -> Feed {
        Feed { shelf: self.shelf.clone(), head: self.head(), cursor, pause: Duration::ZERO }
    }

    /// Announces the events that were stored up to `position`, and passes them to followers, so
    /// that they need not read them.
    pub fn give(&self, position: u64, fresh: &Fresh) {
        if let Some((before, page)) = fresh.seen(position) {
            self.shelf.recent().give(before, page);
        }
        self.tell(position);
    }

    /// Announces that events were stored up to `position`. This is done even if later ones were
    /// announced before: from here on the run's state is known.
    pub fn tell(&self, position: u64) {
        self.head.send_modify(|head| *head = position.max(*head));
    }

    /// The last position that was announced, as it grows.
    pub fn head(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }
}

/// The shared reader of followers.
#[derive(Clone)]
struct Shelf {
    store: Arc<dyn Store>,
    recent: Arc<Mutex<Recent>>,
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").finish_non_exhaustive()
    }
}

impl Shelf {
    /// Returns the events after `cursor`.
    async fn page(&self, cursor: u64) -> Result<Vec<Arc<Seen>>, ReadError> {
        if let Some(page) = self.recent().page(cursor) {
            return Ok(page);
        }
        let page = self.store.feed(cursor, PAGE).await?;
        let page: Vec<_> = page.into_iter().map(|stored| Arc::new(Seen::from(stored))).collect();
        self.recent().read(cursor, &page);
        Ok(page)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader of all events after its cursor. It reads what the store holds, so that it can neither
/// miss nor repeat an event.
#[derive(Debug)]
pub struct Feed {
    shelf: Shelf,
    head: watch::Receiver<u64>,
    cursor: u64,
    pause: Duration,
}

impl Feed {
    /// The same for a reader that is not in a hurry: events within `pause` come together.
    #[must_use]
    pub fn gather(self, pause: Duration) -> Self {
        Feed { pause, ..self }
    }

    /// Returns the next events: immediately when there are some, otherwise as soon as there are.
    /// `None` when the engine is gone.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Stored>>, ReadError> {
        let page = self.seen().await?;
        Ok(page.map(|page| page.iter().map(|seen| seen.stored()).collect()))
    }

    /// The same, shared with all followers: an event is parsed once for all of them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn seen(&mut self) -> Result<Option<Vec<Arc<Seen>>>, ReadError> {
        loop {
            // Marks the present as seen first: events appended during the read wake this reader
            // again.
            let head = *self.head.borrow_and_update();
            if self.cursor < head {
                let page = match self.shelf.page(self.cursor).await {
                    // Its run is stopped; the followers of the others go on.
                    Err(ReadError::Damaged {
                        source: damage @ Damage::Event { position: Some(position), .. },
                    }) => {
                        tracing::error!(%damage, "not passed on");
                        self.cursor = position;
                        continue;
                    }
                    page => page?,
                };
                if let Some(last) = page.last() {
                    self.cursor = last.position;
                    return Ok(Some(page));
                }
            }
            if self.head.changed().await.is_err() {
                return Ok(None);
            }
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
        }
    }
}
