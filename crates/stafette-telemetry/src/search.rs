//! Search: the words of events, handoffs and transcripts, in an index that follows the feed.

mod transcript;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stafette_core::{AgentName, Event, RunId};
use stafette_engine::{Feed, Stored};
use stafette_store::{FindError, Finder, Text};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::book::{Book, Fact, is_silent};

pub use transcript::{Shown, shown_since};

/// How long to wait after the events could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// Where the recording of an agent's terminal is.
pub type Recordings = dyn Fn(RunId, &AgentName) -> PathBuf + Send + Sync;

/// An index that follows the feed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Search {
    finder: Arc<Finder>,
    position: watch::Sender<u64>,
}

impl Search {
    /// Opens the index in `folder`. `head` is the last event that there is.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path, head: u64) -> Result<Self, FindError> {
        let finder = Finder::open(&folder.join("find.db"), head)?;
        let position = watch::Sender::new(finder.position()?);
        Ok(Search { finder: Arc::new(finder), position })
    }

    /// The last event that is in it.
    #[must_use]
    pub fn position(&self) -> u64 {
        *self.position.borrow()
    }

    /// Waits until an event is in it, but not for long.
    pub async fn reached(&self, position: u64) {
        let mut known = self.position.subscribe();
        let wait = known.wait_for(|known| *known >= position);
        let _ = tokio::time::timeout(Duration::from_secs(2), wait).await;
    }

    /// Texts with all of these words, the best first.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn find(&self, words: String, limit: usize) -> Result<Vec<Text>, FindError> {
        let finder = self.finder.clone();
        let found = spawn_blocking(move || finder.find(&words, limit)).await;
        // The task is never called off, and what panics there panics here.
        found.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Drops the texts of a run that is gone.
    pub fn forget(&self, run: RunId) {
        let finder = self.finder.clone();
        drop(spawn_blocking(move || finder.forget(run)));
    }

    /// Follows the feed, which must begin after [`position`](Self::position), until the engine is
    /// gone.
    pub async fn follow(self, mut feed: Feed, recordings: Arc<Recordings>) {
        let mut book = Book::default();
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
            let (finder, recordings) = (self.finder.clone(), recordings.clone());
            let work = spawn_blocking(move || {
                let position = take_in(&finder, &mut book, &page, &*recordings);
                (book, position)
            });
            let Ok((kept, position)) = work.await else { return };
            book = kept;
            match position {
                Ok(position) => drop(self.position.send_replace(position)),
                Err(error) => {
                    tracing::warn!(%error, "the search index is not kept any more");
                    return;
                }
            }
        }
    }
}

fn take_in(
    finder: &Finder,
    book: &mut Book,
    page: &[Stored],
    recordings: &Recordings,
) -> Result<u64, FindError> {
    let (mut texts, mut ended, mut last) = (Vec::new(), Vec::new(), 0);
    for stored in page {
        last = stored.position;
        if is_silent(&stored.entry.name) && stored.entry.name != "turn_told" {
            continue;
        }
        let Ok(event) = serde_json::from_str::<Event>(&stored.entry.body) else { continue };
        texts.extend(words::of(stored, &event));
        for fact in book.apply(stored.run, stored.entry.at, &event) {
            if let Fact::TurnEnded { about, .. } = fact {
                ended.push((stored, about));
            }
        }
    }
    for (stored, about) in ended {
        let Ok(agent) = about.to.as_str().parse::<AgentName>() else { continue };
        let path = recordings(stored.run, &agent);
        transcript::take_in(finder, stored, about.id, agent.as_str(), &path)?;
    }
    finder.add(last, &texts)?;
    Ok(last)
}
