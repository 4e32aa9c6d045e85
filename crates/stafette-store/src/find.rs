//! Full-text index: the interface of every backend.

use stafette_model::{HandoffId, RunId, Time};
use thiserror::Error;

use crate::{BackendError, Reply};

/// A text in the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    pub run: RunId,
    /// Sequence number of the event that contains it.
    pub seq: u64,
    /// Handoff that the text is about, if any.
    pub handoff: Option<HandoffId>,
    pub at: Time,
    /// Kind of text, such as the event's name.
    pub kind: String,
    pub who: String,
    /// The text itself; in results, an excerpt.
    pub body: String,
}

/// The index cannot be used.
#[derive(Clone, Debug, Error)]
#[error("{place} cannot be searched")]
pub struct FindError {
    /// Path of the file, or address of the database.
    pub place: String,
    pub source: BackendError,
}

/// A future that resolves to the answer of an index.
pub type Finding<'a, T> = Reply<'a, Result<T, FindError>>;

/// A full-text index. It is built from the events, and rebuilt if it is lost.
pub trait Finder: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the position of the last indexed event.
    fn position(&self) -> Finding<'_, u64>;

    /// Adds texts, and records that everything up to `position` is indexed: all or nothing.
    fn add(&self, position: u64, texts: Vec<Text>) -> Finding<'_, ()>;

    /// Returns the number of indexed bytes of a file.
    fn read_of(&self, file: String) -> Finding<'_, u64>;

    /// Adds texts of a file, and records the number of its indexed bytes: all or nothing.
    fn add_of(&self, file: String, bytes: u64, texts: Vec<Text>) -> Finding<'_, ()>;

    /// Returns texts that contain all words, the best first, each cut to an excerpt with the
    /// matches in brackets. The last word may be a prefix; case and accents are ignored.
    fn find(&self, words: String, limit: usize) -> Finding<'_, Vec<Text>>;

    /// Removes the texts of a deleted run.
    fn forget(&self, run: RunId) -> Finding<'_, ()>;
}
