//! Threads of talk with their messages, in the seed's own tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Time};
use thiserror::Error;

use crate::sqlite::Fault;
pub use crate::sqlite::SqliteHistory as History;

/// The longest message, in bytes.
pub const LONGEST_BODY: usize = 1 << 20;

/// The longest title, name or id, in bytes.
pub const LONGEST_TITLE: usize = 500;

/// The most that one page holds.
pub const PAGE: usize = 500;

/// A talk about one thing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Its id, given by whoever opens it.
    pub id: String,
    /// Which stage or module it belongs to.
    pub module: String,
    /// What it is about.
    pub title: String,
    /// When it began.
    pub created_at: Time,
    /// Whatever else its module wants to remember: run, agent, handoff.
    #[serde(default)]
    pub meta: Fields,
}

/// What somebody says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// Names the message for ever: said again under the same id, it is there once.
    pub id: String,
    /// In which thread.
    pub thread_id: String,
    /// Who says it: an agent's name, `human`, `system`.
    pub role: String,
    /// What.
    pub body: String,
    /// When.
    pub created_at: Time,
}

/// What somebody said, in its place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// In which thread.
    pub thread_id: String,
    /// From 1 in its thread, without gaps.
    pub seq: u64,
    /// Who said it.
    pub role: String,
    /// What.
    pub body: String,
    /// When.
    pub created_at: Time,
}

/// A piece of text around a hit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether this is what was looked for.
    pub hit: bool,
}

/// A message that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// In which thread.
    pub thread_id: String,
    /// What that is about.
    pub title: String,
    /// Its module.
    pub module: String,
    /// The message's id.
    pub message: String,
    /// Its place in the thread.
    pub seq: u64,
    /// Who said it.
    pub role: String,
    /// When.
    pub created_at: Time,
    /// The words around the hit.
    pub snippet: Vec<Piece>,
}

/// Which threads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadFilter {
    /// Only of this module.
    pub module: Option<String>,
    /// Only those after this one in the list, which has the newest first.
    pub after: Option<String>,
}

/// Something went wrong with the history.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum HistoryError {
    /// There is no such thread.
    #[error("there is no thread `{thread}`")]
    NoThread {
        /// What was asked for.
        thread: String,
    },
    /// A text is empty or too long.
    #[error("{what} must have 1 to {limit} bytes, it has {bytes}")]
    Length {
        /// Which text.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The id belongs to something else.
    #[error("the id `{id}` belongs to something else already")]
    Taken {
        /// Which id.
        id: String,
    },
    /// Anything else.
    #[error("the history failed: {why}")]
    Failed {
        /// What was said.
        why: String,
    },
}

impl From<Fault> for HistoryError {
    fn from(fault: Fault) -> Self {
        HistoryError::Failed { why: fault.to_string() }
    }
}
