//! Runs that do not continue until a person decides: those of before, until [`Engine::release`], those
//! whose workflow is not trusted, and those of which something in the store is damaged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stafette_core::{Input, RunId, Status};
use stafette_store::{Damage, ReadError};

use super::Engine;
use crate::EngineError;

/// The runs that are known to be damaged in the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct DamagedRuns(Arc<Mutex<HashMap<RunId, Damage>>>);

impl DamagedRuns {
    /// Notes that a run cannot be taken over, if that is because of damage.
    pub(crate) fn note(&self, run: RunId, error: &EngineError) {
        if let EngineError::Read { source: ReadError::Damaged { source } } = error {
            self.lock().insert(run, *source);
        }
    }

    /// Returns what is damaged of a run.
    pub(crate) fn of(&self, run: RunId) -> Option<Damage> {
        self.lock().get(&run).copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Damage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers of runs that have work left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenRuns {
    pub running: usize,
    /// Paused by a person, until somebody resumes them.
    pub paused: usize,
    /// Not continued before a person acts; those that are damaged count as well.
    pub stopped: usize,
}

/// Runs that do not continue: `Engine::stopped`.
#[derive(Clone, Copy, Debug)]
pub struct StoppedRuns<'a> {
    pub(crate) engine: &'a Engine,
}

impl StoppedRuns<'_> {
    /// True until [`Engine::release`].
    #[must_use]
    pub fn is_held(self) -> bool {
        !*self.engine.released.borrow()
    }

    /// Returns once runs that were taken over continue, or the engine stops.
    pub async fn released(self) {
        let (mut released, mut stopping) =
            (self.engine.released.subscribe(), self.engine.stopping.subscribe());
        tokio::select! {
            biased;
            _ = released.wait_for(|released| *released) => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
    }

    /// True if a run that is not over waits to be continued.
    pub(crate) fn contains(self, run: RunId) -> bool {
        let shown = self.engine.handle(run).map(|handle| handle.shown);
        shown.is_some_and(|shown| self.is_held() || shown.borrow().is_stopped)
    }

    /// How many runs wait for [`Engine::release`], or were not trusted at the last one.
    #[must_use]
    pub fn count(self) -> usize {
        self.engine.living().iter().filter(|run| self.contains(run.id)).count()
    }

    /// Counts the runs that have work left, by what they do.
    #[must_use]
    pub fn open_runs(self) -> OpenRuns {
        let mut counted = OpenRuns::default();
        for run in self.engine.living() {
            let status = run.status();
            match status {
                // What waits for an answer is not held up.
                _ if self.contains(run.id) => {
                    counted.stopped += usize::from(status.waiting_on() != Some("human"));
                }
                // One that is over may have changes that are still being applied.
                _ if status.is_final() => {}
                Status::Paused => counted.paused += 1,
                _ => counted.running += 1,
            }
        }
        let damaged: Vec<RunId> = self.engine.damaged.lock().keys().copied().collect();
        counted.stopped += damaged.into_iter().filter(|run| self.is_left(*run)).count();
        counted
    }

    /// Returns the runs that would not continue, each with the reason.
    #[must_use]
    pub fn untrusted(self) -> Vec<(RunId, String)> {
        let stopped = self.engine.living().into_iter().filter(|run| self.contains(run.id));
        stopped.filter_map(|run| Some((run.id, self.engine.trusts(&run.workflow).err()?))).collect()
    }

    /// The number of runs that are known to be damaged in the store.
    #[must_use]
    pub fn damaged(self) -> usize {
        self.engine.damaged.lock().len()
    }

    /// True for a run that is not continued, because what is stored of it is damaged.
    #[must_use]
    pub fn is_left(self, run: RunId) -> bool {
        self.engine.damaged.of(run).is_some() && self.engine.shown(run).is_none()
    }

    /// Stops a run of which something in the store is damaged. One that has a task gets an alert and
    /// is paused: its state in memory is right, and a person decides.
    pub async fn stop_damaged(self, run: RunId, damage: Damage) {
        if self.engine.damaged.lock().insert(run, damage).is_some() {
            return;
        }
        tracing::error!(%damage, "found by the store's check");
        let (code, message) = ("STORE_DAMAGED".to_owned(), damage.to_string());
        let (alert, pause) =
            (Input::Alert { code, message }, Input::Pause { by: "the store's check".to_owned() });
        for input in [alert, pause] {
            if self.engine.shown(run).is_some()
                && let Err(error) = self.engine.send(run, input).await
            {
                tracing::error!(%run, %error, "cannot be stopped");
            }
        }
    }
}
