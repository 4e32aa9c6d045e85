//! Control frames: the dialect that agents write in the middle of their terminal output.
//!
//! A frame is `<<<ODEI:TYPE:PAYLOAD>>>`; the word `ODEI` can be another one. The payload is plain
//! text or JSON, and may be missing (`<<<ODEI:END>>>`). A frame that a program signed carries
//! attributes: `<<<ODEI:TYPE;s=session;n=seq;m=mac:PAYLOAD>>>`.
//!
//! - [`Scanner`] finds frames in bytes, however they are split into reads.
//! - [`Signal`] is the meaning of a frame: READY, HANDOFF, ERROR, or something else.
//!
//! Invariants:
//! - The frames found, and their offsets, do not depend on how the stream is split.
//! - The scanner holds at most one unfinished frame and one piece of input, whatever arrives.
//! - Each byte is inspected a bounded number of times, whatever arrives.

mod candidate;
mod scanner;
mod signal;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

pub use scanner::Scanner;
pub use signal::{BadSignal, Code, Handoff, HandoffNote, NotACode, Problem, Ready, Signal};

/// The maximum size of a frame in bytes, from its first `<` to its last `>`, including styling.
pub const FRAME_LIMIT: usize = 64 * 1024;

/// The maximum nesting depth of a JSON payload.
pub const JSON_DEPTH_LIMIT: u32 = 64;

/// The maximum length of a frame's type, in bytes.
pub const TYPE_LIMIT: usize = 64;

/// The maximum length of a frame's attributes together, in bytes.
pub const ATTRIBUTES_LIMIT: usize = 512;

/// The word that marks a frame as ours.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Word(Box<str>);

/// The text is not a valid frame word.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "`{text}` cannot mark frames: use 1 to 32 letters, digits, `-` or `_`, beginning with a letter"
)]
pub struct BadWord {
    pub text: String,
}

impl Word {
    /// Returns the word as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Word {
    fn default() -> Self {
        Word("ODEI".into())
    }
}

impl FromStr for Word {
    type Err = BadWord;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins || text.len() > 32 || !text.chars().all(plain) {
            return Err(BadWord { text: text.to_owned() });
        }
        Ok(Word(text.into()))
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A frame, without styling and line wraps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// The type, in UPPER_SNAKE: `READY`, `HANDOFF`, `ERROR`, …
    pub kind: String,
    /// The attributes of a signed frame, in the order given: `s`, `n`, `m`.
    pub attributes: Vec<(String, String)>,
    /// The payload as it was written; `None` if there is none.
    pub body: Option<String>,
}

/// The signature of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seal {
    /// The session that it claims to come from.
    pub session: String,
    /// The sequence number within the session.
    pub seq: u64,
    /// The message authentication code over [`Frame::sealed_text`].
    pub mac: String,
}

impl Frame {
    /// Creates a frame without attributes.
    #[must_use]
    pub fn new(kind: impl Into<String>, body: Option<String>) -> Self {
        Frame { kind: kind.into(), attributes: Vec::new(), body }
    }

    /// Returns the payload as a value: an object or a list if it is JSON, otherwise a string.
    pub fn value(&self) -> Value {
        let body = self.body.as_deref().unwrap_or_default();
        if body.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str(body)
        {
            return value;
        }
        Value::String(body.to_owned())
    }

    /// Returns the signature if the frame has all three attributes of one.
    pub fn seal(&self) -> Option<Seal> {
        let of = |name: &str| {
            self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        Some(Seal { session: of("s")?, seq: of("n")?.parse().ok()?, mac: of("m")? })
    }

    /// Returns the signed text: the frame without brackets, word and `m`.
    pub fn sealed_text(&self) -> String {
        self.text(|key| key != "m")
    }

    /// Formats the frame as an agent would write it.
    pub fn wire(&self, word: &Word) -> String {
        format!("<<<{word}:{self}>>>")
    }

    fn text(&self, keep: impl Fn(&str) -> bool) -> String {
        let mut text = self.kind.clone();
        for (key, value) in self.attributes.iter().filter(|(key, _)| keep(key)) {
            text.push(';');
            text.push_str(key);
            text.push('=');
            text.push_str(value);
        }
        if let Some(body) = &self.body {
            text.push(':');
            text.push_str(body);
        }
        text
    }
}

impl fmt::Display for Frame {
    /// Formats the frame without its brackets and its word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(|_| true))
    }
}

/// The reason why something that opened like a frame is not one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// The type is missing, too long, or not UPPER_SNAKE.
    #[error("the type is not UPPER_SNAKE")]
    Type,
    /// The attributes are not `key=value` pairs, or too long.
    #[error("the attributes are not short key=value pairs")]
    Attributes,
    #[error("no end within 65536 bytes")]
    TooLong,
    #[error("the stream ended inside the frame")]
    Cut,
    #[error("another frame opened before this one ended")]
    Reopened,
    #[error("an empty line inside the frame")]
    BlankLine,
    #[error("a broken escape sequence inside the frame")]
    Escape,
    #[error("the cursor was moved inside the frame")]
    Moved,
    #[error("a control character inside the frame")]
    Control,
    #[error("the payload is not valid JSON")]
    Json,
    #[error("the payload has more than 64 levels")]
    TooDeep,
    #[error("`>>>` does not follow the payload")]
    Unclosed,
    /// The payload is not UTF-8.
    #[error("the payload is not UTF-8")]
    Encoding,
}

/// The size of the beginning of a malformed frame that is kept for people, in bytes.
const EXCERPT: usize = 100;

/// A result of the scanner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// A complete and valid frame.
    Frame {
        frame: Frame,
        /// The offset of its first bracket in the stream.
        offset: u64,
    },
    /// Text that opened like a frame and is not one.
    Malformed {
        /// The reason why it is not a frame.
        fault: FrameError,
        /// The beginning of the text, at most 100 bytes of it.
        text: String,
        /// The offset of its first bracket in the stream.
        offset: u64,
    },
}

impl Found {
    fn malformed(fault: FrameError, bytes: &[u8], offset: u64) -> Self {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT)]).into_owned();
        Found::Malformed { fault, text, offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_01_the_word_is_odei_unless_another_one_is_given() {
        assert_eq!(Word::default().as_str(), "ODEI");
        assert_eq!("RELAY_2".parse::<Word>().map(|word| word.to_string()), Ok("RELAY_2".into()));
        for bad in ["", "<", "a b", "2x", "x:y", "ä"] {
            assert!(bad.parse::<Word>().is_err(), "{bad:?} must not mark frames");
        }
    }

    #[test]
    fn b_07_a_seal_needs_all_three_attributes_and_covers_all_but_itself() {
        let mut frame = Frame::new("HANDOFF", Some("decisions".into()));
        assert_eq!(frame.seal(), None);
        for (key, value) in [("s", "a1"), ("n", "7"), ("m", "c0ffee")] {
            frame.attributes.push((key.into(), value.into()));
        }
        let seal = Seal { session: "a1".into(), seq: 7, mac: "c0ffee".into() };
        assert_eq!(frame.seal(), Some(seal));
        assert_eq!(frame.sealed_text(), "HANDOFF;s=a1;n=7:decisions");
        assert_eq!(frame.wire(&Word::default()), "<<<ODEI:HANDOFF;s=a1;n=7;m=c0ffee:decisions>>>");
    }
}
