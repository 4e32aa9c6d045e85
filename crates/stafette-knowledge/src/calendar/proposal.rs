//! Proposed blocks of time and their state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{HandoffId, RunId, Time};
use thiserror::Error;

use super::occurrence::Occurrence;
use super::slots::Block;
use crate::graph::NodeKey;
use crate::sqlite::SqliteError;
pub use crate::sqlite::{SqliteProposals as Proposals, Wish};

/// The most entries in one list.
pub const PAGE: usize = 1000;

/// The state of a proposed block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stand {
    /// It waits for a person's decision.
    Proposed,
    /// A person approved it; it is not in the calendar yet.
    Accepted,
    /// It is in the calendar.
    Written,
    /// It was moved in the calendar.
    Moved,
    /// It was deleted from the calendar.
    Deleted,
    /// A person rejected it.
    Dropped,
}

impl Stand {
    /// Returns the word that is stored.
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

    /// True if nothing else may take place at that time.
    pub fn holds_time(self) -> bool {
        matches!(self, Stand::Proposed | Stand::Accepted | Stand::Written | Stand::Moved)
    }

    /// True if a person approved that time.
    pub fn is_agreed(self) -> bool {
        matches!(self, Stand::Accepted | Stand::Written | Stand::Moved)
    }

    /// True if the calendar should contain it.
    pub fn is_in_calendar(self) -> bool {
        matches!(self, Stand::Written | Stand::Moved)
    }
}

/// A block of time that is proposed for a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// The id of the block.
    pub id: String,
    /// The state of the block.
    pub state: Stand,
    /// The run in which it was proposed.
    pub run: RunId,
    /// The handoff that asks a person about it.
    pub handoff: HandoffId,
    /// The task that it is for.
    pub task: NodeKey,
    /// The title of the task.
    pub title: String,
    /// The kind of work; `None` if the task has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The start of the block.
    pub start: Time,
    /// The end of the block.
    pub end: Time,
    /// The end as first planned; a later `end` counts as a slip.
    pub planned_end: Time,
    /// The tasks that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<NodeKey>,
    /// The moment by which its task must be done; `None` without a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The moment at which the task was really done; `None` while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Time>,
    /// The name of its entry in the calendar.
    pub entry: String,
    /// The problem with the block: why it is not in the calendar yet, or should not be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl Proposal {
    /// Converts the proposal to a plain block.
    pub fn block(&self) -> Block {
        Block {
            task: self.task.clone(),
            title: self.title.clone(),
            start: self.start,
            end: self.end,
        }
    }

    /// Converts the proposal to an occurrence.
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

/// A proposal could not be stored or changed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProposalError {
    #[error("there is no proposed block `{id}`")]
    None { id: String },
    #[error("the block `{id}` is {}: that cannot be done with it", state.word())]
    State { id: String, state: Stand },
    #[error("`{}` has the time of the block `{id}`", by.title)]
    Taken { id: String, by: Box<Proposal> },
    #[error("the proposals failed: {why}")]
    Failed { why: String },
}

impl From<SqliteError> for ProposalError {
    fn from(fault: SqliteError) -> Self {
        ProposalError::Failed { why: fault.to_string() }
    }
}
