//! The one place of a process where locks are granted: decide, store, apply, reply.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use stafette_core::Time;
use stafette_core::lock::{Ask, Decision, GaveUp, LockEvent, LockId, LockOutcome, Locks, Refusal};
use stafette_store::{LockBatch, LockEntry, LockError, LockRow, LockStore, Store};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::driver::RestoreError;
use crate::{EngineError, clock};

/// Attempts to decide a change anew after other writers came first.
const TRIES: usize = 64;

/// The longest wait in one call.
const LONGEST_CALL: Duration = Duration::from_secs(60);

/// A waiter that has not asked for this time loses its place.
const PATIENCE: Duration = Duration::from_secs(120);

/// The interval at which the queue is searched for waiters that are gone.
const LOOK: Duration = Duration::from_secs(30);

/// The pause between two attempts to store expired locks.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of ended waits whose outcome is kept for later questions.
const REMEMBERED: usize = 256;

/// All locks of a project. Cheap to clone.
#[derive(Clone)]
pub struct LockManager {
    store: Arc<dyn Store>,
    /// Held from the decision until it is applied.
    turn: Arc<tokio::sync::Mutex<()>>,
    shown: watch::Sender<Arc<Locks>>,
    line: Arc<Mutex<Line>>,
}

#[derive(Default)]
struct Line {
    /// The time of each waiter's last question.
    seen: HashMap<LockId, Instant>,
    /// The outcomes of ended waits, the newest last.
    ended: VecDeque<(LockId, Refusal)>,
}

impl std::fmt::Debug for LockManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockManager").field("locks", &*self.shown.borrow()).finish_non_exhaustive()
    }
}

impl LockManager {
    /// Loads the locks from the store.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn open(store: Arc<dyn Store>) -> Result<LockManager, EngineError> {
        let locks = restore(&store.locks().await?)?;
        Ok(LockManager {
            store,
            turn: Arc::default(),
            shown: watch::Sender::new(Arc::new(locks)),
            line: Arc::default(),
        })
    }

    /// The locks as they were after the last change that is known here.
    pub fn shown(&self) -> Arc<Locks> {
        self.shown.borrow().clone()
    }

    /// The locks as the store has them now, whichever process wrote them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn refreshed(&self) -> Result<Arc<Locks>, EngineError> {
        let _turn = self.turn.lock().await;
        self.reload().await?;
        Ok(self.shown())
    }

    /// Makes a request, and replies once its consequences are stored. Time is passed in, and read
    /// anew when another writer came first.
    ///
    /// # Errors
    /// When the store fails to write; nothing has changed then, as far as is known.
    pub async fn ask(
        &self,
        clock: impl Fn() -> Time,
        ask: Ask,
    ) -> Result<(Vec<LockEvent>, Result<LockOutcome, Refusal>), EngineError> {
        let _turn = self.turn.lock().await;
        let mut tries = 0;
        loop {
            let now = clock();
            let before = self.shown();
            let Decision { events, answer } = before.decide(now, ask.clone());
            if events.is_empty() {
                return Ok((events, answer));
            }
            let mut next = Locks::clone(&before);
            events.iter().for_each(|event| next.apply(event));
            match self.store.write_locks(batch(now, &before, &events, &next)).await {
                Ok(_) => {
                    self.remember(&events);
                    self.shown.send_replace(Arc::new(next));
                    return Ok((events, answer));
                }
                Err(LockError::Conflict { .. }) if tries < TRIES => {
                    tries += 1;
                    self.reload().await?;
                }
                Err(error) => {
                    // It is unknown whether it was written: the store is the only truth.
                    let _ = self.reload().await;
                    return Err(error.into());
                }
            }
        }
    }

    /// Waits in the queue until the lock is there, or the time is up.
    ///
    /// # Errors
    /// When the wait ended without a lock.
    pub async fn wait(&self, id: LockId, within: Duration) -> Result<LockOutcome, EngineError> {
        let mut shown = self.shown.subscribe();
        let until = Instant::now() + within.min(LONGEST_CALL);
        self.line().seen.insert(id, Instant::now());
        loop {
            let waiter = {
                let locks = shown.borrow_and_update();
                if let Some(lock) = locks.held.get(&id) {
                    return Ok(LockOutcome::Held(lock.clone()));
                }
                locks.waiting.get(&id).cloned()
            };
            let Some(waiter) = waiter else {
                let line = self.line();
                let known = line.ended.iter().rev().find(|(ended, _)| *ended == id);
                let refusal = known.map_or(Refusal::Lost { id }, |(_, refusal)| refusal.clone());
                return Err(EngineError::Lock { refusal });
            };
            if !matches!(tokio::time::timeout_at(until, shown.changed()).await, Ok(Ok(()))) {
                return Ok(LockOutcome::Waiting(waiter));
            }
        }
    }

    /// Ends locks when they expire, until it is asked to stop.
    pub(crate) async fn keep_time(self, mut stopping: watch::Receiver<bool>) {
        let mut shown = self.shown.subscribe();
        loop {
            let (next, waiting) = {
                let locks = shown.borrow_and_update();
                (locks.deadline(), !locks.waiting.is_empty())
            };
            let far = if waiting { LOOK } else { Duration::from_secs(3600) };
            let due = tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return,
                changed = shown.changed() => match changed {
                    Ok(()) => false,
                    Err(_) => return,
                },
                () = clock::reach(next, far) => true,
            };
            if due && let Err(error) = self.pass(self.gone()).await {
                tracing::warn!(%error, "the locks stay as they are for now");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn pass(&self, gone: Vec<Ask>) -> Result<(), EngineError> {
        for ask in gone.into_iter().chain([Ask::Tick]) {
            // A refusal means that it has ended in the meantime.
            let _ = self.ask(clock::now, ask).await?.1;
        }
        Ok(())
    }

    /// The waiters that have not asked for a long time.
    fn gone(&self) -> Vec<Ask> {
        let locks = self.shown();
        let mut line = self.line();
        line.seen.retain(|id, _| locks.waiting.contains_key(id));
        let mut gone = Vec::new();
        for waiter in locks.waiting.values() {
            // A waiter from before the start gets the full time from now on.
            let seen = *line.seen.entry(waiter.id).or_insert_with(Instant::now);
            if seen.elapsed() > PATIENCE {
                gone.push(Ask::Release { id: waiter.id, by: waiter.claim.holder.clone() });
            }
        }
        gone
    }

    fn remember(&self, events: &[LockEvent]) {
        let mut line = self.line();
        for event in events {
            let (id, refusal) = match event {
                LockEvent::DeadlockFound { circle, refused } => {
                    (*refused, Refusal::Deadlock { circle: circle.clone() })
                }
                LockEvent::WaitEnded { id, why: GaveUp::Late } => (*id, Refusal::Late { id: *id }),
                LockEvent::WaitEnded { id, why: GaveUp::Withdrawn | GaveUp::HolderGone } => {
                    (*id, Refusal::Lost { id: *id })
                }
                _ => continue,
            };
            line.ended.push_back((id, refusal));
            if line.ended.len() > REMEMBERED {
                line.ended.pop_front();
            }
        }
    }

    async fn reload(&self) -> Result<(), EngineError> {
        let book = self.store.locks().await?;
        if book.version != self.shown.borrow().version {
            let locks = restore(&book)?;
            self.shown.send_replace(Arc::new(locks));
        }
        Ok(())
    }

    fn line(&self) -> std::sync::MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Restores the locks from the store's data.
///
/// # Errors
/// When one of them cannot be read.
pub fn restore(book: &LockStore) -> Result<Locks, RestoreError> {
    let unreadable = |seq| move |source| RestoreError::Unreadable { seq, source };
    let mut locks = Locks { version: book.version, fence: book.fence, ..Locks::default() };
    for row in &book.rows {
        let id = LockId(row.id);
        if row.held {
            let lock = serde_json::from_str(&row.body).map_err(unreadable(row.id))?;
            locks.held.insert(id, lock);
        } else {
            let waiter = serde_json::from_str(&row.body).map_err(unreadable(row.id))?;
            locks.waiting.insert(id, waiter);
        }
    }
    Ok(locks)
}

fn batch(now: Time, before: &Locks, events: &[LockEvent], next: &Locks) -> LockBatch {
    let entry = |(seq, event): (u64, &LockEvent)| LockEntry {
        seq,
        at: now,
        name: event.name().to_owned(),
        body: json(event),
    };
    let touched: BTreeSet<LockId> = events.iter().map(LockEvent::id).collect();
    let (mut put, mut remove) = (Vec::new(), Vec::new());
    for id in touched {
        match (next.held.get(&id), next.waiting.get(&id)) {
            (Some(lock), _) => put.push(LockRow { id: id.0, held: true, body: json(lock) }),
            (None, Some(waiter)) => {
                put.push(LockRow { id: id.0, held: false, body: json(waiter) });
            }
            (None, None) => remove.push(id.0),
        }
    }
    LockBatch {
        expected_version: before.version,
        entries: (before.version + 1..).zip(events).map(entry).collect(),
        fence: next.fence,
        put,
        remove,
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our own types are JSON")
}
