//! Control frames: the dialect that agents speak in the middle of their terminal output.
//!
//! A frame is `<<<ODEI:TYPE:PAYLOAD>>>`; the word `ODEI` can be another one. The payload is plain
//! text or JSON, and may be missing (`<<<ODEI:END>>>`). A frame that a program signed carries
//! attributes: `<<<ODEI:TYPE;s=session;n=seq;m=mac:PAYLOAD>>>`.
//!
//! - [`Scanner`] finds frames in bytes, however they are cut into reads.
//! - [`Signal`] is what a frame means: READY, HANDOFF, ERROR, or something else.
//! - [`offer()`] and [`frame_of`] translate a HANDOFF to the model and back.
//!
//! Invariants:
//! - What is found, and where, does not depend on how the stream is cut.
//! - The scanner holds at most one unfinished frame and one piece of input, whatever arrives.
//! - Each byte is looked at a bounded number of times, whatever arrives.

mod candidate;
mod handoff;
mod scanner;
mod signal;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

pub use handoff::{frame_of, offer};
pub use scanner::Scanner;
pub use signal::{BadSignal, Code, Handoff, HandoffNote, NotACode, Problem, Ready, Signal};

/// The most bytes that a frame may have, from its first `<` to its last `>`, styling included.
pub const FRAME_LIMIT: usize = 64 * 1024;

/// The most levels that a JSON payload may have.
pub const JSON_DEPTH_LIMIT: u32 = 64;

/// The most bytes that a frame's type may have.
pub const TYPE_LIMIT: usize = 64;

/// The most bytes that a frame's attributes may have together.
pub const ATTRIBUTES_LIMIT: usize = 512;

/// The word that marks a frame as ours.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Word(Box<str>);

/// The text cannot mark frames.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "`{text}` cannot mark frames: use 1 to 32 letters, digits, `-` or `_`, beginning with a letter"
)]
pub struct BadWord {
    /// What was given instead.
    pub text: String,
}

impl Word {
    /// The word as text.
    #[must_use]
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

/// A frame, free of styling and line wraps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// What it is, in UPPER_SNAKE: `READY`, `HANDOFF`, `ERROR`, …
    pub kind: String,
    /// What a signed frame says of itself, in the order given: `s`, `n`, `m`.
    pub attributes: Vec<(String, String)>,
    /// The payload as it was written; nothing when there is none.
    pub body: Option<String>,
}

/// Who signed a frame, and how it is proved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seal {
    /// The session that it claims to come from.
    pub session: String,
    /// Its number within the session.
    pub seq: u64,
    /// The proof, over [`Frame::sealed_text`].
    pub mac: String,
}

impl Frame {
    /// A bare frame.
    #[must_use]
    pub fn new(kind: impl Into<String>, body: Option<String>) -> Self {
        Frame { kind: kind.into(), attributes: Vec::new(), body }
    }

    /// The payload as a value: an object or a list when it is JSON, otherwise a string.
    #[must_use]
    pub fn value(&self) -> Value {
        let body = self.body.as_deref().unwrap_or_default();
        if body.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str(body)
        {
            return value;
        }
        Value::String(body.to_owned())
    }

    /// Who signed it, when it carries all three attributes of a signature.
    #[must_use]
    pub fn seal(&self) -> Option<Seal> {
        let of = |name: &str| {
            self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        Some(Seal { session: of("s")?, seq: of("n")?.parse().ok()?, mac: of("m")? })
    }

    /// What a signature is made over: the frame without brackets, word and `m`.
    #[must_use]
    pub fn sealed_text(&self) -> String {
        self.text(|key| key != "m")
    }

    /// The frame as an agent would write it.
    #[must_use]
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
    /// The frame without its brackets and its word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(|_| true))
    }
}

/// Why something that opened like a frame is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    /// The type is missing, too long, or not UPPER_SNAKE.
    #[error("the type is not UPPER_SNAKE")]
    Type,
    /// The attributes are not `key=value` pairs, or too long.
    #[error("the attributes are not short key=value pairs")]
    Attributes,
    /// It is longer than [`FRAME_LIMIT`].
    #[error("no end within 65536 bytes")]
    TooLong,
    /// The stream ended inside it.
    #[error("the stream ended inside the frame")]
    Cut,
    /// Another frame opened inside it.
    #[error("another frame opened before this one ended")]
    Reopened,
    /// An empty line, which no terminal's wrapping makes.
    #[error("an empty line inside the frame")]
    BlankLine,
    /// An escape sequence that is broken off.
    #[error("a broken escape sequence inside the frame")]
    Escape,
    /// A control character.
    #[error("a control character inside the frame")]
    Control,
    /// The JSON payload is not JSON.
    #[error("the payload is not valid JSON")]
    Json,
    /// The JSON payload has more levels than [`JSON_DEPTH_LIMIT`].
    #[error("the payload has more than 64 levels")]
    TooDeep,
    /// Something stands between the payload and the closing brackets.
    #[error("`>>>` does not follow the payload")]
    Unclosed,
    /// The payload is not UTF-8.
    #[error("the payload is not UTF-8")]
    Encoding,
}

/// Something that the scanner came upon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// A frame.
    Frame {
        /// The frame.
        frame: Frame,
        /// Where its first bracket is in the stream.
        offset: u64,
    },
    /// Something that opened like a frame and is none.
    Malformed {
        /// Why it is none.
        fault: Fault,
        /// Where its first bracket is in the stream.
        offset: u64,
    },
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
