//! What every backend does.

use std::pin::Pin;

use stafette_core::{HandoffId, RunId, Time};

use crate::{
    AppendError, Batch, Compacted, HandoffRow, Health, Loaded, LockBatch, LockEntry, LockError,
    LockStore, ReadError, Removed, RunRow, Stats, Stored, UpkeepError,
};

/// The most runs that [`Store::find_run`] names.
pub const FIND_LIMIT: usize = 16;

/// An answer that is on its way.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which runs to list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunFilter {
    /// Only runs of this status.
    pub status: Option<String>,
    /// Only runs that come after this one in the list: how to go on with the next page.
    pub after: Option<RunId>,
    /// At most so many.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        RunFilter { status: None, after: None, limit: 100 }
    }
}

/// Which finished runs may go: those that both fields allow. A run that has not ended stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Only runs that ended before this; without it, age does not matter.
    pub finished_before: Option<Time>,
    /// So many of the runs that ended last stay, however old they are.
    pub keep_last: usize,
}

/// Keeps runs. All methods may be called from any task at any time.
///
/// Dropping the reply of [`append`](Store::append) does not take the batch back.
pub trait Store: Send + Sync + 'static {
    /// Writes a batch, durably, and answers with the position of its last entry.
    ///
    /// A batch without entries answers with the last position of the store.
    fn append(&self, batch: Batch) -> Reply<'_, Result<u64, AppendError>>;

    /// The newest snapshot of a run and what came after it; `None` when there is no such run.
    fn load(&self, run: RunId) -> Reply<'_, Result<Option<Loaded>, ReadError>> {
        self.load_at(run, u64::MAX)
    }

    /// The same as of event `seq`: the newest snapshot up to there and the entries between the two.
    fn load_at(&self, run: RunId, seq: u64) -> Reply<'_, Result<Option<Loaded>, ReadError>>;

    /// The entries of a run after `after_seq`, in order.
    ///
    /// A page may be shorter than `limit` (see [`crate::PAGE_BYTES`]); it is empty only at the end.
    fn entries(
        &self,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Reply<'_, Result<Vec<Stored>, ReadError>>;

    /// The entries of all runs after `after_position`, in order; pages as in
    /// [`entries`](Store::entries).
    fn feed(&self, after_position: u64, limit: usize) -> Reply<'_, Result<Vec<Stored>, ReadError>>;

    /// The last position given so far; 0 before the first.
    fn head(&self) -> Reply<'_, Result<u64, ReadError>>;

    /// All entries that are about a handoff, in order.
    fn entries_of(
        &self,
        run: RunId,
        handoff: HandoffId,
    ) -> Reply<'_, Result<Vec<Stored>, ReadError>>;

    /// One run.
    fn run(&self, run: RunId) -> Reply<'_, Result<Option<RunRow>, ReadError>>;

    /// Runs, the newest first.
    fn runs(&self, filter: RunFilter) -> Reply<'_, Result<Vec<RunRow>, ReadError>>;

    /// The runs whose id begins or ends with the digits that a person typed, the newest first,
    /// at most [`FIND_LIMIT`]. Dashes and case do not matter.
    fn find_run(&self, digits: String) -> Reply<'_, Result<Vec<RunId>, ReadError>>;

    /// All handoffs of a run, in order.
    fn handoffs(&self, run: RunId) -> Reply<'_, Result<Vec<HandoffRow>, ReadError>>;

    /// One handoff.
    fn handoff(
        &self,
        run: RunId,
        id: HandoffId,
    ) -> Reply<'_, Result<Option<HandoffRow>, ReadError>>;

    /// The open questions of all runs, the oldest first.
    fn questions(&self) -> Reply<'_, Result<Vec<HandoffRow>, ReadError>>;

    /// The runs that have not ended, the oldest first.
    fn unfinished(&self) -> Reply<'_, Result<Vec<RunId>, ReadError>>;

    /// Writes what became true of the locks, durably, and answers with their new version.
    fn write_locks(&self, batch: LockBatch) -> Reply<'_, Result<u64, LockError>>;

    /// All locks as they are.
    fn locks(&self) -> Reply<'_, Result<LockStore, ReadError>>;

    /// What became true of the locks after entry `after`, in order, as far as it is kept (see
    /// [`crate::LOCK_ENTRIES`]).
    fn lock_entries(
        &self,
        after: u64,
        limit: usize,
    ) -> Reply<'_, Result<Vec<LockEntry>, ReadError>>;

    /// Removes finished runs, a few in each commit so that writers need not wait for all of them.
    fn retain(&self, retention: Retention) -> Reply<'_, Result<Removed, UpkeepError>>;

    /// Keeps only the newest snapshot of each run and gives free room back.
    fn compact(&self) -> Reply<'_, Result<Compacted, UpkeepError>>;

    /// Looks through all of it for damage. Slow on a large store.
    fn check(&self) -> Reply<'_, Result<Health, ReadError>>;

    /// What the writer has done since the store was opened.
    fn stats(&self) -> Stats;

    /// Writes what is queued, then stops. Later calls answer that the store is closed.
    fn close(&self) -> Reply<'_, ()>;
}
