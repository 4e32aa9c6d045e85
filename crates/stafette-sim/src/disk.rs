//! The store, which survives crashes, on a disk that is sometimes full, busy or unsure.

use std::fmt;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use stafette_core::{Event, Recorded, Run, RunId, Time, Usage};
use stafette_engine::Driver;
use stafette_store::{
    AppendError, BackendError, Batch, Entry, HandoffRow, MemoryStore, RunRow, Store, Stored,
};

use crate::Sabotage;
use crate::cast::Faults;
use crate::chance::Chance;

/// A store with faults.
#[derive(Debug)]
pub(crate) struct Disk {
    store: MemoryStore,
    full_until: Time,
    sabotage: Option<Sabotage>,
}

#[derive(Debug)]
struct Simulated;

impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as the seed wants it")
    }
}

impl std::error::Error for Simulated {}

impl Disk {
    pub(crate) fn new(sabotage: Option<Sabotage>) -> Self {
        Disk { store: MemoryStore::new(), full_until: Time(i64::MIN), sabotage }
    }

    /// Writes a batch, or fails, or writes it and reports failure.
    pub(crate) fn append(
        &mut self,
        now: Time,
        faults: &Faults,
        chance: &mut Chance,
        batch: Batch,
    ) -> Result<(), AppendError> {
        let source = BackendError::new(Simulated);
        if self.full_until > now {
            return Err(AppendError::Full { source });
        }
        if chance.per_mille(faults.full) {
            self.full_until = Time(now.0 + 100 + i64::try_from(chance.below(90_000)).unwrap_or(0));
            return Err(AppendError::Full { source });
        }
        if chance.per_mille(faults.busy) {
            return Err(AppendError::Busy { source });
        }
        let unsure = chance.per_mille(faults.unsure);
        if unsure && chance.percent(50) {
            return Err(AppendError::Failed { source });
        }
        let batch = match self.sabotage {
            Some(Sabotage::ForgetResults) if finishes(&batch).is_some() => return Ok(()),
            Some(Sabotage::KeepResultsTwice) => twice(batch),
            Some(Sabotage::MergeUnmeasured) => uncut(batch),
            Some(sabotage) if sabotage.is_in_the_kernel() => misjudged(batch, sabotage),
            _ => batch,
        };
        self.store.append_now(batch)?;
        if unsure { Err(AppendError::Failed { source }) } else { Ok(()) }
    }

    /// Returns the run as it is in the store.
    pub(crate) fn restore(&self, run: RunId) -> Option<Driver> {
        let loaded = self.store.load_now(run).ok().flatten()?;
        Driver::restore(&loaded).ok()
    }

    /// Returns the run after `seq` events, replayed from the first one.
    pub(crate) fn replay(&self, run: RunId, seq: u64) -> Option<Run> {
        let entries = self.entries_after(run, 0).into_iter().filter(|it| it.entry.seq <= seq);
        let read = |it: Stored| {
            let event: Event = serde_json::from_str(&it.entry.body).ok()?;
            Some(Recorded { seq: it.entry.seq, at: it.entry.at, event })
        };
        Run::replay(&entries.filter_map(read).collect::<Vec<_>>())
    }

    /// Loads the run from the store into a driver.
    pub(crate) fn reload(&self, run: RunId, driver: &mut Driver) -> bool {
        let loaded = self.store.load_now(run).ok().flatten();
        loaded.is_some_and(|loaded| driver.reload(&loaded).is_ok())
    }

    pub(crate) fn has_snapshot(&self, run: RunId) -> bool {
        let loaded = self.store.load_now(run).ok().flatten();
        loaded.is_some_and(|loaded| loaded.snapshot.is_some())
    }

    pub(crate) fn is_unfinished(&self, run: RunId) -> bool {
        self.store.unfinished_now().is_ok_and(|runs| runs.contains(&run))
    }

    pub(crate) fn entries_after(&self, run: RunId, seq: u64) -> Vec<Stored> {
        let mut all: Vec<Stored> = Vec::new();
        loop {
            // A page is bounded in bytes.
            let last = all.last().map_or(seq, |stored| stored.entry.seq);
            let page = at_once(self.store.entries(run, last, usize::MAX)).and_then(Result::ok);
            match page.filter(|page| !page.is_empty()) {
                Some(page) => all.extend(page),
                None => return all,
            }
        }
    }

    pub(crate) fn row(&self, run: RunId) -> Option<RunRow> {
        at_once(self.store.run(run)).and_then(Result::ok).flatten()
    }

    pub(crate) fn handoffs(&self, run: RunId) -> Vec<HandoffRow> {
        at_once(self.store.handoffs(run)).and_then(Result::ok).unwrap_or_default()
    }
}

/// Returns the result of a future that never has to wait.
pub(crate) fn at_once<T>(reply: impl Future<Output = T>) -> Option<T> {
    match pin!(reply).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

fn finishes(batch: &Batch) -> Option<&Entry> {
    batch.entries.iter().find(|entry| entry.name == "turn_finished")
}

/// Returns the batch without the information about what has to be cut.
fn uncut(mut batch: Batch) -> Batch {
    for entry in &mut batch.entries {
        let Ok(mut body) = serde_json::from_str::<serde_json::Value>(&entry.body) else { continue };
        let cuts = |event: &mut serde_json::Value| {
            let event = event.as_object_mut()?;
            let removed =
                ["cuts", "drops", "answer_cuts", "answer_drops"].map(|it| event.remove(it));
            removed.into_iter().find_map(|it| it)
        };
        let inner = body.as_object_mut().into_iter().flat_map(|it| it.values_mut());
        if inner.filter_map(cuts).count() > 0 || cuts(&mut body).is_some() {
            entry.body = body.to_string();
        }
    }
    batch
}

/// Returns the batch as a kernel with this defect would have decided it.
fn misjudged(mut batch: Batch, sabotage: Sabotage) -> Batch {
    for entry in &mut batch.entries {
        let Ok(mut event) = serde_json::from_str::<Event>(&entry.body) else { continue };
        match (sabotage, &mut event) {
            (Sabotage::TakeLateAnswers, Event::HandoffAdmitted(e)) => {
                e.terms.iter_mut().for_each(|terms| terms.deadline = None);
            }
            (Sabotage::CoolFromAdmission, Event::HandoffAdmitted(e)) => {
                e.terms.iter_mut().for_each(|terms| terms.cools = false);
            }
            (Sabotage::LoseParts, Event::RecoveryChosen(e)) => e.gathered = None,
            (Sabotage::ReserveNothing, Event::TurnOrdered(e)) => e.reserved = Usage::default(),
            _ => continue,
        }
        entry.body = serde_json::to_string(&event).unwrap_or_default();
    }
    // It would hold the state of the kernel as it should be.
    batch.snapshot = None;
    batch
}

/// Returns the batch with its result repeated.
fn twice(mut batch: Batch) -> Batch {
    if let Some(again) = finishes(&batch).cloned() {
        let seq = batch.row.seq + 1;
        batch.entries.push(Entry { seq, ..again });
        batch.row.seq = seq;
    }
    batch
}
