//! What every index of texts does.

use stafette_core::{HandoffId, RunId, Time};
use thiserror::Error;

use crate::{Fault, Reply};

/// A text that can be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// The run that it belongs to.
    pub run: RunId,
    /// The event that it is from.
    pub seq: u64,
    /// The handoff that it is about.
    pub handoff: Option<HandoffId>,
    /// When it was said.
    pub at: Time,
    /// What it is, such as the event's name.
    pub kind: String,
    /// Who said it.
    pub who: String,
    /// The words.
    pub body: String,
}

/// The index cannot be used.
#[derive(Clone, Debug, Error)]
#[error("{place} cannot be searched")]
pub struct FindError {
    /// Which file, or which database.
    pub place: String,
    /// Why.
    pub source: Fault,
}

/// An index of texts. It is made from the events, and made again when it is gone.
pub trait Finder: std::fmt::Debug + Send + Sync + 'static {
    /// The last event that is in it.
    fn position(&self) -> Reply<'_, Result<u64, FindError>>;

    /// Adds texts, and notes that everything up to `position` is in it. When it cannot be written,
    /// nothing is noted.
    fn add(&self, position: u64, texts: Vec<Text>) -> Reply<'_, Result<(), FindError>>;

    /// How many bytes of a file are in it.
    fn read_of(&self, file: String) -> Reply<'_, Result<u64, FindError>>;

    /// Adds texts of a file, and notes how many bytes of that are in it: all or nothing.
    fn add_of(
        &self,
        file: String,
        bytes: u64,
        texts: Vec<Text>,
    ) -> Reply<'_, Result<(), FindError>>;

    /// Texts with all of these words, the best first, each cut to the part with the words, which
    /// stand in brackets. The last word may be unfinished; case and accents do not matter.
    fn find(&self, words: String, limit: usize) -> Reply<'_, Result<Vec<Text>, FindError>>;

    /// Drops the texts of a run that is gone.
    fn forget(&self, run: RunId) -> Reply<'_, Result<(), FindError>>;
}
