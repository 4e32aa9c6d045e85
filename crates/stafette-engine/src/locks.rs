//! Locks for agents, external programs and people: requested here, decided in the core, kept by the
//! store.
//!
//! An agent holds a lock for a turn: when the turn fails or is fenced, or its run ends, the lock
//! ends, and later writes with it are refused.

mod lock_manager;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stafette_core::lock::{
    Ask, Claim, Conflict, Holder, Link, LockEvent, LockId, LockOutcome, Locks as LockTable,
    OnConflict, Who,
};
use stafette_core::{HandoffId, Input, Millis, Run, RunId, State, Time};

pub use lock_manager::{LockManager, restore as restore_locks};

use crate::clock;
use crate::{Engine, EngineError};

/// The time for which a deadlock is shown.
const SHOWN: Millis = Millis::hours(1);

/// The number of the newest entries that are searched for deadlocks.
const SEARCHED: u64 = 256;

/// A deadlock that was found, and the waiter that was refused because of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlockAlert {
    /// The time at which it was found.
    pub at: Time,
    /// The circle of holders that waited for each other.
    pub circle: Vec<Link>,
    /// The request that was refused: that of the youngest waiter.
    pub refused: LockId,
}

/// A place in the queue for a lock, released when it is dropped: a waiter that is gone must not hold
/// up the others.
#[derive(Debug)]
pub struct QueuePlace {
    engine: Engine,
    id: LockId,
    holder: Option<Holder>,
}

impl QueuePlace {
    /// Leaves the place to its holder, who knows of it now.
    pub fn keep(mut self) {
        self.holder = None;
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let Some(holder) = self.holder.take() else { return };
        let (engine, id) = (self.engine.clone(), self.id);
        // Fails if the place is gone already, which does not matter.
        tokio::spawn(async move { engine.locks().release(id, holder).await });
    }
}

/// The locks of a project: `Engine::locks`.
#[derive(Clone, Copy, Debug)]
pub struct Locks<'a> {
    pub(crate) engine: &'a Engine,
}

impl Locks<'_> {
    /// All locks as they are now.
    #[must_use]
    pub fn now(self) -> Arc<LockTable> {
        self.engine.shared().locks.shown()
    }

    /// Takes a lock, or a place in the queue for it.
    ///
    /// # Errors
    /// When it is refused, or the store fails to write.
    pub async fn take(
        self,
        claim: Claim,
        on_conflict: OnConflict,
        wait: Millis,
    ) -> Result<LockOutcome, EngineError> {
        self.ask(Ask::Take { claim, on_conflict, wait }).await
    }

    /// Returns the lock of a waiter as soon as it is granted, or its place in the queue after
    /// `within`, which counts for at most a minute: a waiter has to ask again, and one that does
    /// not ask for two minutes loses its place.
    ///
    /// # Errors
    /// When the wait ended without a lock, with the reason.
    pub async fn wait(self, id: LockId, within: Duration) -> Result<LockOutcome, EngineError> {
        self.engine.shared().locks.wait(id, within).await
    }

    /// Renews the lease of a lock.
    ///
    /// # Errors
    /// When the lock is lost, or another holder has it.
    pub async fn renew(
        self,
        id: LockId,
        by: Holder,
        fence: Option<u64>,
        lease: Option<Millis>,
    ) -> Result<LockOutcome, EngineError> {
        self.ask(Ask::Renew { id, by, fence, lease }).await
    }

    /// Releases a lock, or a place in the queue.
    ///
    /// # Errors
    /// When the lock is lost, or another holder has it.
    pub async fn release(self, id: LockId, by: Holder) -> Result<(), EngineError> {
        self.ask(Ask::Release { id, by }).await.map(drop)
    }

    /// Returns a guard that releases a place in the queue unless it is kept.
    #[must_use]
    pub fn place(self, id: LockId, holder: Holder) -> QueuePlace {
        QueuePlace { engine: self.engine.clone(), id, holder: Some(holder) }
    }

    /// Takes a lock from its holder. The caller has checked that this is permitted.
    ///
    /// # Errors
    /// When the lock is lost, or there is no reason.
    pub async fn take_over(
        self,
        id: LockId,
        by: Holder,
        why: String,
    ) -> Result<LockOutcome, EngineError> {
        self.ask(Ask::TakeOver { id, by, why }).await
    }

    /// Checks that `holder` may write these paths: no other holder has a lock on them, and the lock
    /// with the fencing number, if one is given, is still theirs.
    ///
    /// # Errors
    /// The lock that is in the way.
    pub async fn may_write(
        self,
        holder: &Holder,
        paths: &[String],
        fence: Option<u64>,
    ) -> Result<(), EngineError> {
        let locks = self.engine.shared().locks.refreshed().await?;
        let paths = paths.iter().map(String::as_str);
        Ok(locks.may_write(clock::now(), holder, paths, fence)?)
    }

    /// The deadlocks of the last hour, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn deadlocks(self) -> Result<Vec<DeadlockAlert>, EngineError> {
        let after = self.now().version.saturating_sub(SEARCHED);
        let entries = self.engine.store().lock_entries(after, usize::MAX).await?;
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

    /// Ends the locks of runs that ended while no daemon ran.
    pub(crate) async fn free_ended(self, unfinished: &[RunId]) {
        let locks = self.now();
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
            self.engine.shared().locks.clear(run, Vec::new()).await;
        }
    }

    async fn ask(self, ask: Ask) -> Result<LockOutcome, EngineError> {
        let (events, answer) =
            self.engine.shared().locks.ask(clock::now, self.engine.redacted(ask)).await?;
        for event in events {
            if let LockEvent::DeadlockFound { circle, .. } = event {
                self.alert_runs(&circle);
            }
        }
        answer.map_err(|refusal| EngineError::Lock { refusal })
    }

    /// Records a deadlock in every run that was part of it.
    fn alert_runs(self, circle: &[Link]) {
        let message = stafette_core::lock::Refusal::Deadlock { circle: circle.to_vec() };
        let message = message.to_string();
        let mut told: Vec<RunId> = Vec::new();
        for link in circle {
            let Who::Session { run, .. } = link.holder.who else { continue };
            if told.contains(&run) {
                continue;
            }
            told.push(run);
            let (engine, message) = (self.engine.clone(), message.clone());
            // Not awaited: the run may be busy, and the caller need not wait for it.
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
    /// Ends the locks of those turns of a run that have ended.
    pub(crate) async fn mind(&self, run: &Run) {
        let keep = if run.status().is_final() { Vec::new() } else { at_work(run) };
        self.clear(run.id, keep).await;
    }

    /// Ends the locks of a run, except those of these handoffs and attempts.
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
            // The lease ends them in any case.
            tracing::warn!(%run, %error, "its locks stay until their leases are over");
        }
    }
}

/// The handoffs of a run whose agents are at work, with their attempts.
fn at_work(run: &Run) -> Vec<(HandoffId, u32)> {
    let busy = run.open().filter(|handoff| {
        handoff.state.turn().is_some() || matches!(handoff.state, State::Blocked { .. })
    });
    busy.map(|handoff| (handoff.id, handoff.attempt)).collect()
}

impl From<Conflict> for EngineError {
    fn from(conflict: Conflict) -> Self {
        EngineError::MayNotWrite { conflict }
    }
}
