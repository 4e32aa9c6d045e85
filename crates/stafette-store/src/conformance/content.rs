//! Test data: small runs that differ from each other.

use stafette_model::{HandoffId, RunId, Time};
use uuid::Uuid;

use crate::{Batch, Entry, HandoffRow, RunRow, Snapshot, Store};

/// Returns the id of the nth run.
pub fn run(n: u64) -> RunId {
    // The differing digits are at both ends, as in a UUIDv7.
    RunId(Uuid::from_u128(u128::from(n) << 80 | 0x7 << 76 | 0x8 << 60 | u128::from(n)))
}

/// A run that is written batch by batch.
#[derive(Clone, Debug)]
pub struct Story {
    /// Row of the run after the batches so far.
    pub row: RunRow,
}

impl Story {
    /// Creates the nth run, before its first event; it begins at time n.
    #[must_use]
    pub fn new(n: u64) -> Self {
        let at = Time(i64::try_from(n).unwrap_or(i64::MAX));
        Story {
            row: RunRow {
                run: run(n),
                workflow: "review".to_owned(),
                title: format!("Task {n}"),
                status: "running".to_owned(),
                waiting_on: None,
                seq: 0,
                created_at: at,
                updated_at: at,
                finished_at: None,
                body: format!(r#"{{"task":{n}}}"#),
            },
        }
    }

    /// Returns the id of the run.
    pub fn run(&self) -> RunId {
        self.row.run
    }

    /// Returns a batch of the next events, one for each name.
    pub fn tell(&mut self, names: &[&str]) -> Batch {
        let expected_seq = self.row.seq;
        let entries = names.iter().map(|name| self.event(name)).collect();
        Batch {
            run: self.row.run,
            expected_seq,
            entries,
            row: self.row.clone(),
            handoffs: Vec::new(),
            snapshot: None,
        }
    }

    /// Returns a batch of one event about a handoff, with its row.
    pub fn hand(&mut self, id: u32, state: &str, question: bool) -> Batch {
        let mut batch = self.tell(&[&format!("handoff_{state}")]);
        batch.entries[0].handoff = Some(HandoffId(id));
        batch.handoffs.push(self.handoff(id, state, question));
        batch
    }

    /// Returns a batch of the last event: the run has ended.
    pub fn finish(&mut self, at: i64) -> Batch {
        self.row.status = "succeeded".to_owned();
        self.row.finished_at = Some(Time(at));
        self.tell(&["run_finished"])
    }

    /// Returns a snapshot of the state so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { seq: self.row.seq, body: format!(r#"{{"after":{}}}"#, self.row.seq) }
    }

    /// Returns the row of a handoff.
    pub fn handoff(&self, id: u32, state: &str, question: bool) -> HandoffRow {
        HandoffRow {
            run: self.row.run,
            id: HandoffId(id),
            from: "builder".to_owned(),
            to: if question { "human" } else { "reviewer" }.to_owned(),
            reason: "review".to_owned(),
            state: state.to_owned(),
            question,
            opened_at: self.row.created_at,
            updated_at: self.row.updated_at,
            closed_at: (state == "closed").then_some(self.row.updated_at),
            body: format!(r#"{{"state":"{state}"}}"#),
        }
    }

    fn event(&mut self, name: &str) -> Entry {
        self.row.seq += 1;
        self.row.updated_at.0 += 1;
        Entry {
            seq: self.row.seq,
            at: self.row.updated_at,
            name: name.to_owned(),
            handoff: None,
            body: format!(r#"{{"event":"{name}","n":{}}}"#, self.row.seq),
        }
    }
}

/// Appends a batch that must succeed.
pub(super) async fn keep(store: &dyn Store, batch: Batch) -> u64 {
    store.append(batch).await.expect("the batch is appended")
}
