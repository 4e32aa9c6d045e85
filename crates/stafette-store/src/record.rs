//! Records that are written and read: entries, rows, snapshots.

use stafette_model::{HandoffId, RunId, Time};

use crate::AppendError;

/// Maximum size of a batch, in bytes of text.
pub const BATCH_BYTES: usize = 64 << 20;

/// Size of the bodies at which a page of entries ends, in bytes.
pub const PAGE_BYTES: usize = 8 << 20;

/// An event as the store sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Sequence number within the run, from 1.
    pub seq: u64,
    pub at: Time,
    pub name: String,
    /// Handoff that the event is about, if any.
    pub handoff: Option<HandoffId>,
    /// The whole event as JSON.
    pub body: String,
}

/// An entry as it is read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Number over all runs: the cursor of [`crate::Store::feed`].
    pub position: u64,
    /// Run that the entry belongs to.
    pub run: RunId,
    pub entry: Entry,
}

impl Stored {
    /// Returns how many of the entries follow `after` one by one: the rest comes after a gap.
    pub(crate) fn until_gap(entries: &[Stored], after: u64) -> usize {
        let mut expected = after;
        let follows = |stored: &&Stored| {
            expected = expected.saturating_add(1);
            stored.entry.seq == expected
        };
        entries.iter().take_while(follows).count()
    }
}

/// The state of a run after its first `seq` events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Sequence number of the last included event.
    pub seq: u64,
    /// The state as JSON.
    pub body: String,
}

/// A run in one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRow {
    pub run: RunId,
    pub workflow: String,
    /// Request of the person.
    pub title: String,
    /// Status as one word.
    pub status: String,
    /// Reason for waiting, such as `human` or `budget`; `None` if the run does not wait.
    pub waiting_on: Option<String>,
    /// Sequence number of the last included event.
    pub seq: u64,
    pub created_at: Time,
    /// Time of the last event.
    pub updated_at: Time,
    /// End of the run; a run without it is resumed at the next start.
    pub finished_at: Option<Time>,
    /// Summary of the run as JSON.
    pub body: String,
}

/// A handoff in one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandoffRow {
    pub run: RunId,
    /// Id of the handoff within the run.
    pub id: HandoffId,
    /// Party that gave the work.
    pub from: String,
    /// Party that the work was given to.
    pub to: String,
    /// Reason code, such as `task_handoff`.
    pub reason: String,
    /// State as one word.
    pub state: String,
    /// True while a person has to answer it.
    pub question: bool,
    pub opened_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
    /// Time of closing; `None` while open.
    pub closed_at: Option<Time>,
    /// The whole handoff as JSON.
    pub body: String,
}

/// Result of one decision, written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    pub run: RunId,
    /// Sequence number of the last event that the writer knew; 0 creates the run.
    pub expected_seq: u64,
    /// Events, numbered on from `expected_seq`. May be empty only for an existing run.
    pub entries: Vec<Entry>,
    /// Row of the run after the events.
    pub row: RunRow,
    /// Rows of the handoffs that the events changed.
    pub handoffs: Vec<HandoffRow>,
    /// State after some of the events, if a snapshot is due.
    pub snapshot: Option<Snapshot>,
}

impl Batch {
    /// Returns the size of the batch, in bytes of text.
    pub fn bytes(&self) -> usize {
        let entries = self.entries.iter().map(|entry| entry.name.len() + entry.body.len());
        let handoffs = self.handoffs.iter().map(|row| row.body.len() + row.reason.len());
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.body.len());
        entries.chain(handoffs).sum::<usize>() + self.row.body.len() + snapshot
    }

    /// Refuses a malformed batch before it reaches a backend.
    pub(crate) fn check(&self) -> Result<(), AppendError> {
        let bytes = self.bytes();
        if bytes > BATCH_BYTES {
            return Err(AppendError::TooBig { run: self.run, bytes, limit: BATCH_BYTES });
        }
        match self.flaw() {
            Some(flaw) => Err(AppendError::Malformed { run: self.run, flaw }),
            None => Ok(()),
        }
    }

    fn flaw(&self) -> Option<String> {
        let mut last = self.expected_seq;
        for entry in &self.entries {
            if last.checked_add(1) != Some(entry.seq) {
                return Some(format!("event {} follows event {last}", entry.seq));
            }
            last = entry.seq;
        }
        if last == 0 {
            return Some("a run begins with an event".to_owned());
        }
        if i64::try_from(last).is_err() {
            return Some(format!("event {last} is past the last number there is"));
        }
        if self.row.seq != last {
            return Some(format!("the row is at event {}, the events end at {last}", self.row.seq));
        }
        if self.row.run != self.run {
            return Some(format!("the row belongs to run {}", self.row.run));
        }
        if let Some(row) = self.handoffs.iter().find(|row| row.run != self.run) {
            return Some(format!("handoff {} belongs to run {}", row.id, row.run));
        }
        if let Some(snapshot) = &self.snapshot
            && !(1..=last).contains(&snapshot.seq)
        {
            return Some(format!("the snapshot is of event {}, the last is {last}", snapshot.seq));
        }
        None
    }
}

/// Data that is needed to continue a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// The newest snapshot, if any.
    pub snapshot: Option<Snapshot>,
    /// Events after the snapshot.
    pub entries: Vec<Stored>,
}

/// Collects entries up to a limit of number and of bytes.
#[derive(Debug)]
pub(crate) struct Page {
    limit: usize,
    bytes: usize,
    entries: Vec<Stored>,
}

impl Page {
    pub(crate) fn new(limit: usize) -> Self {
        Page { limit, bytes: 0, entries: Vec::new() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.limit || self.bytes >= PAGE_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns how many more entries fit into the page.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.entries.len())
    }

    /// Returns the bytes left, at least one if the page is not full.
    pub(crate) fn bytes_left(&self) -> usize {
        PAGE_BYTES.saturating_sub(self.bytes)
    }

    pub(crate) fn push(&mut self, stored: Stored) {
        self.bytes += stored.entry.body.len();
        self.entries.push(stored);
    }

    pub(crate) fn into_entries(self) -> Vec<Stored> {
        self.entries
    }
}
