//! A store that is full for a while, that is slow to say what it took, and that somebody else
//! writes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stafette_core::{HandoffId, RunId};
use stafette_store::{
    AppendError, BackendError, Batch, Compacted, HandoffRow, Health, Loaded, LockBatch, LockEntry,
    LockError, LockStore, MemoryStore, Reading, Removed, Reply, Retention, RunFilter, RunRow,
    Stats, Store, Stored, UpkeepError,
};

/// Refuses the next so many appends as full, and says nothing of what it took while `mute` is held;
/// otherwise a store in memory.
#[derive(Clone)]
pub(crate) struct Flaky {
    pub(crate) inner: MemoryStore,
    pub(crate) refuse: Arc<AtomicU32>,
    pub(crate) mute: Arc<tokio::sync::Mutex<()>>,
}

impl Flaky {
    pub(crate) fn new() -> Self {
        Flaky { inner: MemoryStore::new(), refuse: Arc::default(), mute: Arc::default() }
    }
}

impl Store for Flaky {
    fn append(&self, batch: Batch) -> Reply<'_, Result<u64, AppendError>> {
        let left =
            self.refuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match left {
            Ok(_) => Box::pin(async {
                let source = BackendError::new(std::io::Error::other("no room"));
                Err(AppendError::Full { source })
            }),
            Err(_) => Box::pin(async {
                let taken = self.inner.append(batch).await;
                drop(self.mute.lock().await);
                taken
            }),
        }
    }
    fn load_at(&self, run: RunId, seq: u64) -> Reading<'_, Option<Loaded>> {
        self.inner.load_at(run, seq)
    }
    fn entries(&self, run: RunId, after: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.inner.entries(run, after, limit)
    }
    fn feed(&self, after: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.inner.feed(after, limit)
    }
    fn head(&self) -> Reading<'_, u64> {
        self.inner.head()
    }
    fn entries_of(&self, run: RunId, id: HandoffId) -> Reading<'_, Vec<Stored>> {
        self.inner.entries_of(run, id)
    }
    fn run(&self, run: RunId) -> Reading<'_, Option<RunRow>> {
        self.inner.run(run)
    }
    fn runs(&self, filter: RunFilter) -> Reading<'_, Vec<RunRow>> {
        self.inner.runs(filter)
    }
    fn find_run(&self, digits: String) -> Reading<'_, Vec<RunId>> {
        self.inner.find_run(digits)
    }
    fn handoffs(&self, run: RunId) -> Reading<'_, Vec<HandoffRow>> {
        self.inner.handoffs(run)
    }
    fn handoff(&self, run: RunId, id: HandoffId) -> Reading<'_, Option<HandoffRow>> {
        self.inner.handoff(run, id)
    }
    fn questions(&self) -> Reading<'_, Vec<HandoffRow>> {
        self.inner.questions()
    }
    fn unfinished(&self) -> Reading<'_, Vec<RunId>> {
        self.inner.unfinished()
    }
    fn write_locks(&self, batch: LockBatch) -> Reply<'_, Result<u64, LockError>> {
        self.inner.write_locks(batch)
    }
    fn locks(&self) -> Reading<'_, LockStore> {
        self.inner.locks()
    }
    fn lock_entries(&self, after: u64, limit: usize) -> Reading<'_, Vec<LockEntry>> {
        self.inner.lock_entries(after, limit)
    }
    fn retain(&self, retention: Retention) -> Reply<'_, Result<Removed, UpkeepError>> {
        self.inner.retain(retention)
    }
    fn compact(&self) -> Reply<'_, Result<Compacted, UpkeepError>> {
        self.inner.compact()
    }
    fn check(&self) -> Reading<'_, Health> {
        self.inner.check()
    }
    fn stats(&self) -> Stats {
        self.inner.stats()
    }
    fn close(&self) -> Reply<'_, ()> {
        self.inner.close()
    }
}
