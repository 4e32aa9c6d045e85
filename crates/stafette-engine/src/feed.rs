//! The live stream of events: what was missed first, then what happens, without a gap.

mod recent;

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use stafette_core::{Event, Recorded, RunId};
use stafette_store::{Entry, ReadError, Store, Stored};
use tokio::sync::watch;

use recent::Recent;

/// How many events a reader gets at once.
const PAGE: usize = 256;

/// A stored event as those who follow see it: taken from whoever stored it, or read from the store
/// once, and understood once, for all of them.
#[derive(Debug)]
pub struct Seen {
    stored: Stored,
    event: Understood,
}

#[derive(Debug)]
enum Understood {
    /// One of those that became true together.
    Told(Arc<[Recorded]>, usize),
    /// When somebody asks.
    Read(OnceLock<Option<Event>>),
}

impl From<Stored> for Seen {
    fn from(stored: Stored) -> Self {
        Seen { stored, event: Understood::Read(OnceLock::new()) }
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
        match &self.event {
            Understood::Told(events, index) => events.get(*index).map(|recorded| &recorded.event),
            Understood::Read(event) => event.get_or_init(understand).as_ref(),
        }
    }
}

impl Deref for Seen {
    type Target = Stored;

    fn deref(&self) -> &Stored {
        &self.stored
    }
}

/// What was stored together, for those who follow.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// Whose it is.
    pub run: RunId,
    /// What was written.
    pub entries: Vec<Entry>,
    /// What it says.
    pub events: Arc<[Recorded]>,
}

impl Fresh {
    /// As those see it who follow, with the position of the last.
    fn seen(self, last: u64) -> Option<(u64, Vec<Arc<Seen>>)> {
        let before = last.checked_sub(self.entries.len() as u64)?;
        let (run, events) = (self.run, self.events);
        let seen = |((position, entry), index)| {
            let event = Understood::Told(Arc::clone(&events), index);
            Arc::new(Seen { stored: Stored { position, run, entry }, event })
        };
        Some((before, (before + 1..).zip(self.entries).zip(0..).map(seen).collect()))
    }
}

/// Where those who follow are told what was stored.
#[derive(Clone, Debug)]
pub struct Source {
    /// The last position that was told of. Those who follow do not hold it: they learn that nobody
    /// is left to tell them anything.
    head: watch::Sender<u64>,
    shelf: Shelf,
}

impl Source {
    /// What `store` holds, up to `head` so far.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, head: u64) -> Self {
        let recent = Arc::new(Mutex::new(Recent::after(head)));
        Source { head: watch::Sender::new(head), shelf: Shelf { store, recent } }
    }

    /// Everything that happens after `cursor`, in all runs.
    #[must_use]
    pub fn feed(&self, cursor: u64) -> Feed {
        Feed { shelf: self.shelf.clone(), head: self.head(), cursor, pause: Duration::ZERO }
    }

    /// Tells of what was stored up to `position`, and gives it to those who follow, so that they
    /// need not read it.
    pub fn give(&self, position: u64, fresh: Fresh) {
        if let Some((before, page)) = fresh.seen(position) {
            self.shelf.recent().give(before, page);
        }
        self.tell(position);
    }

    /// Tells that something was stored up to `position`. That others have told of later ones is no
    /// reason to keep quiet: the run's state is known from here on.
    pub fn tell(&self, position: u64) {
        self.head.send_modify(|head| *head = position.max(*head));
    }

    /// The last position that was told of, as it grows.
    #[must_use]
    pub fn head(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }
}

/// Where those who follow read.
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
    /// What came after `cursor`.
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

/// A reader of everything that happens after its cursor. What it reads is what the store holds, so
/// that it can neither miss nor repeat anything.
#[derive(Debug)]
pub struct Feed {
    shelf: Shelf,
    head: watch::Receiver<u64>,
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
            let head = *self.head.borrow_and_update();
            if self.cursor < head {
                let page = self.shelf.page(self.cursor).await?;
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
