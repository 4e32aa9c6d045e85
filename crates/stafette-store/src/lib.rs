//! Stores events, the rows that are projected from them, and snapshots.
//!
//! The store does not interpret events. It numbers the events of a run, writes them together with
//! the rows that the caller derived from them, and reads them back.
//!
//! Invariants:
//! - Events, rows and the snapshot of one [`Batch`] are stored together or not at all.
//! - A batch that [`Store::append`] acknowledged survives a crash of the process and a loss of
//!   power.
//! - Nothing is acknowledged once the store was removed or replaced ([`Store::lost`]).
//! - A batch is accepted only at the sequence number it was made for, so of two writers one wins.
//! - Positions grow over all runs, become visible in order and are never given twice: a reader that
//!   remembers the last one misses nothing and sees nothing twice.
//! - The cost of a read does not depend on the length of the history, except [`Store::check`].
//! - A row that is not what was written is an error that names it ([`Damage`]), never an answer;
//!   lists leave it out, and [`Store::check`] names it. A damaged snapshot is not used.
//! - A lock batch is accepted only at the version that it was made for, and the fencing number
//!   never falls.
//! - Everything has a limit: the queue, a commit, a page of a read, the size of the file. The size
//!   of a database is up to its administrator.
//!
//! Absent on purpose: clocks (the caller passes the time), a lock between daemons on one file (the
//! sequence number makes two of them safe), and any type of a database library in a public
//! signature.

mod checksum;
#[cfg(feature = "conformance")]
pub mod conformance;
mod digits;
mod error;
mod find;
mod locks;
mod memory;
mod postgres;
mod queue;
mod record;
mod report;
mod sqlite;
mod stats;
mod store;
mod words;

pub use error::{
    AppendError, BackendError, ConnectError, Damage, OpenError, ReadError, UpkeepError,
};
pub use find::{FindError, Finder, Finding, Text};
pub use locks::{LOCK_ENTRIES, LockBatch, LockEntry, LockError, LockRow, LockStore};
pub use memory::MemoryStore;
pub use postgres::{PostgresFinder, PostgresOptions, PostgresStore};
pub use record::{
    BATCH_BYTES, Batch, Entry, HandoffRow, Loaded, PAGE_BYTES, RunRow, Snapshot, Stored,
};
pub use report::{Compacted, Health, Removed};
pub use sqlite::{Options, SqliteFinder, SqliteStore};
pub use stats::{COMMIT_BOUNDS, Stats};
pub use store::{FIND_LIMIT, Reading, Reply, Retention, RunFilter, Store};
