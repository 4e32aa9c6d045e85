//! Threads of discussion with their messages, in the seed's own tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Time};
use thiserror::Error;

use crate::sqlite::SqliteError;
pub use crate::sqlite::SqliteHistory as History;

/// The longest message, in bytes.
pub const LONGEST_BODY: usize = 1 << 20;

/// The longest title, name or id, in bytes.
pub const LONGEST_TITLE: usize = 500;

/// The most entries in one page.
pub const PAGE: usize = 500;

/// A discussion about one subject.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// The id, chosen by the caller that opens the thread.
    pub id: String,
    /// The stage or module that it belongs to.
    pub module: String,
    /// The subject of the thread.
    pub title: String,
    /// The time at which it was opened.
    pub created_at: Time,
    /// Extra data of its module: run, agent, handoff.
    #[serde(default)]
    pub meta: Fields,
}

/// A message to be added to a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// Identifies the message permanently: sent again under the same id, it is stored once.
    pub id: String,
    /// The id of its thread.
    pub thread_id: String,
    /// The author: an agent's name, `human` or `system`.
    pub role: String,
    /// The text of the message.
    pub body: String,
    /// The time of the message.
    pub created_at: Time,
}

/// A stored message with its position in the thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The id of the message.
    pub id: String,
    /// The id of its thread.
    pub thread_id: String,
    /// The position in its thread, from 1 without gaps.
    pub seq: u64,
    /// The author: an agent's name, `human` or `system`.
    pub role: String,
    /// The text of the message.
    pub body: String,
    /// The time of the message.
    pub created_at: Time,
}

/// A part of a snippet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    /// The text of this part.
    pub text: String,
    /// True if this part matches the search.
    pub hit: bool,
}

/// A message that matches a search.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The id of its thread.
    pub thread_id: String,
    /// The title of the thread.
    pub title: String,
    /// The module of the thread.
    pub module: String,
    /// The id of the message.
    pub message: String,
    /// The position of the message in its thread.
    pub seq: u64,
    /// The author of the message.
    pub role: String,
    /// The time of the message.
    pub created_at: Time,
    /// The text around the match, in parts.
    pub snippet: Vec<Piece>,
}

/// The selection of threads for a list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadFilter {
    /// Only threads of this module; all if `None`.
    pub module: Option<String>,
    /// Only threads after this one in the list, which is sorted newest first.
    pub after: Option<String>,
}

/// An operation on the history failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum HistoryError {
    #[error("there is no thread `{thread}`")]
    NoThread { thread: String },
    #[error("{what} must have 1 to {limit} bytes, it has {bytes}")]
    Length {
        what: &'static str,
        /// The actual length in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        limit: usize,
    },
    #[error("the id `{id}` belongs to something else already")]
    Taken { id: String },
    #[error("the history failed: {why}")]
    Failed { why: String },
}

impl From<SqliteError> for HistoryError {
    fn from(fault: SqliteError) -> Self {
        HistoryError::Failed { why: fault.to_string() }
    }
}
