//! A store in a PostgreSQL database.
//!
//! One task writes: it takes all waiting batches and puts them into one transaction, in which it
//! locks the row with the last position. Others may write to the same database: of two writers one
//! waits for the other, so positions become visible in order. A few connections read beside it.
//!
//! If the connection is lost during a commit, it is unknown whether the commit took place. The next
//! connection waits until the old transaction has ended, checks for its first event, and either
//! answers or writes again.

mod address;
#[cfg(test)]
mod cost;
mod fault;
mod find;
mod link;
mod locks;
mod pool;
mod query;
mod schema;
mod session;
mod tls;
mod upkeep;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stafette_model::{HandoffId, RunId};
use tokio::sync::{mpsc, oneshot};

use self::address::Address;
use self::fault::PostgresError;
pub use self::find::PostgresFinder;
use self::link::Link;
use self::pool::Pool;
use self::session::{Deed, Session};
use self::writer::{Ground, Job};
use crate::stats::{Counters, Stats};
use crate::{
    AppendError, Batch, Compacted, ConnectError, HandoffRow, Health, Loaded, LockBatch, LockEntry,
    LockError, LockStore, Reading, Removed, Reply, Retention, RunFilter, RunRow, Store, Stored,
    UpkeepError, queue,
};

/// Time limit of a read.
const READ: Duration = Duration::from_secs(30);

/// Time limit of the integrity check and of upkeep.
const LONG: Duration = Duration::from_secs(3600);

/// Limits of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PostgresOptions {
    /// Maximum wait for a server that is away or does not respond.
    pub patience: Duration,
    /// Maximum wait when the store is opened.
    pub first_patience: Duration,
    /// Maximum number of connections that read in parallel.
    pub readers: usize,
    /// Number of batches that may wait in the queue before writers block.
    pub queue: usize,
    /// True to claim the database exclusively, as a daemon does that resumes all runs.
    pub alone: bool,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions {
            patience: Duration::from_secs(15),
            first_patience: Duration::from_secs(5),
            readers: 3,
            queue: 1024,
            alone: false,
        }
    }
}

/// Stores runs in a PostgreSQL database.
pub struct PostgresStore {
    address: Address,
    jobs: mpsc::Sender<Job>,
    pool: Arc<Pool>,
    ground: Arc<Ground>,
    counters: Arc<Counters>,
    first_patience: Duration,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("address", &self.address).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store at `url`, such as `postgres://USER@HOST/DATABASE?schema=NAME`, and creates
    /// the schema and its tables if they are missing.
    ///
    /// # Errors
    /// Describes the obstacle, without the password. A refused schema is left unchanged.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, ConnectError> {
        let address = Address::parse(url)?;
        let wrap = |trouble| fault::connect(trouble, &address);
        let deadline = Instant::now() + options.first_patience;
        let begin = async {
            let mut link = Link::open(&address, deadline).await.map_err(wrap)?;
            schema::prepare(&mut link, &address).await?;
            if options.alone {
                session::claim(&mut link, &address, deadline).await.map_err(wrap)?;
            }
            let ground = Ground::of(&mut link).await.map_err(wrap)?;
            Ok((link, Arc::new(ground)))
        };
        let after = options.first_patience + options.patience;
        let silent = |_| wrap(PostgresError::Silent { place: address.to_string(), after });
        let (link, ground) = tokio::time::timeout(after, begin).await.map_err(silent)??;
        let counters = Arc::new(Counters::default());
        let (jobs, line) = mpsc::channel(options.queue.max(1));
        let session = Session::new(address.clone(), options.patience, options.alone, link);
        let shared = (ground.clone(), counters.clone());
        tokio::spawn(async move { writer::work(session, line, &shared.0, &shared.1).await });
        let pool = Arc::new(Pool::new(address.clone(), options.readers, options.patience));
        let first_patience = options.first_patience;
        Ok(PostgresStore { address, jobs, pool, ground, counters, first_patience })
    }

    /// Returns the address, without the password.
    pub fn place(&self) -> String {
        self.address.to_string()
    }

    /// Returns the full-text index in the same database.
    pub fn finder(&self) -> PostgresFinder {
        PostgresFinder::new(self.pool.clone())
    }

    fn read<T: Send + 'static>(
        &self,
        query: impl for<'a> Fn(&'a mut Link) -> Reply<'a, Result<T, PostgresError>>
        + Send
        + Sync
        + 'static,
    ) -> Reading<'_, T> {
        Box::pin(async move { self.pool.read(READ, query).await.map_err(fault::read) })
    }

    /// Runs a deed on the writer, between two groups.
    async fn carry_out<D: Deed + 'static>(&self, mut deed: D) -> Result<D::Done, PostgresError> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Upkeep(Box::new(move |session| {
            Box::pin(async move {
                // If the caller gave up, nobody receives the result; the work is done all the same.
                let _ = answer.send(session.carry_out(&mut deed).await);
            })
        }));
        self.jobs.send(job).await.map_err(|_| PostgresError::Closed)?;
        answered.await.map_err(|_| PostgresError::Closed)?
    }

    async fn compacted(&self) -> Result<Compacted, PostgresError> {
        let mut snapshots = 0;
        let size = || self.pool.read(READ, |link| Box::pin(upkeep::bytes(link)));
        let bytes_before = size().await?;
        loop {
            let step = self.carry_out(upkeep::DropOldSnapshots).await?;
            if step == 0 {
                break;
            }
            snapshots += step;
        }
        // On a separate connection, so that writers do not wait for the vacuum.
        let link = Link::open(&self.address, Instant::now() + self.first_patience).await?;
        let silent = |_| PostgresError::Silent { place: self.place(), after: LONG };
        tokio::time::timeout(LONG, upkeep::free_room(&link)).await.map_err(silent)??;
        Ok(Compacted { snapshots, bytes_before, bytes_after: size().await? })
    }
}

impl Store for PostgresStore {
    fn append(&self, batch: Batch) -> Reply<'_, Result<u64, AppendError>> {
        Box::pin(queue::append(&self.jobs, batch))
    }

    fn load_at(&self, run: RunId, seq: u64) -> Reading<'_, Option<Loaded>> {
        self.read(move |link| Box::pin(query::load_at(link, run, seq)))
    }

    fn entries(&self, run: RunId, after_seq: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.read(move |link| Box::pin(query::entries(link, run, after_seq, limit)))
    }

    fn feed(&self, after_position: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.read(move |link| Box::pin(query::feed(link, after_position, limit)))
    }

    fn head(&self) -> Reading<'_, u64> {
        self.read(|link| Box::pin(query::head(link)))
    }

    fn entries_of(&self, run: RunId, handoff: HandoffId) -> Reading<'_, Vec<Stored>> {
        self.read(move |link| Box::pin(query::entries_of(link, run, handoff)))
    }

    fn run(&self, run: RunId) -> Reading<'_, Option<RunRow>> {
        self.read(move |link| Box::pin(query::run(link, run)))
    }

    fn runs(&self, filter: RunFilter) -> Reading<'_, Vec<RunRow>> {
        self.read(move |link| {
            let filter = filter.clone();
            Box::pin(async move { query::runs(link, &filter).await })
        })
    }

    fn find_run(&self, digits: String) -> Reading<'_, Vec<RunId>> {
        self.read(move |link| {
            let digits = digits.clone();
            Box::pin(async move { query::find_run(link, &digits).await })
        })
    }

    fn handoffs(&self, run: RunId) -> Reading<'_, Vec<HandoffRow>> {
        self.read(move |link| Box::pin(query::handoffs(link, run)))
    }

    fn handoff(&self, run: RunId, id: HandoffId) -> Reading<'_, Option<HandoffRow>> {
        self.read(move |link| Box::pin(query::handoff(link, run, id)))
    }

    fn questions(&self) -> Reading<'_, Vec<HandoffRow>> {
        self.read(|link| Box::pin(query::questions(link)))
    }

    fn unfinished(&self) -> Reading<'_, Vec<RunId>> {
        self.read(|link| Box::pin(query::unfinished(link)))
    }

    fn write_locks(&self, batch: LockBatch) -> Reply<'_, Result<u64, LockError>> {
        Box::pin(async move {
            batch.check()?;
            self.carry_out(locks::Change::new(batch)).await.map_err(fault::append)?
        })
    }

    fn locks(&self) -> Reading<'_, LockStore> {
        self.read(|link| Box::pin(locks::all(link)))
    }

    fn lock_entries(&self, after: u64, limit: usize) -> Reading<'_, Vec<LockEntry>> {
        self.read(move |link| Box::pin(locks::entries(link, after, limit)))
    }

    fn retain(&self, retention: Retention) -> Reply<'_, Result<Removed, UpkeepError>> {
        Box::pin(async move {
            let mut removed = Removed::default();
            let step = || self.carry_out(upkeep::RemoveSome(retention));
            while removed.took(step().await.map_err(fault::upkeep)?) {}
            Ok(removed)
        })
    }

    fn compact(&self) -> Reply<'_, Result<Compacted, UpkeepError>> {
        Box::pin(async move { self.compacted().await.map_err(fault::upkeep) })
    }

    fn check(&self) -> Reading<'_, Health> {
        Box::pin(async move {
            let looked = self.pool.read(LONG, |link| Box::pin(upkeep::health(link)));
            looked.await.map_err(fault::read)
        })
    }

    fn stats(&self) -> Stats {
        self.counters.stats()
    }

    fn lost(&self) -> Option<String> {
        self.ground.lost.get().cloned()
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(async move {
            self.pool.close().await;
            queue::stop(&self.jobs).await;
        })
    }
}
