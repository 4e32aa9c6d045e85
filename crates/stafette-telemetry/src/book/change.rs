//! What is going on about a change: from its proposal, or from the wish to have it in or out again,
//! until that is settled.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use stafette_core::change::{ChangeId, ChangeStatus};
use stafette_core::team::change::MOST_SETS;
use stafette_core::trace::Traceparent;
use stafette_core::workflow::telemetry::Telemetry;
use stafette_core::{Event, HandoffId, RunId, TeamEvent, Time};

use super::{Fact, OpenRun};

/// A change that something is going on about.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OpenChange {
    /// When it began.
    pub began: Time,
    /// What for.
    pub reason: String,
    /// The agent that proposed it.
    pub agent: Option<String>,
    /// The handoff that it was proposed in.
    pub handoff: Option<HandoffId>,
    /// How often it was proposed.
    pub revision: u32,
    /// How many files it touches.
    pub files: u64,
    /// How far it is, in a word.
    pub status: String,
}

/// What was going on about a change is over.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeEnded {
    /// Of which run.
    pub run: RunId,
    /// What the run was asked for in.
    pub asked_in: Option<Traceparent>,
    /// Which change.
    pub id: ChangeId,
    /// What was known of it.
    pub change: OpenChange,
    /// What is worth knowing about how it ended.
    pub note: String,
}

/// The most runs that are over and still remembered, because something may be done about their
/// changes.
const RUNS: usize = 256;

/// What is remembered of the changes of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Changes {
    /// Those that something is going on about.
    open: BTreeMap<ChangeId, OpenChange>,
    /// The others, as they were last.
    settled: BTreeMap<ChangeId, OpenChange>,
}

impl Changes {
    /// Takes in an event about a change; one that ends what was going on about it tells of that.
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
                // Allowed is not yet in.
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

    /// The change that something is going on about, from now on if nothing was.
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
        // A run remembers no more of them either.
        while self.settled.len() > MOST_SETS {
            self.settled.pop_first();
        }
    }

    /// Whatever waits, as it stands.
    fn leave(&mut self) -> Vec<(ChangeId, OpenChange)> {
        let open = std::mem::take(&mut self.open);
        open.iter().for_each(|(id, change)| self.remember(*id, change));
        open.into_iter().collect()
    }
}

/// A run that is over, and has changes that something may be done about.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct OverRun {
    pub(super) telemetry: Telemetry,
    asked_in: Option<Traceparent>,
    changes: Changes,
}

/// Those runs, the oldest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct OverRuns(VecDeque<(RunId, OverRun)>);

impl OverRuns {
    pub(super) fn get(&self, run: RunId) -> Option<&OverRun> {
        self.0.iter().find(|(id, _)| *id == run).map(|(_, over)| over)
    }

    /// Takes in what is done about a change of a run that is over.
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
    /// Takes in what was done about a change.
    pub(super) fn change(&mut self, run: RunId, at: Time, event: &Event) -> Option<Fact> {
        let (id, change, note) = self.changes.apply(at, event)?;
        Some(ended(run, self.asked_in, id, change, note))
    }

    /// The run is over: whatever waits is told as it stands, and remembered for what may be done
    /// about it later.
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
