//! Full-text search in events, handoffs and transcripts, with an index that follows the feed.

mod transcript;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stafette_core::redact::{Redact, Redactor};
use stafette_core::{AgentName, HandoffId, RunId};
use stafette_engine::{Engine, Feed, Seen};
use stafette_store::{FindError, Finder, Text};
use tokio::sync::watch;

use crate::{GATHER, LONGEST};

pub use transcript::{Shown, shown_since};

/// Pause after the events could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// An index that follows the feed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Search {
    finder: Arc<dyn Finder>,
    position: watch::Sender<u64>,
}

impl Search {
    /// Opens an existing index and continues from its position.
    pub async fn open(finder: Arc<dyn Finder>) -> Result<Self, FindError> {
        let position = watch::Sender::new(finder.position().await?);
        Ok(Search { finder, position })
    }

    /// Returns the position of the last indexed event.
    pub fn position(&self) -> u64 {
        *self.position.borrow()
    }

    /// Waits until an event is indexed, up to a time limit.
    pub async fn reached(&self, position: u64) {
        let mut known = self.position.subscribe();
        let wait = known.wait_for(|known| *known >= position);
        let _ = tokio::time::timeout(LONGEST, wait).await;
    }

    /// Returns texts that contain all words, the best first.
    pub async fn find(&self, words: String, limit: usize) -> Result<Vec<Text>, FindError> {
        self.finder.find(words, limit).await
    }

    /// Removes the texts of a deleted run.
    pub fn forget(&self, run: RunId) {
        let finder = self.finder.clone();
        drop(tokio::spawn(async move { finder.forget(run).await }));
    }

    /// Follows the feed of `engine`, which must begin after [`position`](Self::position), until the
    /// engine is gone.
    pub async fn follow(self, feed: Feed, engine: Engine) {
        let mut feed = feed.gather(GATHER);
        loop {
            let page = match feed.seen().await {
                Ok(Some(page)) => page,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "the events cannot be read");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let shown = shown(&engine, &page).await;
            match take_in(&*self.finder, &page, shown, &engine.settings().redactor).await {
                Ok(position) => drop(self.position.send_replace(position)),
                Err(error) => {
                    tracing::warn!(%error, "the search index is not kept any more");
                    return;
                }
            }
        }
    }
}

/// Recording of an agent's terminal in a turn.
struct Recorded {
    /// Event that ended the turn.
    seen: Arc<Seen>,
    handoff: HandoffId,
    agent: AgentName,
    recording: PathBuf,
}

/// Returns the recordings of turns that ended. The store knows whose they were, so that nothing has
/// to be kept across a restart.
async fn shown(engine: &Engine, page: &[Arc<Seen>]) -> Vec<Recorded> {
    let mut ended = BTreeMap::new();
    for seen in page {
        let ends = ["turn_finished", "turn_failed", "handoff_closed"];
        if let Some(handoff) = seen.handoff().filter(|_| ends.contains(&seen.name())) {
            ended.insert((seen.run, handoff), seen.clone());
        }
    }
    let mut shown = Vec::new();
    for ((run, handoff), seen) in ended {
        let Ok(Some(row)) = engine.store().handoff(run, handoff).await else { continue };
        let Ok(agent) = row.to.parse::<AgentName>() else { continue };
        let recording = engine.terminals().recording(run, &agent);
        shown.push(Recorded { seen, handoff, agent, recording });
    }
    shown
}

async fn take_in(
    finder: &dyn Finder,
    page: &[Arc<Seen>],
    shown: Vec<Recorded>,
    redactor: &Redactor,
) -> Result<u64, FindError> {
    let mut texts: Vec<Text> = page.iter().filter_map(|seen| words::of(seen)).collect();
    texts.iter_mut().for_each(|text| text.body.redact(redactor));
    for Recorded { seen, handoff, agent, recording } in shown {
        transcript::take_in(finder, &seen, handoff, agent.as_str(), recording, redactor).await?;
    }
    let last = page.last().map_or(0, |seen| seen.position);
    finder.add(last, texts).await?;
    Ok(last)
}
