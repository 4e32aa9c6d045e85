//! Locks for agents, visitors and people: asked for here, decided in the core, kept by the store.
//!
//! An agent holds a lock for a turn: when its turn fails or is fenced, or its run is over, the lock
//! ends, and what it would still write with it is refused.

mod lock_manager;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stafette_core::lock::{
    Answer, Ask, Claim, Conflict, Holder, Link, Lock, LockEvent, LockId, Locks, OnConflict, Who,
};
use stafette_core::{HandoffId, Input, Millis, Run, RunId, State, Time};

pub use lock_manager::{LockManager, LockManagerError, restore as restore_locks};

use crate::clock;
use crate::{Engine, EngineError};

/// A deadlock is shown for so long.
const SHOWN: Millis = Millis::hours(1);

/// So many of the newest entries are searched for deadlocks.
const SEARCHED: u64 = 256;

/// A deadlock that was found, and who was refused because of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlockAlert {
    /// When.
    pub at: Time,
    /// Who waited for whom.
    pub circle: Vec<Link>,
    /// The youngest waiter.
    pub refused: LockId,
}

impl Engine {
    /// All locks as they are now.
    #[must_use]
    pub fn locks(&self) -> Arc<Locks> {
        self.desk().shown()
    }

    /// Takes a lock, or gets a place in the line for it.
    ///
    /// # Errors
    /// When it is refused, or the store does not take it.
    pub async fn take_lock(
        &self,
        claim: Claim,
        on_conflict: OnConflict,
        wait: Millis,
    ) -> Result<Answer, EngineError> {
        self.ask_locks(Ask::Take { claim, on_conflict, wait }).await
    }

    /// The lock of a waiter as soon as it has it, or its place in the line after `within`, of which
    /// a minute counts: who still waits asks again, and who does not for two minutes has gone.
    ///
    /// # Errors
    /// When the wait ended without a lock, with the reason.
    pub async fn wait_lock(&self, id: LockId, within: Duration) -> Result<Answer, EngineError> {
        Ok(self.desk().wait(id, within).await?)
    }

    /// Keeps a lock for longer.
    ///
    /// # Errors
    /// When it is lost or somebody else's.
    pub async fn renew_lock(
        &self,
        id: LockId,
        by: Holder,
        fence: Option<u64>,
        lease: Option<Millis>,
    ) -> Result<Answer, EngineError> {
        self.ask_locks(Ask::Renew { id, by, fence, lease }).await
    }

    /// Gives a lock back, or a place in the line.
    ///
    /// # Errors
    /// When it is lost or somebody else's.
    pub async fn release_lock(&self, id: LockId, by: Holder) -> Result<(), EngineError> {
        self.ask_locks(Ask::Release { id, by }).await.map(drop)
    }

    /// Takes a lock from its holder. Only for those who may: the caller has seen to that.
    ///
    /// # Errors
    /// When it is lost, or there is no reason.
    pub async fn take_over_lock(
        &self,
        id: LockId,
        by: Holder,
        why: String,
    ) -> Result<Answer, EngineError> {
        self.ask_locks(Ask::TakeOver { id, by, why }).await
    }

    /// Whether `path` may be written with the lock that has this fencing number.
    ///
    /// # Errors
    /// When it may not: the lock is lost, or not on that path.
    pub async fn check_lock(&self, path: &str, fence: u64) -> Result<Lock, EngineError> {
        let locks = self.desk().refreshed().await?;
        Ok(locks.check(clock::now(), path, fence)?.clone())
    }

    /// Whether `holder` may write these paths: nobody else has a lock on them, and the one with the
    /// fencing number, when one is shown, is still theirs.
    ///
    /// # Errors
    /// What is in the way.
    pub async fn may_write(
        &self,
        holder: &Holder,
        paths: &[String],
        fence: Option<u64>,
    ) -> Result<(), EngineError> {
        let locks = self.desk().refreshed().await?;
        let paths = paths.iter().map(String::as_str);
        Ok(locks.may_write(clock::now(), holder, paths, fence)?)
    }

    /// The deadlocks of the last hour, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn deadlocks(&self) -> Result<Vec<DeadlockAlert>, EngineError> {
        let after = self.locks().version.saturating_sub(SEARCHED);
        let entries = self.store().lock_entries(after, usize::MAX).await?;
        let now = clock::now();
        let recent = entries
            .iter()
            .rev()
            .filter(|entry| entry.name == "deadlock_found" && now.since(entry.at) < SHOWN);
        let alert = |at, body: &str| match serde_json::from_str(body) {
            Ok(LockEvent::DeadlockFound { circle, refused }) => {
                Some(DeadlockAlert { at, circle, refused })
            }
            _ => None,
        };
        Ok(recent.filter_map(|entry| alert(entry.at, &entry.body)).collect())
    }

    /// What is left of runs that ended while nobody was there to see it.
    pub(crate) async fn free_locks(&self, unfinished: &[RunId]) {
        let locks = self.locks();
        let claims = locks.held.values().map(|lock| &lock.claim);
        let runs: BTreeSet<RunId> = claims
            .chain(locks.waiting.values().map(|waiter| &waiter.claim))
            .filter_map(|claim| match claim.holder.who {
                Who::Session { run, .. } => Some(run),
                Who::Visitor { .. } | Who::Person { .. } => None,
            })
            .filter(|run| !unfinished.contains(run))
            .collect();
        for run in runs {
            self.desk().clear(run, Vec::new()).await;
        }
    }

    async fn ask_locks(&self, ask: Ask) -> Result<Answer, EngineError> {
        let (events, answer) = self.desk().ask(clock::now, self.redacted(ask)).await?;
        for event in events {
            if let LockEvent::DeadlockFound { circle, .. } = event {
                self.alert_runs(&circle);
            }
        }
        answer.map_err(|refusal| EngineError::Lock { refusal })
    }

    /// Every run that was part of a deadlock has it in its log.
    fn alert_runs(&self, circle: &[Link]) {
        let message = stafette_core::lock::Refusal::Deadlock { circle: circle.to_vec() };
        let message = message.to_string();
        let mut told: Vec<RunId> = Vec::new();
        for link in circle {
            let Who::Session { run, .. } = link.holder.who else { continue };
            if told.contains(&run) {
                continue;
            }
            told.push(run);
            let (engine, message) = (self.clone(), message.clone());
            // Not awaited: the run may be busy, and whoever asked need not wait for it.
            tokio::spawn(async move {
                let input = Input::Alert { code: "DEADLOCK".to_owned(), message };
                if let Err(error) = engine.send(run, input).await {
                    tracing::warn!(%run, %error, "a deadlock is not in the run's log");
                }
            });
        }
    }
}

impl LockManager {
    /// Ends the locks of those turns of a run that are over.
    pub(crate) async fn mind(&self, run: &Run) {
        let keep = if run.status().is_final() { Vec::new() } else { at_work(run) };
        self.clear(run.id, keep).await;
    }

    /// Ends what a run holds, but for these of its handoffs and attempts.
    pub(crate) async fn clear(&self, run: RunId, keep: Vec<(HandoffId, u32)>) {
        let over = |claim: &Claim| {
            let ours = matches!(&claim.holder.who, Who::Session { run: of, .. } if *of == run);
            ours && !claim.turn.is_some_and(|it| keep.contains(&(it.handoff, it.attempt)))
        };
        let locks = self.shown();
        let mut claims = locks.held.values().map(|lock| &lock.claim);
        let mut waits = locks.waiting.values().map(|waiter| &waiter.claim);
        if !claims.any(over) && !waits.any(over) {
            return;
        }
        if let Err(error) = self.ask(clock::now, Ask::Clear { run, keep }).await {
            // The lease ends them all the same.
            tracing::warn!(%run, %error, "its locks stay until their leases are over");
        }
    }
}

/// The handoffs of a run whose agents are in the midst of it, with their attempts.
fn at_work(run: &Run) -> Vec<(HandoffId, u32)> {
    let busy = run.open().filter(|handoff| {
        handoff.state.turn().is_some() || matches!(handoff.state, State::Blocked { .. })
    });
    busy.map(|handoff| (handoff.id, handoff.attempt)).collect()
}

impl From<LockManagerError> for EngineError {
    fn from(error: LockManagerError) -> Self {
        match error {
            LockManagerError::Refused { refusal } => EngineError::Lock { refusal },
            LockManagerError::Store { source } => EngineError::LockStore { source },
            LockManagerError::Read { source } => EngineError::Read { source },
            LockManagerError::Restore { source } => EngineError::Restore { source },
        }
    }
}

impl From<Conflict> for EngineError {
    fn from(conflict: Conflict) -> Self {
        EngineError::MayNotWrite { conflict }
    }
}
