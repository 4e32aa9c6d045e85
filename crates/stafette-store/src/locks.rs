//! The lock table: one per store, written with a version as runs are with a sequence number.

use stafette_model::Time;
use thiserror::Error;

use crate::AppendError;

/// Number of the newest entries that are kept, for people to look at. Held locks are in the rows.
pub const LOCK_ENTRIES: u64 = 4096;

/// An event about locks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockEntry {
    /// Sequence number, from 1.
    pub seq: u64,
    pub at: Time,
    pub name: String,
    /// The whole event as JSON.
    pub body: String,
}

/// A held lock, or a place in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockRow {
    pub id: u64,
    /// True if it is held, false if it waits.
    pub held: bool,
    /// The whole lock as JSON.
    pub body: String,
}

/// Result of one decision about locks, written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockBatch {
    /// Sequence number of the last entry that the writer knew.
    pub expected_version: u64,
    /// Entries, numbered on from `expected_version`.
    pub entries: Vec<LockEntry>,
    /// Last fencing number after the batch; it never falls.
    pub fence: u64,
    /// Rows that are new or changed.
    pub put: Vec<LockRow>,
    pub remove: Vec<u64>,
}

impl LockBatch {
    /// Returns the version after the batch.
    pub fn version(&self) -> u64 {
        self.entries.last().map_or(self.expected_version, |entry| entry.seq)
    }

    /// Refuses a malformed batch before it reaches a backend.
    pub(crate) fn check(&self) -> Result<(), LockError> {
        let mut last = self.expected_version;
        for entry in &self.entries {
            if last.checked_add(1) != Some(entry.seq) {
                let flaw = format!("entry {} follows entry {last}", entry.seq);
                return Err(LockError::Malformed { flaw });
            }
            last = entry.seq;
        }
        if self.entries.is_empty() {
            return Err(LockError::Malformed { flaw: "nothing became true".to_owned() });
        }
        match [last, self.fence].map(i64::try_from) {
            [Ok(_), Ok(_)] => Ok(()),
            _ => Err(LockError::Malformed { flaw: "a number is past the last one".to_owned() }),
        }
    }

    /// Refuses a batch that does not match the current version and fencing number.
    pub(crate) fn fits(&self, version: u64, fence: u64) -> Result<(), LockError> {
        if version != self.expected_version {
            let expected = self.expected_version;
            return Err(LockError::Conflict { expected, found: version });
        }
        match self.fence < fence {
            true => {
                let flaw = format!("the fencing number would fall from {fence} to {}", self.fence);
                Err(LockError::Malformed { flaw })
            }
            false => Ok(()),
        }
    }
}

/// All current locks with their version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LockStore {
    /// Sequence number of the last entry; 0 before the first.
    pub version: u64,
    /// Last fencing number that was given out.
    pub fence: u64,
    /// Locks held and waited for, ordered by id.
    pub rows: Vec<LockRow>,
}

/// A lock batch was not written.
#[derive(Clone, Debug, Error)]
pub enum LockError {
    #[error("the locks are at version {found}, not at {expected}")]
    Conflict { expected: u64, found: u64 },
    #[error("the change of the locks contradicts itself: {flaw}")]
    Malformed { flaw: String },
    #[error("the locks could not be stored")]
    NotWritten {
        #[from]
        source: AppendError,
    },
}
