//! What is going on about a change: from its proposal, or from the wish to have it in or out again,
//! until that is settled.

use serde::{Deserialize, Serialize};
use stafette_core::change::ChangeId;
use stafette_core::trace::Traceparent;
use stafette_core::{HandoffId, RunId, Time};
use stafette_engine::Entry;

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

/// The events of changes, as far as they are told here.
#[derive(Debug, Deserialize)]
struct Said {
    change: ChangeId,
    #[serde(default)]
    handoff: Option<HandoffId>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    revision: u32,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    count: u64,
    #[serde(default)]
    status: String,
    #[serde(default)]
    note: String,
}

/// Whether an event of that name is about a change.
pub(super) fn is_about_one(name: &str) -> bool {
    matches!(name, "change_proposed" | "change_ordered" | "change_settled")
}

impl OpenRun {
    /// Takes in what was done about a change.
    pub(super) fn change(&mut self, run: RunId, entry: &Entry) -> Option<Fact> {
        let said: Said = serde_json::from_str(&entry.body).ok()?;
        let began = || OpenChange {
            began: entry.at,
            handoff: said.handoff,
            status: "pending".to_owned(),
            ..OpenChange::default()
        };
        let open = self.changes.entry(said.change).or_insert_with(began);
        match entry.name.as_str() {
            "change_proposed" => {
                (open.agent, open.handoff) = (said.agent, said.handoff);
                (open.revision, open.files, open.reason) = (said.revision, said.count, said.reason);
                None
            }
            "change_settled" => {
                open.status.clone_from(&said.status);
                // Allowed is not yet in.
                if matches!(said.status.as_str(), "pending" | "approved") {
                    return None;
                }
                let change = self.changes.remove(&said.change)?;
                Some(self.ended_change(run, said.change, change, said.note))
            }
            _ => None,
        }
    }

    /// The run is over: whatever waits is told as it stands.
    pub(super) fn leave_changes(&mut self, run: RunId) -> Vec<Fact> {
        let open = std::mem::take(&mut self.changes).into_iter();
        open.map(|(id, change)| self.ended_change(run, id, change, String::new())).collect()
    }

    fn ended_change(&self, run: RunId, id: ChangeId, change: OpenChange, note: String) -> Fact {
        let asked_in = self.asked_in;
        Fact::ChangeEnded(Box::new(ChangeEnded { run, asked_in, id, change, note }))
    }
}
