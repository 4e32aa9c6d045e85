//! Removes secrets from data before it is stored.
//!
//! It finds tokens with a known shape, private keys, passwords in addresses, values that are
//! assigned to a name like `password`, and the exact values of the environment's own secrets. Each
//! becomes `[redacted:KIND]`. It cannot be complete: a secret that looks like a word stays.
//!
//! Every decision depends on the text so far and on at most [`LOOK`] bytes ahead, so the outcome
//! does
//! not depend on how a stream is split into pieces, and the time is linear. Redacting a second time
//! changes nothing.
//!
//! [`Redact`] defines for each type that arrives at a run which of its fields are free text.

mod handoffs;
mod inputs;
mod lineage;
mod shape;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::Fields;
use shape::{Before, Drop, Match, Verdict};

/// The number of bytes to look ahead before deciding whether a secret begins.
pub const LOOK: usize = 512;

/// The minimum length of a secret environment value; shorter ones are too likely to be part of
/// something else.
const SHORTEST: usize = 8;

/// The maximum number of bytes to remove for a private key without its end.
const LONGEST_KEY: usize = 16 * 1024;

/// Suffixes of the names of variables whose values are secrets.
const SECRET_NAMES: [&str; 7] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS"];

/// A type that may contain secrets.
///
/// Free text is cleaned everywhere; agent names, ids, file names, digests and our own keywords stay
/// as they are, because they are used for look-ups. Each type is destructured field by field
/// without `..`, so that adding a field requires a decision about it.
pub trait Redact {
    /// Removes the secrets in place.
    fn redact(&mut self, redactor: &Redactor);
}

impl Redact for String {
    fn redact(&mut self, redactor: &Redactor) {
        if let Cow::Owned(clean) = redactor.text(self) {
            *self = clean;
        }
    }
}

impl<T: Redact> Redact for Option<T> {
    fn redact(&mut self, redactor: &Redactor) {
        if let Some(inner) = self {
            inner.redact(redactor);
        }
    }
}

impl<T: Redact> Redact for Vec<T> {
    fn redact(&mut self, redactor: &Redactor) {
        self.iter_mut().for_each(|item| item.redact(redactor));
    }
}

impl<T: Redact + ?Sized> Redact for Box<T> {
    fn redact(&mut self, redactor: &Redactor) {
        (**self).redact(redactor);
    }
}

impl Redact for Value {
    fn redact(&mut self, redactor: &Redactor) {
        redactor.value(self);
    }
}

impl Redact for Fields {
    fn redact(&mut self, redactor: &Redactor) {
        redactor.fields(self);
    }
}

/// Removes secrets from text, bytes and JSON.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Values that are secrets wherever they appear; longer ones first.
    exact: Vec<Vec<u8>>,
    notable: Notable,
}

/// The bytes that need inspection.
#[derive(Clone)]
struct Notable([bool; 256]);

impl Default for Notable {
    fn default() -> Self {
        Notable(shape::NOTABLE)
    }
}

impl fmt::Debug for Redactor {
    // The values must not leak into a log through the very type that removes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("exact", &self.exact.len()).finish()
    }
}

impl Redactor {
    /// Creates a redactor that knows the shapes only.
    #[must_use]
    pub fn new() -> Redactor {
        Redactor::default()
    }

    /// Creates a redactor that knows these values besides the shapes.
    #[must_use]
    pub fn knowing<V: Into<String>>(values: impl IntoIterator<Item = V>) -> Redactor {
        let values = values.into_iter().map(|value| value.into().into_bytes());
        let mut exact: Vec<Vec<u8>> = values.filter(|value| value.len() >= SHORTEST).collect();
        for value in &mut exact {
            value.truncate(LOOK);
        }
        exact.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        exact.dedup();
        let mut notable = Notable::default();
        for value in &exact {
            notable.0[usize::from(value[0])] = true;
        }
        Redactor { exact, notable }
    }

    /// Creates a redactor that knows the secrets among these variables, by their names and by the
    /// look of their values.
    #[must_use]
    pub fn of_environment<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Redactor
    where
        N: AsRef<str>,
        V: Into<String>,
    {
        let named = variables.into_iter().filter(|(name, _)| is_secret_variable(name.as_ref()));
        Redactor::knowing(named.map(|(_, value)| value.into()).filter(|value| is_unusual(value)))
    }

    /// Returns the text without its secrets.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Only whole characters are removed, so nothing is lost here.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Returns the bytes without their secrets.
    #[must_use]
    pub fn bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut scan = Scan::default();
        let mut clean = Vec::with_capacity(bytes.len());
        scan.advance(self, bytes, bytes.len(), &mut clean);
        if scan.found == 0 { Cow::Borrowed(bytes) } else { Cow::Owned(clean) }
    }

    /// Removes the secrets from every text in a JSON value, including field names.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => text.redact(self),
            Value::Array(items) => items.redact(self),
            Value::Object(fields) => self.fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn fields(&self, fields: &mut Fields) {
        for (name, field) in fields.iter_mut() {
            match field {
                Value::String(text) if shape::is_assigned_secret(name, text) => {
                    *text = mark("assignment");
                }
                other => self.value(other),
            }
        }
        if fields.keys().any(|name| matches!(self.text(name), Cow::Owned(_))) {
            let old = std::mem::take(fields);
            fields.extend(
                old.into_iter().map(|(name, field)| (self.text(&name).into_owned(), field)),
            );
        }
    }

    /// Starts a stream whose pieces arrive one after the other.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream { redactor: self.clone(), held: Vec::new(), scan: Scan::default() }
    }

    /// Returns how many of these bytes, at most `most`, can be skipped: no secret begins at any of
    /// them, and none has a special meaning. Nearly all of every text is skipped here.
    fn harmless(&self, bytes: &[u8], most: usize) -> usize {
        let is_notable = |at: usize| {
            let rest = &bytes[at..];
            shape::is_notable(rest) || self.exact(rest).is_some()
        };
        let may_be = |byte: u8| self.notable.0[usize::from(byte)];
        let mut places = bytes[..most].iter().enumerate();
        let stop = places.find(|(at, byte)| may_be(**byte) && is_notable(*at));
        stop.map_or(most, |(at, _)| at)
    }

    fn exact(&self, window: &[u8]) -> Option<usize> {
        // Most differ in their first two bytes, and comparing the whole value costs a call.
        let is_here = |value: &&Vec<u8>| {
            window.get(..2) == value.get(..2)
                && window.starts_with(value)
                && !shape::ends_in_mark(window, value.len())
        };
        self.exact.iter().find(is_here).map(Vec::len)
    }
}

/// A stream that passes through a [`Redactor`]. It holds back at most [`LOOK`] bytes.
#[derive(Debug)]
pub struct Stream {
    redactor: Redactor,
    held: Vec<u8>,
    scan: Scan,
}

impl Stream {
    /// Takes the next piece and returns the bytes that are decided by now.
    #[must_use]
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        self.release((self.held.len() + 1).saturating_sub(LOOK))
    }

    /// Returns the complete lines, because nothing more arrives for now. An incomplete line stays:
    /// the rest of a secret may follow.
    #[must_use]
    pub fn rest(&mut self) -> Vec<u8> {
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'\x1b');
        self.release(self.held.iter().rposition(ends).unwrap_or(0))
    }

    /// Returns the bytes that were held back; later pieces start a new stream.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let rest = self.release(self.held.len());
        self.scan = Scan::default();
        rest
    }

    fn release(&mut self, until: usize) -> Vec<u8> {
        let mut clean = Vec::new();
        let used = self.scan.advance(&self.redactor, &self.held, until, &mut clean);
        self.held.drain(..used);
        clean
    }
}

/// The position of a scan in a text.
#[derive(Debug, Default)]
struct Scan {
    before: Before,
    dropping: Option<Drop>,
    found: usize,
}

impl Scan {
    /// Decides about the bytes up to `until`, writes the remaining ones to `clean`, and returns the
    /// number of bytes consumed.
    fn advance(&mut self, by: &Redactor, bytes: &[u8], until: usize, clean: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while at < until {
            let rest = &bytes[at..];
            let window = &rest[..rest.len().min(LOOK)];
            if let Some(dropping) = &mut self.dropping {
                match dropping.step(window) {
                    0 => self.dropping = None,
                    dropped => at += dropped,
                }
                continue;
            }
            let plain = match self.before.is_within_text() {
                true => by.harmless(rest, until - at),
                false => 0,
            };
            if plain > 0 {
                clean.extend_from_slice(&rest[..plain]);
                self.before.passed_all(&rest[..plain]);
                at += plain;
                continue;
            }
            if let Some(length) = shape::mark(window) {
                // A mark of an earlier redaction is not inspected again, whatever the exact values
                // are.
                clean.extend_from_slice(&rest[..length]);
                self.before = Before::after_mark();
                at += length;
                continue;
            }
            let verdict = match by.exact(window) {
                Some(length) => Verdict::secret("environment", 0, Drop::Exactly(length)),
                None => shape::look(&self.before, window),
            };
            match verdict {
                Verdict::Plain => {
                    clean.push(rest[0]);
                    self.before.passed(rest[0]);
                    at += 1;
                }
                Verdict::Secret(Match { kind, keep, drop }) => {
                    clean.extend_from_slice(&rest[..keep]);
                    clean.extend_from_slice(mark(kind).as_bytes());
                    // The text after a mark is judged in its final position, so that a second pass
                    // over the outcome finds nothing more.
                    self.before = Before::after_mark();
                    self.dropping = Some(drop);
                    self.found += 1;
                    at += keep;
                }
            }
        }
        at
    }
}

fn mark(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// True if something was removed from this text.
#[must_use]
pub fn is_marked(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| shape::mark(&text.as_bytes()[at..]).is_some())
}

/// True if a variable of this name holds a secret.
#[must_use]
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|end| name.ends_with(end))
}

/// True if a value is unlikely to appear in a text by chance: no path, no word, no number.
fn is_unusual(value: &str) -> bool {
    let mut seen = [false; 256];
    value.bytes().for_each(|byte| seen[usize::from(byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_other = value.bytes().any(|byte| !byte.is_ascii_digit());
    let is_path = value.starts_with(['/', '~', '.']) || value.contains("://");
    value.len() >= SHORTEST
        && distinct >= 6
        && has_other
        && !is_path
        && (has_digit || value.len() >= 16)
}

#[cfg(test)]
mod tests;
