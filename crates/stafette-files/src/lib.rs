//! The coordination folder: handoffs and shared state as files, for agents and people who know
//! nothing but files.
//!
//! `handoffs/pending`, `accepted`, `completed` and `rejected` hold one file a handoff, in the folder
//! of its state. Who drops a message into `pending` hands work on; who moves a file from folder to
//! folder accepts, completes or rejects a turn of an external agent. `state.json` mirrors the run.
//!
//! Invariants:
//! - The files are a projection. What they say counts only after the engine took it; whatever else
//!   is in them is put right.
//! - No link is followed, nothing is read past its limit, nothing is written but whole.
//! - Nothing that somebody dropped is lost: it is taken, or in `rejected` with the reason beside it.
//!
//! Absent on purpose: rules about handoffs. They are the engine's.

mod folder;
mod intake;
mod mirror;
mod moves;
mod state;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stafette_core::{HandoffId, RunId, Workflow};
use stafette_engine::Engine;

pub use folder::MAX_FILE;
use folder::{Folder, Place, Seen};
use state::StateFile;

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// How long a file that cannot be read yet may still be in somebody's hands.
const SETTLES: Duration = Duration::from_secs(2);

/// How the project's workflow is read when a file begins a run.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, String> + Send + Sync;

/// The coordination folder of a project.
pub struct Coordination {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    folder: Folder,
    state: StateFile,
    /// Where the file of each handoff is, and under which name.
    known: HashMap<(RunId, HandoffId), (Place, String)>,
    /// What was looked at and is still as it was.
    seen: HashMap<(Place, String), Seen>,
    /// How many files of what is over are kept in each folder.
    keep: usize,
}

impl std::fmt::Debug for Coordination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordination").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Coordination {
    /// Opens the folder `at`, making what is missing of it; `memory` is where we note what we wrote,
    /// `keep` how many files of what is over stay.
    ///
    /// # Errors
    /// When it cannot be made or is not a folder of its own.
    pub fn open(
        engine: Engine,
        workflow: Arc<ReadWorkflow>,
        at: &Path,
        memory: PathBuf,
        keep: usize,
    ) -> std::io::Result<Coordination> {
        let folder = Folder::open(at)?;
        let state = StateFile::open(folder.root()?, memory);
        let (known, seen) = (HashMap::new(), HashMap::new());
        Ok(Coordination { engine, workflow, folder, state, known, seen, keep })
    }

    /// Watches and mirrors until the engine is gone.
    pub async fn live(mut self) {
        // Read first: what happens while we catch up is told again.
        let head = self.engine.store().head().await.unwrap_or(0);
        let mut feed = self.engine.feed(head);
        self.catch_up().await;
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut changed = tokio::select! {
                page = feed.next() => match page {
                    Ok(Some(page)) => {
                        for stored in &page {
                            self.mirror_event(stored).await;
                        }
                        true
                    }
                    Ok(None) => return,
                    Err(error) => {
                        tracing::warn!(%error, "the folder cannot follow the store");
                        tokio::time::sleep(LOOK).await;
                        false
                    }
                },
                _ = looks.tick() => false,
            };
            changed |= self.look().await;
            if changed || self.state.was_touched() {
                self.mirror_state().await;
            }
        }
    }

    /// Removes the oldest files of what is over, so that the folder stays one that can be looked
    /// through.
    fn clear(&self, place: Place, mut entries: BTreeMap<String, Seen>) -> BTreeMap<String, Seen> {
        let surplus = entries.len().saturating_sub(self.keep);
        let mut oldest: Vec<(Seen, String)> = match surplus {
            0 => Vec::new(),
            _ => entries.iter().map(|(name, seen)| (*seen, name.clone())).collect(),
        };
        oldest.sort_by_key(|(seen, _)| seen.changed());
        for (_, name) in oldest.into_iter().take(surplus) {
            if let Err(error) = self.folder.clear(place, &name) {
                tracing::warn!(%error, name, "cannot be cleared away");
            }
            entries.remove(&name);
        }
        entries
    }

    /// Looks through the folder once; tells whether something was taken in.
    async fn look(&mut self) -> bool {
        let mut took = false;
        for place in Place::ALL {
            let entries = match self.folder.list(place) {
                Ok(entries) => entries,
                Err(error) => {
                    tracing::warn!(%error, folder = place.name(), "cannot be read");
                    continue;
                }
            };
            let entries = match place {
                Place::Pending | Place::Accepted => entries,
                Place::Completed | Place::Rejected => self.clear(place, entries),
            };
            self.seen.retain(|(at, name), _| *at != place || entries.contains_key(name));
            for (name, seen) in entries {
                let key = (place, name);
                if self.seen.get(&key) == Some(&seen) {
                    continue;
                }
                let settled = match place {
                    Place::Pending => self.take_in(&key.1, seen).await,
                    _ => self.moved(place, &key.1).await,
                };
                took = true;
                if settled {
                    self.seen.insert(key, seen);
                }
            }
        }
        took
    }
}
