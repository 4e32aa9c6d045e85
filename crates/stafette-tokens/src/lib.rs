//! Counts the tokens of a text with a real tokenizer.
//!
//! **Invariants.** The vocabulary is part of the program: nothing is read or fetched. The same text
//! always has the same count. No text can block the caller for long: texts longer than
//! [`MAX_BYTES`] are not counted at all.

use thiserror::Error;

/// The longest text that is counted, in bytes. Some texts of this length are slow to count, so
/// there has to be a limit.
pub const MAX_BYTES: usize = 64_000;

/// A text that is too long to be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{bytes} bytes are too many to count the tokens of; at most {MAX_BYTES} are")]
pub struct TooLong {
    /// The length of the text in bytes.
    pub bytes: usize,
}

/// Returns the number of tokens of `text`. The first call loads the vocabulary, which takes a
/// moment.
///
/// # Errors
/// If it is longer than [`MAX_BYTES`].
pub fn count(text: &str) -> Result<u64, TooLong> {
    if text.len() > MAX_BYTES {
        return Err(TooLong { bytes: text.len() });
    }
    // A text that looks like a marker of the model counts as plain text here: agents wrote it.
    let tokens = tiktoken_rs::o200k_base_singleton().encode_ordinary(text);
    Ok(u64::try_from(tokens.len()).unwrap_or(u64::MAX))
}

/// Loads the vocabulary, so that the first [`count`] is as fast as every other.
pub fn prepare() {
    tiktoken_rs::o200k_base_singleton();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_04_tokens_are_those_of_a_real_vocabulary() {
        for (text, tokens) in
            [("", 0), ("hello world", 2), ("antidisestablishmentarianism", 6), ("<|endoftext|>", 7)]
        {
            assert_eq!(count(text), Ok(tokens), "{text}");
        }
    }

    #[test]
    fn s3_04_what_is_too_long_is_not_counted() {
        assert!(count(&"a ".repeat(MAX_BYTES / 2)).is_ok());
        assert_eq!(count(&"a".repeat(MAX_BYTES + 1)), Err(TooLong { bytes: MAX_BYTES + 1 }));
    }

    #[test]
    fn what_repeats_itself_for_long_is_counted_too() {
        for text in ["a", " ", "\n", "=", "é", "漢"] {
            assert!(count(&text.repeat(MAX_BYTES / text.len())).is_ok());
        }
    }
}
