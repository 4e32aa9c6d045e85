//! The book of locks: one for each store, written under a version as runs are under their number.

use stafette_core::Time;
use thiserror::Error;

use crate::AppendError;

/// So many of the newest entries are kept, for people to look at. What is held is in the rows.
pub const LOCK_ENTRIES: u64 = 4096;

/// Something that became true of the locks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockEntry {
    /// Its number, from 1.
    pub seq: u64,
    /// When it became true.
    pub at: Time,
    /// The event's name.
    pub name: String,
    /// The whole event as JSON.
    pub body: String,
}

/// A lock that is held, or a place in the line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockRow {
    /// Its name.
    pub id: u64,
    /// Whether it is held.
    pub held: bool,
    /// All of it as JSON.
    pub body: String,
}

/// What one decision made true of the locks, to be written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockBatch {
    /// The number of the last entry that the writer knew.
    pub expected_version: u64,
    /// The entries, numbered on from there.
    pub entries: Vec<LockEntry>,
    /// The last fencing number after them; it never becomes smaller.
    pub fence: u64,
    /// What is new or changed.
    pub put: Vec<LockRow>,
    /// What is gone.
    pub remove: Vec<u64>,
}

impl LockBatch {
    /// The version after it.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.entries.last().map_or(self.expected_version, |entry| entry.seq)
    }

    /// Refuses what no backend should have to look at.
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

    /// Refuses what does not fit the book as it is.
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

/// All locks as they are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LockStore {
    /// The number of the last entry; 0 before the first.
    pub version: u64,
    /// The last fencing number that was given.
    pub fence: u64,
    /// What is held and waited for, in the order of their names.
    pub rows: Vec<LockRow>,
}

/// The book was not written.
#[derive(Clone, Debug, Error)]
pub enum LockError {
    /// Someone else wrote first.
    #[error("the locks are at version {found}, not at {expected}")]
    Conflict {
        /// The version that the batch was made for.
        expected: u64,
        /// The version that they have.
        found: u64,
    },
    /// The batch contradicts itself.
    #[error("the change of the locks contradicts itself: {flaw}")]
    Malformed {
        /// How.
        flaw: String,
    },
    /// The store could not write.
    #[error("the locks could not be stored")]
    NotWritten {
        /// Why.
        #[from]
        source: AppendError,
    },
}
