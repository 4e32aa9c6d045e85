//! The coordination folder: handoffs and shared state as files, for agents and people who can only
//! use files.
//!
//! `handoffs/pending`, `accepted`, `completed` and `rejected` hold one file per handoff, in the
//! folder of its state. A message dropped into `pending` hands work on; moving a file from folder
//! to folder accepts, completes or rejects a turn of an external agent. `state.json` mirrors the
//! run.
//!
//! Invariants:
//! - The files are a projection. Their content counts only after the engine accepted it; everything
//!   else in them is overwritten.
//! - No link is followed, nothing is read past its limit, and every write is atomic.
//! - No dropped file is lost: it is accepted, or in `rejected` with the reason beside it.
//! - What came with the repository, or was there before the project's state, starts nothing.
//!
//! Absent on purpose: rules about handoffs. They belong to the engine.

mod folder;
mod intake;
mod mirror;
mod moves;
mod origin;
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

/// Interval of checking the folder.
const LOOK: Duration = Duration::from_millis(250);

/// Time that an unreadable file may still be being written.
const SETTLES: Duration = Duration::from_secs(2);

/// Reads the project's workflow when a file starts a run.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, String> + Send + Sync;

/// The coordination folder of a project.
pub struct Coordination {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    folder: Folder,
    /// The path of the folder, to ask git about.
    at: PathBuf,
    /// When the project's state was made, in milliseconds: files from before are not taken.
    since: u64,
    state: StateFile,
    /// Folder and name of the file of each handoff.
    known: HashMap<(RunId, HandoffId), (Place, String)>,
    /// Files that were handled, with their attributes at that time.
    seen: HashMap<(Place, String), Seen>,
    /// Number of files of ended handoffs that are kept in each folder.
    keep: usize,
}

impl std::fmt::Debug for Coordination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordination").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Coordination {
    /// Opens the folder `at`, and creates what is missing; `memory` is the file that keeps what we
    /// wrote, `keep` the number of files of ended handoffs to keep. Files from before `since`, in
    /// milliseconds, are not taken.
    ///
    /// # Errors
    /// When it cannot be created or is not a real folder.
    pub fn open(
        engine: Engine,
        workflow: Arc<ReadWorkflow>,
        at: &Path,
        memory: PathBuf,
        keep: usize,
        since: u64,
    ) -> std::io::Result<Coordination> {
        let folder = Folder::open(at)?;
        let state = StateFile::open(folder.root()?, memory);
        let (known, seen, at) = (HashMap::new(), HashMap::new(), at.to_owned());
        Ok(Coordination { engine, workflow, folder, at, since, state, known, seen, keep })
    }

    /// Watches and mirrors until the engine is gone.
    pub async fn live(mut self) {
        // Read first: events during the catch-up are mirrored again.
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

    /// Removes the oldest files of ended handoffs, so that the folder stays manageable.
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

    /// Checks the folder once; returns true if a file was accepted.
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
