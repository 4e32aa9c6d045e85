//! The interface of every backend.

use std::pin::Pin;

use stafette_model::{HandoffId, RunId, Time};

use crate::{
    AppendError, Batch, Compacted, HandoffRow, Health, Loaded, LockBatch, LockEntry, LockError,
    LockStore, ReadError, Removed, RunRow, Stats, Stored, UpkeepError,
};

/// Maximum number of runs that [`Store::find_run`] returns.
pub const FIND_LIMIT: usize = 16;

/// A future that resolves to the result.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A future that resolves to what was read.
pub type Reading<'a, T> = Reply<'a, Result<T, ReadError>>;

/// Filter for a list of runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunFilter {
    /// Only runs with this status.
    pub status: Option<String>,
    /// Only runs after this one in the list: the last run of the previous page.
    pub after: Option<RunId>,
    /// Maximum number of runs.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        RunFilter { status: None, after: None, limit: 100 }
    }
}

/// Rule for removing finished runs: those that both fields allow. A run that has not ended stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Only runs that ended before this time; `None` ignores the age.
    pub finished_before: Option<Time>,
    /// Number of the most recently ended runs to keep, regardless of their age.
    pub keep_last: usize,
}

/// Stores runs. All methods may be called from any task at any time.
///
/// Dropping the reply of [`append`](Store::append) does not cancel the batch.
pub trait Store: Send + Sync + 'static {
    /// Writes a batch durably, and returns the position of its last entry.
    ///
    /// A batch without entries returns the last position of the store.
    fn append(&self, batch: Batch) -> Reply<'_, Result<u64, AppendError>>;

    /// Returns the newest snapshot of a run and the entries after it; `None` if there is no such
    /// run.
    fn load(&self, run: RunId) -> Reading<'_, Option<Loaded>> {
        self.load_at(run, u64::MAX)
    }

    /// Like [`load`](Store::load) as of event `seq`: the newest snapshot up to there and the
    /// entries between the two.
    fn load_at(&self, run: RunId, seq: u64) -> Reading<'_, Option<Loaded>>;

    /// Returns the entries of a run after `after_seq`, in order.
    ///
    /// A page may be shorter than `limit` (see [`crate::PAGE_BYTES`]); it is empty only at the end.
    fn entries(&self, run: RunId, after_seq: u64, limit: usize) -> Reading<'_, Vec<Stored>>;

    /// Returns the entries of all runs after `after_position`, in order; pages as in
    /// [`entries`](Store::entries).
    fn feed(&self, after_position: u64, limit: usize) -> Reading<'_, Vec<Stored>>;

    /// Returns the last position given out so far; 0 before the first.
    fn head(&self) -> Reading<'_, u64>;

    /// Returns all entries about a handoff, in order.
    fn entries_of(&self, run: RunId, handoff: HandoffId) -> Reading<'_, Vec<Stored>>;

    /// Returns one run; `None` if it does not exist.
    fn run(&self, run: RunId) -> Reading<'_, Option<RunRow>>;

    /// Returns runs, the newest first.
    fn runs(&self, filter: RunFilter) -> Reading<'_, Vec<RunRow>>;

    /// Returns the runs whose id begins or ends with the digits that a person typed, and those whose
    /// short name begins with them, the newest first, at most [`FIND_LIMIT`]. Dashes and case are
    /// ignored.
    fn find_run(&self, digits: String) -> Reading<'_, Vec<RunId>>;

    /// Returns all handoffs of a run, in order.
    fn handoffs(&self, run: RunId) -> Reading<'_, Vec<HandoffRow>>;

    /// Returns one handoff; `None` if it does not exist.
    fn handoff(&self, run: RunId, id: HandoffId) -> Reading<'_, Option<HandoffRow>>;

    /// Returns the open questions of all runs, the oldest first.
    fn questions(&self) -> Reading<'_, Vec<HandoffRow>>;

    /// Returns the runs that have not ended, the oldest first.
    fn unfinished(&self) -> Reading<'_, Vec<RunId>>;

    /// Writes a lock batch durably, and returns the new version of the lock table.
    fn write_locks(&self, batch: LockBatch) -> Reply<'_, Result<u64, LockError>>;

    /// Returns all current locks.
    fn locks(&self) -> Reading<'_, LockStore>;

    /// Returns the events about locks after entry `after`, in order, as far as they are kept (see
    /// [`crate::LOCK_ENTRIES`]).
    fn lock_entries(&self, after: u64, limit: usize) -> Reading<'_, Vec<LockEntry>>;

    /// Removes finished runs, a few in each commit so that writers need not wait for all of them.
    fn retain(&self, retention: Retention) -> Reply<'_, Result<Removed, UpkeepError>>;

    /// Keeps only the newest snapshot of each run and frees unused space.
    fn compact(&self) -> Reply<'_, Result<Compacted, UpkeepError>>;

    /// Checks the whole store for damage. Slow on a large store.
    fn check(&self) -> Reading<'_, Health>;

    /// Returns the counters of the writer since the store was opened.
    fn stats(&self) -> Stats;

    /// Returns why the store is no longer the one that was opened: it was removed, or replaced by
    /// another. From then on nothing is acknowledged.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Writes the queue, then stops. Later calls return that the store is closed.
    fn close(&self) -> Reply<'_, ()>;
}
