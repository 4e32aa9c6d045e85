//! Activity on a change: from its proposal, or from the request to apply or undo it, until that is
//! settled.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use stafette_core::change::{ChangeId, ChangeStatus};
use stafette_core::team::change::MOST_SETS;
use stafette_core::trace::Traceparent;
use stafette_core::workflow::telemetry::Telemetry;
use stafette_core::{Event, HandoffId, RunId, TeamEvent, Time};

use super::{Fact, OpenRun};

/// A change with an open activity.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OpenChange {
    /// Start of the activity.
    pub began: Time,
    /// Reason that the author gave.
    pub reason: String,
    /// Agent that proposed the change, if any.
    pub agent: Option<String>,
    pub handoff: Option<HandoffId>,
    /// Number of proposals so far.
    pub revision: u32,
    pub files: u64,
    /// Status as one word.
    pub status: String,
}

/// An activity on a change has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeEnded {
    pub run: RunId,
    /// Span of the caller that started the run.
    pub asked_in: Option<Traceparent>,
    pub id: ChangeId,
    pub change: OpenChange,
    /// Note about the end; may be empty.
    pub note: String,
}

/// Maximum number of ended runs that are kept, because their changes may still be settled.
const RUNS: usize = 256;

/// Changes of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Changes {
    open: BTreeMap<ChangeId, OpenChange>,
    /// All other changes, in their last state.
    settled: BTreeMap<ChangeId, OpenChange>,
}

impl Changes {
    /// Takes in an event about a change; returns the change if the event ends the activity.
    pub(super) fn apply(
        &mut self,
        at: Time,
        event: &Event,
    ) -> Option<(ChangeId, OpenChange, String)> {
        match event {
            Event::Team(TeamEvent::ChangeProposed(proposed)) => {
                let set = &proposed.set;
                let open = self.begin(at, set.change, set.handoff);
                open.agent = set.agent.as_ref().map(ToString::to_string);
                (open.handoff, open.revision) = (set.handoff, set.revision);
                (open.files, open.reason) = (set.count as u64, set.reason.clone());
                None
            }
            Event::Team(TeamEvent::ChangeOrdered(ordered)) => {
                self.begin(at, ordered.change, ordered.handoff);
                None
            }
            Event::Team(TeamEvent::ChangeSettled(settled)) => {
                let open = self.begin(at, settled.change, settled.handoff);
                open.status = settled.status.as_str().to_owned();
                // An approved change is not applied yet.
                if matches!(settled.status, ChangeStatus::Pending | ChangeStatus::Approved) {
                    return None;
                }
                let change = self.open.remove(&settled.change)?;
                self.remember(settled.change, &change);
                Some((settled.change, change, settled.note.clone()))
            }
            _ => None,
        }
    }

    /// Returns the open activity on a change, or starts one.
    fn begin(&mut self, at: Time, id: ChangeId, handoff: Option<HandoffId>) -> &mut OpenChange {
        let settled = &mut self.settled;
        self.open.entry(id).or_insert_with(|| {
            let known = settled.remove(&id);
            let known = known.unwrap_or_else(|| OpenChange { handoff, ..OpenChange::default() });
            OpenChange { began: at, status: "pending".to_owned(), ..known }
        })
    }

    fn remember(&mut self, id: ChangeId, change: &OpenChange) {
        self.settled.insert(id, change.clone());
        // The run keeps no more of them either.
        while self.settled.len() > MOST_SETS {
            self.settled.pop_first();
        }
    }

    /// Closes all open activities in their current state.
    fn leave(&mut self) -> Vec<(ChangeId, OpenChange)> {
        let open = std::mem::take(&mut self.open);
        open.iter().for_each(|(id, change)| self.remember(*id, change));
        open.into_iter().collect()
    }
}

/// An ended run with changes that may still be settled.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct OverRun {
    pub(super) telemetry: Telemetry,
    asked_in: Option<Traceparent>,
    changes: Changes,
}

/// Ended runs, the oldest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct OverRuns(VecDeque<(RunId, OverRun)>);

impl OverRuns {
    pub(super) fn get(&self, run: RunId) -> Option<&OverRun> {
        self.0.iter().find(|(id, _)| *id == run).map(|(_, over)| over)
    }

    /// Takes in an event about a change of an ended run.
    pub(super) fn apply(&mut self, run: RunId, at: Time, event: &Event) -> Option<Fact> {
        let (_, over) = self.0.iter_mut().find(|(id, _)| *id == run)?;
        let (id, change, note) = over.changes.apply(at, event)?;
        Some(ended(run, over.asked_in, id, change, note))
    }

    fn keep(&mut self, run: RunId, over: OverRun) {
        self.0.push_back((run, over));
        while self.0.len() > RUNS {
            self.0.pop_front();
        }
    }
}

impl OpenRun {
    /// Takes in an event about a change.
    pub(super) fn change(&mut self, run: RunId, at: Time, event: &Event) -> Option<Fact> {
        let (id, change, note) = self.changes.apply(at, event)?;
        Some(ended(run, self.asked_in, id, change, note))
    }

    /// Ends the run: open activities are reported in their current state, and kept for later
    /// events.
    pub(super) fn leave_changes(&mut self, run: RunId, over: &mut OverRuns) -> Vec<Fact> {
        let mut changes = std::mem::take(&mut self.changes);
        let told = changes.leave().into_iter();
        let told = told.map(|(id, change)| ended(run, self.asked_in, id, change, String::new()));
        let told = told.collect();
        if !changes.settled.is_empty() {
            let (telemetry, asked_in) = (self.telemetry.clone(), self.asked_in);
            over.keep(run, OverRun { telemetry, asked_in, changes });
        }
        told
    }
}

fn ended(
    run: RunId,
    asked_in: Option<Traceparent>,
    id: ChangeId,
    change: OpenChange,
    note: String,
) -> Fact {
    Fact::ChangeEnded(Box::new(ChangeEnded { run, asked_in, id, change, note }))
}
