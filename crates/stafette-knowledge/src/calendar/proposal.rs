//! Blocks of time that were proposed, and what became of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{HandoffId, RunId, Time};
use thiserror::Error;

use super::occurrence::Occurrence;
use super::slots::Block;
use crate::graph::NodeKey;
use crate::sqlite::Fault;
pub use crate::sqlite::{SqliteProposals as Proposals, Wish};

/// The most that one list holds.
pub const PAGE: usize = 1000;

/// How far a proposed block has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stand {
    /// It waits for a person.
    Proposed,
    /// A person said yes; it is not in the calendar yet.
    Accepted,
    /// It is in the calendar.
    Written,
    /// Somebody moved it in the calendar.
    Moved,
    /// Somebody deleted it from the calendar.
    Deleted,
    /// A person said no.
    Dropped,
}

impl Stand {
    /// The word that is stored.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Stand::Proposed => "proposed",
            Stand::Accepted => "accepted",
            Stand::Written => "written",
            Stand::Moved => "moved",
            Stand::Deleted => "deleted",
            Stand::Dropped => "dropped",
        }
    }

    /// Whether nothing else may take place at that time.
    #[must_use]
    pub fn holds_time(self) -> bool {
        matches!(self, Stand::Proposed | Stand::Accepted | Stand::Written | Stand::Moved)
    }

    /// Whether a person said yes to that time.
    #[must_use]
    pub fn is_agreed(self) -> bool {
        matches!(self, Stand::Accepted | Stand::Written | Stand::Moved)
    }

    /// Whether it should be found in the calendar.
    #[must_use]
    pub fn is_in_calendar(self) -> bool {
        matches!(self, Stand::Written | Stand::Moved)
    }
}

/// A block of time that was proposed for a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// Its name.
    pub id: String,
    /// How far it has come.
    pub state: Stand,
    /// In which run it was proposed.
    pub run: RunId,
    /// In which question.
    pub handoff: HandoffId,
    /// For which task.
    pub task: NodeKey,
    /// What it is called.
    pub title: String,
    /// The kind of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// Until when it was planned at first; later ends are slips.
    pub planned_end: Time,
    /// The tasks that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<NodeKey>,
    /// When its task must be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When the task was really done, where it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Time>,
    /// Its entry in the calendar.
    pub entry: String,
    /// What is in its way: why it is not in the calendar yet, or why it should not be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl Proposal {
    /// The same as a block.
    #[must_use]
    pub fn block(&self) -> Block {
        Block {
            task: self.task.clone(),
            title: self.title.clone(),
            start: self.start,
            end: self.end,
        }
    }

    /// The same as something that takes place.
    #[must_use]
    pub fn occurrence(&self) -> Occurrence {
        Occurrence {
            entry: self.entry.clone(),
            uid: self.id.clone(),
            recurrence: None,
            title: self.title.clone(),
            notes: String::new(),
            start: self.start,
            end: self.end,
            all_day: false,
            busy: true,
            task: Some(self.task.clone()),
        }
    }
}

/// A proposal could not be kept or changed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProposalError {
    /// There is none.
    #[error("there is no proposed block `{id}`")]
    None {
        /// What was asked for.
        id: String,
    },
    /// It has come too far for that, or not far enough.
    #[error("the block `{id}` is {}: that cannot be done with it", state.word())]
    State {
        /// Which.
        id: String,
        /// How far it has come.
        state: Stand,
    },
    /// A person said yes to another one at that time.
    #[error("`{}` has the time of the block `{id}`", by.title)]
    Taken {
        /// Which.
        id: String,
        /// The other one.
        by: Box<Proposal>,
    },
    /// Anything else.
    #[error("the proposals failed: {why}")]
    Failed {
        /// What was said.
        why: String,
    },
}

impl From<Fault> for ProposalError {
    fn from(fault: Fault) -> Self {
        ProposalError::Failed { why: fault.to_string() }
    }
}
