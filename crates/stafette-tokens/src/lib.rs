//! Counts the tokens of a text with a real vocabulary, `o200k_base`.
//!
//! A text is first cut into pieces by the rules of the vocabulary (`pieces`); each piece is then
//! one token of the vocabulary, or as many as remain when its bytes are merged in the order of
//! their ranks.
//!
//! **Invariants.** The vocabulary is part of the program: nothing is read or fetched. The same text
//! always has the same count, the one that other programs with this vocabulary come to (a test
//! compares). No text can block the caller for long: counting costs n log n, and texts longer than
//! [`MAX_BYTES`] are not counted at all.

mod merge;
mod pieces;
mod vocabulary;

use thiserror::Error;

use crate::pieces::Pieces;

/// The longest text that is counted, in bytes.
pub const MAX_BYTES: usize = 64_000;

/// A text that is too long to be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{bytes} bytes are too many to count the tokens of; at most {MAX_BYTES} are")]
pub struct TooLong {
    /// The length of the text in bytes.
    pub bytes: usize,
}

/// Returns the number of tokens of `text`. The first call loads the vocabulary, which takes a
/// moment. What looks like a marker of a model is plain text here: agents wrote it.
///
/// # Errors
/// If it is longer than [`MAX_BYTES`].
pub fn count(text: &str) -> Result<u64, TooLong> {
    if text.len() > MAX_BYTES {
        return Err(TooLong { bytes: text.len() });
    }
    let ranks = vocabulary::ranks();
    let tokens: usize = Pieces::new(text).map(|piece| merge::count(piece.as_bytes(), ranks)).sum();
    Ok(u64::try_from(tokens).unwrap_or(u64::MAX))
}

/// Loads the vocabulary, so that the first [`count`] is as fast as every other.
pub fn prepare() {
    vocabulary::ranks();
}

#[cfg(test)]
mod tests;
