//! The store as a daemon sees it: slow, sometimes full, and gone for one that is dead.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stafette_core::{Event, HandoffId, RunId};
use stafette_store::{
    AppendError, BackendError, Batch, Compacted, HandoffRow, Health, Loaded, LockBatch, LockEntry,
    LockError, LockStore, MemoryStore, Reading, Removed, Reply, Retention, RunFilter, RunRow,
    Stats, Store, Stored, UpkeepError,
};

use super::state::State;

/// The store of one life of the daemon.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) inner: MemoryStore,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) life: u64,
}

impl Access {
    /// Takes a while. Never returns to a daemon that is dead.
    async fn pass(&self) {
        let wait = {
            let mut state = self.state.lock().expect("nobody panics with it");
            state.point();
            let slowest = state.slowest;
            Duration::from_millis(state.chance.below(slowest + 1))
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        self.alive().await;
    }

    async fn alive(&self) {
        let gone = {
            let state = self.state.lock().expect("nobody panics with it");
            state.is_dead || state.life != self.life
        };
        if gone {
            pending::<()>().await;
        }
    }

    fn after<'a, T: Send + 'a>(&'a self, reply: Reply<'a, T>) -> Reply<'a, T> {
        Box::pin(async move {
            self.pass().await;
            reply.await
        })
    }

    async fn write(&self, batch: Batch) -> Result<u64, AppendError> {
        self.pass().await;
        let fails = {
            let mut state = self.state.lock().expect("nobody panics with it");
            let failing = state.failing;
            state.chance.per_mille(failing)
        };
        if fails {
            let source = BackendError::new(std::io::Error::other("as the seed wants it"));
            return Err(AppendError::Full { source });
        }
        let told: Vec<_> = batch.entries.iter().filter_map(|entry| told(&entry.body)).collect();
        let position = self.inner.append(batch).await?;
        self.state.lock().expect("nobody panics with it").stored.extend(told);
        self.pass().await;
        Ok(position)
    }
}

/// The turn whose outcome an event keeps.
fn told(body: &str) -> Option<stafette_core::TurnKey> {
    match serde_json::from_str(body).ok()? {
        Event::TurnTold(told) if !told.told.offers.is_empty() || told.told.response.is_some() => {
            Some(told.turn)
        }
        Event::TurnFinished(finished) => Some(finished.turn),
        _ => None,
    }
}

impl Store for Access {
    fn append(&self, batch: Batch) -> Reply<'_, Result<u64, AppendError>> {
        Box::pin(self.write(batch))
    }
    fn load_at(&self, run: RunId, seq: u64) -> Reading<'_, Option<Loaded>> {
        self.after(self.inner.load_at(run, seq))
    }
    fn entries(&self, run: RunId, after: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.after(self.inner.entries(run, after, limit))
    }
    fn feed(&self, after: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.after(self.inner.feed(after, limit))
    }
    fn head(&self) -> Reading<'_, u64> {
        self.after(self.inner.head())
    }
    fn entries_of(&self, run: RunId, id: HandoffId) -> Reading<'_, Vec<Stored>> {
        self.after(self.inner.entries_of(run, id))
    }
    fn run(&self, run: RunId) -> Reading<'_, Option<RunRow>> {
        self.after(self.inner.run(run))
    }
    fn runs(&self, filter: RunFilter) -> Reading<'_, Vec<RunRow>> {
        self.after(self.inner.runs(filter))
    }
    fn find_run(&self, digits: String) -> Reading<'_, Vec<RunId>> {
        self.after(self.inner.find_run(digits))
    }
    fn handoffs(&self, run: RunId) -> Reading<'_, Vec<HandoffRow>> {
        self.after(self.inner.handoffs(run))
    }
    fn handoff(&self, run: RunId, id: HandoffId) -> Reading<'_, Option<HandoffRow>> {
        self.after(self.inner.handoff(run, id))
    }
    fn questions(&self) -> Reading<'_, Vec<HandoffRow>> {
        self.after(self.inner.questions())
    }
    fn unfinished(&self) -> Reading<'_, Vec<RunId>> {
        self.after(self.inner.unfinished())
    }
    fn write_locks(&self, batch: LockBatch) -> Reply<'_, Result<u64, LockError>> {
        self.after(self.inner.write_locks(batch))
    }
    fn locks(&self) -> Reading<'_, LockStore> {
        self.after(self.inner.locks())
    }
    fn lock_entries(&self, after: u64, limit: usize) -> Reading<'_, Vec<LockEntry>> {
        self.after(self.inner.lock_entries(after, limit))
    }
    fn retain(&self, retention: Retention) -> Reply<'_, Result<Removed, UpkeepError>> {
        self.after(self.inner.retain(retention))
    }
    fn compact(&self) -> Reply<'_, Result<Compacted, UpkeepError>> {
        self.after(self.inner.compact())
    }
    fn check(&self) -> Reading<'_, Health> {
        self.after(self.inner.check())
    }
    fn stats(&self) -> Stats {
        self.inner.stats()
    }
    fn close(&self) -> Reply<'_, ()> {
        self.after(self.inner.close())
    }
}
