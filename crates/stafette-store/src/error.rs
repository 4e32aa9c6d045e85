//! Errors of the store, one enum per operation.

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use stafette_model::{HandoffId, RunId};
use thiserror::Error;

/// Error of the backend. It can be cloned because one failed commit answers many writers.
#[derive(Clone)]
pub struct Fault(Arc<dyn StdError + Send + Sync>);

impl Fault {
    /// Wraps an error of the backend.
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

/// A batch was not written, or, for [`Failed`](AppendError::Failed) and
/// [`Closed`](AppendError::Closed), may have been written: load the run again before continuing.
#[derive(Clone, Debug, Error)]
pub enum AppendError {
    /// Another writer was first, or this writer has not seen all events of the run.
    #[error("run {run} is at event {found}, not at {expected}")]
    Conflict {
        /// Run of the batch.
        run: RunId,
        /// Sequence number that the batch was made for.
        expected: u64,
        /// Sequence number of the run; 0 if the run does not exist.
        found: u64,
    },
    /// The batch contradicts itself.
    #[error("the batch for run {run} contradicts itself: {flaw}")]
    Malformed {
        /// Run of the batch.
        run: RunId,
        /// The contradiction, as text.
        flaw: String,
    },
    /// The batch exceeds the size limit.
    #[error("the batch for run {run} has {bytes} bytes, the limit is {limit}")]
    TooBig {
        /// Run of the batch.
        run: RunId,
        /// Size of the batch, in bytes.
        bytes: usize,
        /// Size limit, in bytes.
        limit: usize,
    },
    /// The disk or the database is full. Nothing was written; try again once there is room.
    #[error("there is no room left for the store")]
    Full {
        /// Error of the backend.
        source: Fault,
    },
    /// Another process kept the store locked for too long. Nothing was written.
    #[error("the store is locked by another process")]
    Busy {
        /// Error of the backend.
        source: Fault,
    },
    /// The store has become read-only.
    #[error("the store is read-only")]
    ReadOnly {
        /// Error of the backend.
        source: Fault,
    },
    /// The store was removed, or replaced by another one. Nothing is kept any more: end the
    /// process.
    #[error("the store is lost: {why}")]
    Lost {
        /// What happened to it, in words.
        why: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Any other error of the backend.
    #[error("the store could not write")]
    Failed {
        /// Error of the backend.
        source: Fault,
    },
}

/// A stored row is not what was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Damage {
    /// An event of a run, which cannot be continued or shown past it.
    #[error("event {seq} of run {run} is damaged")]
    Event {
        /// Run of the event.
        run: RunId,
        /// Sequence number within the run.
        seq: u64,
        /// Number over all runs; `None` if the event is missing.
        position: Option<u64>,
    },
    /// A snapshot. It is not used: the events tell the same.
    #[error("the snapshot of run {run} at event {seq} is damaged; its events are used instead")]
    Snapshot {
        /// Run of the snapshot.
        run: RunId,
        /// Sequence number of the last included event.
        seq: u64,
    },
    /// The row of a run.
    #[error("the row of run {run} is damaged")]
    Run {
        /// Id of the run.
        run: RunId,
    },
    /// The row of a handoff.
    #[error("handoff {id} of run {run} is damaged")]
    Handoff {
        /// Run of the handoff.
        run: RunId,
        /// Id of the handoff.
        id: HandoffId,
    },
    /// The table of locks, or its history.
    #[error("the locks are damaged")]
    Locks,
}

impl Damage {
    /// The event after event `last` of a run is not there.
    pub(crate) fn missing(run: RunId, last: u64) -> Self {
        Damage::Event { run, seq: last.saturating_add(1), position: None }
    }
}

/// A read from the store failed.
#[derive(Clone, Debug, Error)]
pub enum ReadError {
    /// The store was removed, or replaced by another one. What was read may not be its own.
    #[error("the store is lost: {why}")]
    Lost {
        /// What happened to it, in words.
        why: String,
    },
    /// A row is not what was written.
    #[error("what is stored is damaged")]
    Damaged {
        /// The row.
        #[from]
        source: Damage,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Any other error of the backend.
    #[error("the store could not be read")]
    Failed {
        /// Error of the backend.
        source: Fault,
    },
}

/// Retention or compaction stopped. The steps completed so far stay; it can be called again.
#[derive(Clone, Debug, Error)]
pub enum UpkeepError {
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Any other error of the backend.
    #[error("the store could not be tidied")]
    Failed {
        /// Error of the backend.
        source: Fault,
    },
}

/// A store could not be opened.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    /// The folder does not exist.
    #[error("there is no folder {folder} to keep the store in")]
    NoFolder {
        /// Path of the folder.
        folder: PathBuf,
    },
    /// The file or its folder is read-only.
    #[error("{path} cannot be written: the file or its folder is read-only or not ours")]
    ReadOnly {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not a store.
    #[error("{path} is not a store: {found}")]
    NotAStore {
        /// Path of the file.
        path: PathBuf,
        /// Description of what the file is.
        found: String,
    },
    /// A newer version of the program wrote it. It was left unchanged.
    #[error("{path} was written by a newer version: its tables are {found}, known are {known}")]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Schema version of the file.
        found: u32,
        /// Newest schema version that this program knows.
        known: u32,
    },
    /// The linked SQLite has a bug that can destroy a store.
    #[error("SQLite {found} can damage a store, at least {needed} is needed")]
    OldSqlite {
        /// Version that is linked.
        found: String,
        /// First version without the bug.
        needed: &'static str,
    },
    /// The file system does not support a write-ahead log.
    #[error("{path} is on a file system that cannot keep a write-ahead log (mode `{mode}`)")]
    NoLog {
        /// Path of the file.
        path: PathBuf,
        /// Journal mode that SQLite fell back to.
        mode: String,
    },
    /// The disk is full; the store cannot be created or upgraded.
    #[error("there is no room for the store {path}")]
    Full {
        /// Path of the file.
        path: PathBuf,
        /// Error of the backend.
        source: Fault,
    },
    /// Another process kept the file locked for too long.
    #[error("{path} is locked by another process")]
    Busy {
        /// Path of the file.
        path: PathBuf,
        /// Error of the backend.
        source: Fault,
    },
    /// Any other error while opening.
    #[error("{path} could not be opened")]
    Failed {
        /// Path of the file.
        path: PathBuf,
        /// Error of the backend.
        source: Fault,
    },
}

/// A database could not be opened as a store.
#[derive(Clone, Debug, Error)]
pub enum ConnectError {
    /// The address is not valid.
    #[error("this is not the address of a PostgreSQL database: {flaw}")]
    Address {
        /// Description of the mistake, without the password.
        flaw: String,
    },
    /// The connection requires TLS, which cannot be set up.
    #[error("nobody at {place} can prove to be it")]
    NotSecured {
        /// Address of the database, without the password.
        place: String,
        /// Cause of the failure.
        source: Fault,
    },
    /// The server does not respond.
    #[error("{place} cannot be reached")]
    Unreachable {
        /// Address of the database, without the password.
        place: String,
        /// Error of the connection.
        source: Fault,
    },
    /// The server has no such database.
    #[error("{place} does not exist")]
    NoDatabase {
        /// Address of the database, without the password.
        place: String,
    },
    /// The login failed, or the user may not create the tables.
    #[error("{place} does not allow it")]
    NotAllowed {
        /// Address of the database, without the password.
        place: String,
        /// Error of the server.
        source: Fault,
    },
    /// The schema, the database or the server is not usable as a store.
    #[error("{place} cannot be a store: {found}")]
    NotAStore {
        /// Address of the database, without the password.
        place: String,
        /// Description of what was found.
        found: String,
    },
    /// A newer version of the program wrote it. It was left unchanged.
    #[error("{place} was written by a newer version: its tables are {found}, known are {known}")]
    Newer {
        /// Address of the database, without the password.
        place: String,
        /// Schema version of the database.
        found: u32,
        /// Newest schema version that this program knows.
        known: u32,
    },
    /// Another daemon uses the database.
    #[error("another daemon works on {place}")]
    Taken {
        /// Address of the database, without the password.
        place: String,
    },
    /// Any other error while connecting.
    #[error("{place} could not be opened")]
    Failed {
        /// Address of the database, without the password.
        place: String,
        /// Error of the connection or the server.
        source: Fault,
    },
}
