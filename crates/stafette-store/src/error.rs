//! What can go wrong, one enum an operation.

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use stafette_core::RunId;
use thiserror::Error;

/// What the backend said. It can be cloned because one failed commit answers many writers.
#[derive(Clone)]
pub struct Fault(Arc<dyn StdError + Send + Sync>);

impl Fault {
    /// Wraps what the backend said.
    pub fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        Fault(Arc::new(error))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Fault {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// A batch was not written, or ([`Failed`](AppendError::Failed), [`Closed`](AppendError::Closed))
/// it is not known whether it was: load the run again before going on.
#[derive(Clone, Debug, Error)]
pub enum AppendError {
    /// Someone else wrote first, or the writer has not seen all of it.
    #[error("run {run} is at event {found}, not at {expected}")]
    Conflict {
        /// The run.
        run: RunId,
        /// The sequence number that the batch was made for.
        expected: u64,
        /// The sequence number that the run has; 0 when there is no such run.
        found: u64,
    },
    /// The batch contradicts itself.
    #[error("the batch for run {run} contradicts itself: {flaw}")]
    Malformed {
        /// The run.
        run: RunId,
        /// How.
        flaw: String,
    },
    /// The batch is larger than any may be.
    #[error("the batch for run {run} has {bytes} bytes, the limit is {limit}")]
    TooBig {
        /// The run.
        run: RunId,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// There is no room. Nothing of the batch was kept; it can be tried again when there is.
    #[error("there is no room left for the store")]
    Full {
        /// What the backend said.
        source: Fault,
    },
    /// Another process kept the store locked for too long. Nothing of the batch was kept.
    #[error("the store is locked by another process")]
    Busy {
        /// What the backend said.
        source: Fault,
    },
    /// The store cannot be written any more.
    #[error("the store is read-only")]
    ReadOnly {
        /// What the backend said.
        source: Fault,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Anything else.
    #[error("the store could not write")]
    Failed {
        /// What the backend said.
        source: Fault,
    },
}

/// Something could not be read.
#[derive(Clone, Debug, Error)]
pub enum ReadError {
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Anything else.
    #[error("the store could not be read")]
    Failed {
        /// What the backend said.
        source: Fault,
    },
}

/// Retention or compaction stopped. What it had done so far is done; it can be called again.
#[derive(Clone, Debug, Error)]
pub enum UpkeepError {
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Anything else.
    #[error("the store could not be tidied")]
    Failed {
        /// What the backend said.
        source: Fault,
    },
}

/// A store could not be opened.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    /// The folder is missing.
    #[error("there is no folder {folder} to keep the store in")]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("{path} cannot be written: the file or its folder is read-only or not ours")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{path} is not a store: {found}")]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// A newer version wrote it. It was left as it is.
    #[error("{path} was written by a newer version: its tables are {found}, known are {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its tables.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The linked SQLite has a fault that can destroy a store.
    #[error("SQLite {found} can damage a store, at least {needed} is needed")]
    OldSqlite {
        /// The version that is linked.
        found: String,
        /// The first version that is safe.
        needed: &'static str,
    },
    /// The file system cannot keep a write-ahead log.
    #[error("{path} is on a file system that cannot keep a write-ahead log (mode `{mode}`)")]
    NoLog {
        /// The file.
        path: PathBuf,
        /// The mode that SQLite fell back to.
        mode: String,
    },
    /// There is no room to create or to upgrade it.
    #[error("there is no room for the store {path}")]
    Full {
        /// The file.
        path: PathBuf,
        /// What the backend said.
        source: Fault,
    },
    /// Another process kept it locked for too long.
    #[error("{path} is locked by another process")]
    Busy {
        /// The file.
        path: PathBuf,
        /// What the backend said.
        source: Fault,
    },
    /// Anything else.
    #[error("{path} could not be opened")]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the backend said.
        source: Fault,
    },
}

/// A database could not be opened as a store.
#[derive(Clone, Debug, Error)]
pub enum ConnectError {
    /// The address is none.
    #[error("this is not the address of a PostgreSQL database: {flaw}")]
    Address {
        /// What is wrong with it; never the password.
        flaw: String,
    },
    /// The connection has to be protected, and cannot be.
    #[error("nobody at {place} can prove to be it")]
    NotSecured {
        /// The database, without its password.
        place: String,
        /// What happened.
        source: Fault,
    },
    /// Nobody answers there.
    #[error("{place} cannot be reached")]
    Unreachable {
        /// The database, without its password.
        place: String,
        /// What happened.
        source: Fault,
    },
    /// The server knows no such database.
    #[error("{place} does not exist")]
    NoDatabase {
        /// The database, without its password.
        place: String,
    },
    /// The user is not let in, or may not make the tables.
    #[error("{place} does not allow it")]
    NotAllowed {
        /// The database, without its password.
        place: String,
        /// What the server said.
        source: Fault,
    },
    /// The schema, the database or the server is something else than what is needed.
    #[error("{place} cannot be a store: {found}")]
    NotAStore {
        /// The database, without its password.
        place: String,
        /// What it is instead.
        found: String,
    },
    /// A newer version wrote it. It was left as it is.
    #[error("{place} was written by a newer version: its tables are {found}, known are {known}")]
    Newer {
        /// The database, without its password.
        place: String,
        /// The version of its tables.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// Another daemon works on it.
    #[error("another daemon works on {place}")]
    Taken {
        /// The database, without its password.
        place: String,
    },
    /// Anything else.
    #[error("{place} could not be opened")]
    Failed {
        /// The database, without its password.
        place: String,
        /// What happened.
        source: Fault,
    },
}
