//! Errors of the store, one enum per operation.

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use stafette_model::{HandoffId, RunId};
use thiserror::Error;

/// Error of the backend. It can be cloned because one failed commit answers many writers.
#[derive(Clone)]
pub struct BackendError(Arc<dyn StdError + Send + Sync>);

impl BackendError {
    /// Wraps an error of the backend.
    pub fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        BackendError(Arc::new(error))
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for BackendError {
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
        run: RunId,
        expected: u64,
        /// Sequence number of the run; 0 if the run does not exist.
        found: u64,
    },
    #[error("the batch for run {run} contradicts itself: {flaw}")]
    Malformed { run: RunId, flaw: String },
    #[error("the batch for run {run} has {bytes} bytes, the limit is {limit}")]
    TooBig {
        run: RunId,
        /// Size of the batch, in bytes.
        bytes: usize,
        /// Size limit, in bytes.
        limit: usize,
    },
    /// The disk or the database is full. Nothing was written; try again once there is room.
    #[error("there is no room left for the store")]
    Full { source: BackendError },
    /// Another process kept the store locked for too long. Nothing was written.
    #[error("the store is locked by another process")]
    Busy { source: BackendError },
    #[error("the store is read-only")]
    ReadOnly { source: BackendError },
    /// The store was removed, or replaced by another one. Nothing is kept any more: end the
    /// process.
    #[error("the store is lost: {why}")]
    Lost { why: String },
    #[error("the store is closed")]
    Closed,
    #[error("the store could not write")]
    Failed { source: BackendError },
}

/// A stored row is not what was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Damage {
    #[error("event {seq} of run {run} is damaged")]
    Event {
        run: RunId,
        seq: u64,
        /// Number over all runs; `None` if the event is missing.
        position: Option<u64>,
    },
    /// A snapshot. It is not used: the events tell the same.
    #[error("the snapshot of run {run} at event {seq} is damaged; its events are used instead")]
    Snapshot { run: RunId, seq: u64 },
    #[error("the row of run {run} is damaged")]
    Run { run: RunId },
    #[error("handoff {id} of run {run} is damaged")]
    Handoff { run: RunId, id: HandoffId },
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
    Lost { why: String },
    #[error("what is stored is damaged")]
    Damaged {
        #[from]
        source: Damage,
    },
    #[error("the store is closed")]
    Closed,
    #[error("the store could not be read")]
    Failed { source: BackendError },
}

/// Retention or compaction stopped. The steps completed so far stay; it can be called again.
#[derive(Clone, Debug, Error)]
pub enum UpkeepError {
    #[error("the store is closed")]
    Closed,
    #[error("the store could not be tidied")]
    Failed { source: BackendError },
}

/// A store could not be opened.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    #[error("there is no folder {folder} to keep the store in")]
    NoFolder { folder: PathBuf },
    #[error("{path} cannot be written: the file or its folder is read-only or not ours")]
    ReadOnly { path: PathBuf },
    #[error("{path} is not a store: {found}")]
    NotAStore { path: PathBuf, found: String },
    /// A newer version of the program wrote it. It was left unchanged.
    #[error("{path} was written by a newer version: its tables are {found}, known are {known}")]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("SQLite {found} can damage a store, at least {needed} is needed")]
    OldSqlite { found: String, needed: &'static str },
    #[error("{path} is on a file system that cannot keep a write-ahead log (mode `{mode}`)")]
    NoLog { path: PathBuf, mode: String },
    /// The disk is full; the store cannot be created or upgraded.
    #[error("there is no room for the store {path}")]
    Full { path: PathBuf, source: BackendError },
    #[error("{path} is locked by another process")]
    Busy { path: PathBuf, source: BackendError },
    #[error("{path} could not be opened")]
    Failed { path: PathBuf, source: BackendError },
}

/// A database could not be opened as a store.
#[derive(Clone, Debug, Error)]
pub enum ConnectError {
    #[error("this is not the address of a PostgreSQL database: {flaw}")]
    Address { flaw: String },
    #[error("nobody at {place} can prove to be it")]
    NotSecured { place: String, source: BackendError },
    #[error("{place} cannot be reached")]
    Unreachable { place: String, source: BackendError },
    #[error("{place} does not exist")]
    NoDatabase { place: String },
    /// The login failed, or the user may not create the tables.
    #[error("{place} does not allow it")]
    NotAllowed { place: String, source: BackendError },
    #[error("{place} cannot be a store: {found}")]
    NotAStore { place: String, found: String },
    /// A newer version of the program wrote it. It was left unchanged.
    #[error("{place} was written by a newer version: its tables are {found}, known are {known}")]
    Newer { place: String, found: u32, known: u32 },
    #[error("another daemon works on {place}")]
    Taken { place: String },
    #[error("{place} could not be opened")]
    Failed { place: String, source: BackendError },
}
