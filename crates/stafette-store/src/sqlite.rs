//! A store in one SQLite file.
//!
//! One thread writes: it takes all waiting batches, puts them into one transaction and pays for one
//! sync. A few connections read beside it and never hold it up.

#[cfg(test)]
mod cost;
mod fault;
mod find;
mod ground;
mod locks;
mod open;
mod pool;
mod query;
mod schema;
mod upkeep;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use stafette_model::{HandoffId, RunId};
use tokio::sync::{mpsc, oneshot};

pub use self::find::SqliteFinder;
use self::ground::Ground;
use self::pool::Pool;
use self::writer::Job;
use crate::queue;
use crate::stats::{Counters, Stats};
use crate::{
    AppendError, BackendError, Batch, Compacted, HandoffRow, Health, Loaded, LockBatch, LockEntry,
    LockError, LockStore, OpenError, Reading, Removed, Reply, Retention, RunFilter, RunRow, Store,
    Stored, UpkeepError,
};

/// Maximum value of `busy_timeout`.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Limits of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Maximum size of the file in bytes; the log of recent writes adds a few MiB.
    pub max_bytes: Option<u64>,
    /// Maximum wait for another process that writes; at most an hour.
    pub busy_timeout: Duration,
    /// Maximum number of connections that read in parallel.
    pub readers: usize,
    /// Number of batches that may wait in the queue before writers block.
    pub queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_bytes: Some(16 << 30),
            busy_timeout: Duration::from_secs(5),
            readers: 3,
            queue: 1024,
        }
    }
}

/// Stores runs in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    jobs: mpsc::Sender<Job>,
    pool: Pool,
    ground: Arc<Ground>,
    counters: Arc<Counters>,
    max_bytes: Option<u64>,
}

impl SqliteStore {
    /// Opens the store at `path` and creates the file, but not its folder, if it is missing.
    ///
    /// # Errors
    /// Names the obstacle: the file, its folder or its version. A refused file is left unchanged.
    pub fn open(path: impl AsRef<Path>, mut options: Options) -> Result<Self, OpenError> {
        options.busy_timeout = options.busy_timeout.min(PATIENCE);
        let path = open::place(path.as_ref())?;
        let conn = open::writer(&path, &options)?;
        let ground = Arc::new(Ground::of(&path));
        let counters = Arc::new(Counters::default());
        let (jobs, queue) = mpsc::channel(options.queue.max(1));
        let shared = (ground.clone(), counters.clone());
        thread::Builder::new()
            .name("stafette-store".to_owned())
            .spawn(move || writer::work(conn, queue, &shared.0, &shared.1))
            .map_err(|error| OpenError::Failed {
                path: path.clone(),
                source: BackendError::new(error),
            })?;
        let readers = options.readers.max(1);
        let pool = Pool::new(path.clone(), ground.clone(), readers, options.busy_timeout);
        Ok(SqliteStore { path, jobs, pool, ground, counters, max_bytes: options.max_bytes })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Reading<'_, T> {
        Box::pin(self.pool.read(query))
    }

    /// Runs a task on the writer's thread, between two groups.
    async fn upkeep<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, UpkeepError> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Upkeep(Box::new(move |conn| {
            // If the caller gave up, nobody receives the result; the work is done all the same.
            let _ = answer.send(task(conn));
        }));
        self.jobs.send(job).await.map_err(|_| UpkeepError::Closed)?;
        let result = answered.await.map_err(|_| UpkeepError::Closed)?;
        result.map_err(|error| UpkeepError::Failed { source: BackendError::new(error) })
    }
}

impl Store for SqliteStore {
    fn append(&self, batch: Batch) -> Reply<'_, Result<u64, AppendError>> {
        Box::pin(queue::append(&self.jobs, batch))
    }

    fn load_at(&self, run: RunId, seq: u64) -> Reading<'_, Option<Loaded>> {
        self.read(move |conn| query::load_at(conn, run, seq))
    }

    fn entries(&self, run: RunId, after_seq: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.read(move |conn| query::entries(conn, run, after_seq, limit))
    }

    fn feed(&self, after_position: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.read(move |conn| query::feed(conn, after_position, limit))
    }

    fn head(&self) -> Reading<'_, u64> {
        self.read(query::head)
    }

    fn entries_of(&self, run: RunId, handoff: HandoffId) -> Reading<'_, Vec<Stored>> {
        self.read(move |conn| query::entries_of(conn, run, handoff))
    }

    fn run(&self, run: RunId) -> Reading<'_, Option<RunRow>> {
        self.read(move |conn| query::run(conn, run))
    }

    fn runs(&self, filter: RunFilter) -> Reading<'_, Vec<RunRow>> {
        self.read(move |conn| query::runs(conn, &filter))
    }

    fn find_run(&self, digits: String) -> Reading<'_, Vec<RunId>> {
        self.read(move |conn| query::find_run(conn, &digits))
    }

    fn handoffs(&self, run: RunId) -> Reading<'_, Vec<HandoffRow>> {
        self.read(move |conn| query::handoffs(conn, run))
    }

    fn handoff(&self, run: RunId, id: HandoffId) -> Reading<'_, Option<HandoffRow>> {
        self.read(move |conn| query::handoff(conn, run, id))
    }

    fn questions(&self) -> Reading<'_, Vec<HandoffRow>> {
        self.read(query::questions)
    }

    fn unfinished(&self) -> Reading<'_, Vec<RunId>> {
        self.read(query::unfinished)
    }

    fn write_locks(&self, batch: LockBatch) -> Reply<'_, Result<u64, LockError>> {
        Box::pin(async move {
            batch.check()?;
            let (answer, answered) = oneshot::channel();
            let ground = self.ground.clone();
            // On the writer's thread, between two groups.
            let job = Job::Upkeep(Box::new(move |conn| {
                let written = locks::write(conn, &batch);
                let _ = answer.send(written.and_then(|it| Ok(writer::standing(&ground, it)?)));
            }));
            self.jobs.send(job).await.map_err(|_| AppendError::Closed)?;
            answered.await.map_err(|_| AppendError::Closed)?
        })
    }

    fn locks(&self) -> Reading<'_, LockStore> {
        self.read(locks::all)
    }

    fn lock_entries(&self, after: u64, limit: usize) -> Reading<'_, Vec<LockEntry>> {
        self.read(move |conn| locks::entries(conn, after, limit))
    }

    fn retain(&self, retention: Retention) -> Reply<'_, Result<Removed, UpkeepError>> {
        Box::pin(async move {
            let mut removed = Removed::default();
            while removed.took(self.upkeep(move |conn| upkeep::remove_some(conn, retention)).await?)
            {
            }
            Ok(removed)
        })
    }

    fn compact(&self) -> Reply<'_, Result<Compacted, UpkeepError>> {
        Box::pin(async move {
            let size = |path: PathBuf| move |conn: &mut Connection| upkeep::bytes(conn, &path);
            let bytes_before = self.upkeep(size(self.path.clone())).await?;
            let mut snapshots = 0;
            loop {
                let step = self.upkeep(|conn| upkeep::drop_old_snapshots(conn)).await?;
                if step == 0 {
                    break;
                }
                snapshots += step;
            }
            while self.upkeep(|conn| upkeep::free_pages(conn)).await? > 0 {}
            self.upkeep(|conn| upkeep::checkpoint(conn)).await?;
            let bytes_after = self.upkeep(size(self.path.clone())).await?;
            Ok(Compacted { snapshots, bytes_before, bytes_after })
        })
    }

    fn check(&self) -> Reading<'_, Health> {
        let (path, max_bytes) = (self.path.clone(), self.max_bytes);
        self.read(move |conn| upkeep::health(conn, &path, max_bytes))
    }

    fn stats(&self) -> Stats {
        self.counters.stats()
    }

    fn lost(&self) -> Option<String> {
        self.ground.lost().map(str::to_owned)
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(async move {
            // The writer closes last, because the last connection removes the log.
            self.pool.close().await;
            queue::stop(&self.jobs).await;
        })
    }
}
