//! What is written and read: entries, rows, snapshots.

use stafette_core::{HandoffId, RunId, Time};

use crate::AppendError;

/// The most that one batch may hold, in bytes of text.
pub const BATCH_BYTES: usize = 64 << 20;

/// A page of entries ends once its bodies reach this many bytes.
pub const PAGE_BYTES: usize = 8 << 20;

/// An event as the store sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its number within the run, from 1.
    pub seq: u64,
    /// When it became true.
    pub at: Time,
    /// The event's name.
    pub name: String,
    /// The handoff it is about, if it is about one.
    pub handoff: Option<HandoffId>,
    /// The whole event as JSON.
    pub body: String,
}

/// An entry as it comes back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Its number over all runs: the cursor of [`crate::Store::feed`].
    pub position: u64,
    /// The run it belongs to.
    pub run: RunId,
    /// What was written.
    pub entry: Entry,
}

/// The state of a run after its first `seq` events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The last event that it includes.
    pub seq: u64,
    /// The state as JSON.
    pub body: String,
}

/// A run in one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRow {
    /// Which run.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// What the person asked for.
    pub title: String,
    /// The status in one word.
    pub status: String,
    /// What it waits for, when it waits.
    pub waiting_on: Option<String>,
    /// The last event that the row includes.
    pub seq: u64,
    /// When the run began.
    pub created_at: Time,
    /// When its last event became true.
    pub updated_at: Time,
    /// When it ended; a run without this is taken up again at the next start.
    pub finished_at: Option<Time>,
    /// The summary as JSON.
    pub body: String,
}

/// A handoff in one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandoffRow {
    /// The run it belongs to.
    pub run: RunId,
    /// Which handoff.
    pub id: HandoffId,
    /// Who gave the work.
    pub from: String,
    /// Who took it.
    pub to: String,
    /// Why it was handed over, in one word.
    pub reason: String,
    /// The state in one word.
    pub state: String,
    /// Whether a person still has to answer it.
    pub question: bool,
    /// When it was proposed.
    pub opened_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// When it was closed.
    pub closed_at: Option<Time>,
    /// The whole handoff as JSON.
    pub body: String,
}

/// What one decision made true, to be written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The run it belongs to.
    pub run: RunId,
    /// The last event that the writer knew; 0 creates the run.
    pub expected_seq: u64,
    /// The events, numbered on from `expected_seq`. Only a run that exists may have none.
    pub entries: Vec<Entry>,
    /// The run after them.
    pub row: RunRow,
    /// The handoffs that they changed.
    pub handoffs: Vec<HandoffRow>,
    /// The state after some of them, when it is time for one.
    pub snapshot: Option<Snapshot>,
}

impl Batch {
    /// The bytes of text in it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let entries = self.entries.iter().map(|entry| entry.name.len() + entry.body.len());
        let handoffs = self.handoffs.iter().map(|row| row.body.len() + row.reason.len());
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.body.len());
        entries.chain(handoffs).sum::<usize>() + self.row.body.len() + snapshot
    }

    /// Refuses what no backend should have to look at.
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

/// What it takes to go on with a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// The newest snapshot.
    pub snapshot: Option<Snapshot>,
    /// The events after it.
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

    /// How many entries more may be in it.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.entries.len())
    }

    /// The bytes that it may still have, at least one when it is not full.
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
