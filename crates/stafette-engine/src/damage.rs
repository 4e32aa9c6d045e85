//! Runs of which something in the store is damaged: they are stopped, and a person decides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stafette_core::{Input, RunId};
use stafette_store::{Damage, ReadError};

use crate::{Engine, EngineError};

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

impl Engine {
    /// The number of runs that are known to be damaged in the store.
    #[must_use]
    pub fn damaged_runs(&self) -> usize {
        self.damaged.lock().len()
    }

    /// True for a run that is not continued, because what is stored of it is damaged.
    #[must_use]
    pub fn is_left(&self, run: RunId) -> bool {
        self.damaged.of(run).is_some() && self.shown(run).is_none()
    }

    /// Stops a run of which something in the store is damaged. One that has a task gets an alert and
    /// is paused: its state in memory is right, and a person decides.
    pub async fn stop_damaged(&self, run: RunId, damage: Damage) {
        if self.damaged.lock().insert(run, damage).is_some() {
            return;
        }
        tracing::error!(%damage, "found by the store's check");
        let (code, message) = ("STORE_DAMAGED".to_owned(), damage.to_string());
        let (alert, pause) =
            (Input::Alert { code, message }, Input::Pause { by: "the store's check".to_owned() });
        for input in [alert, pause] {
            if self.shown(run).is_some()
                && let Err(error) = self.send(run, input).await
            {
                tracing::error!(%run, %error, "cannot be stopped");
            }
        }
    }
}
