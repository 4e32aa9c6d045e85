//! Redaction of bytes that arrive in pieces, with escape sequences between them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::known::Known;
use super::shape::{self, Before, Drop, Match, Sighting};
use super::{LOOK, mark};
use crate::clean::{self, Escape, Found};

/// The maximum size of the escape sequences that are held back, in bytes.
const MOST_ASIDE: usize = 64 * 1024;

/// The maximum number of secrets that are noted before they are reached.
const MOST_LATER: usize = 8;

/// A stream that passes through a [`Redactor`](super::Redactor). It holds back at most [`LOOK`]
/// bytes of text, and the escape sequences between them.
pub struct Stream {
    known: Arc<Known>,
    /// An escape sequence that is not whole yet.
    part: Vec<u8>,
    /// The text that is not decided yet.
    held: Vec<u8>,
    aside: Aside,
    scan: Scan,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

/// Returns bytes without escape sequences among them, without their secrets.
pub(super) fn plain<'b>(known: &Known, bytes: &'b [u8]) -> Cow<'b, [u8]> {
    let (mut scan, mut aside) = (Scan::default(), Aside::default());
    let mut clean = Vec::with_capacity(bytes.len());
    scan.advance(known, bytes, bytes.len(), &mut Sink { clean: &mut clean, aside: &mut aside });
    if scan.found == 0 { Cow::Borrowed(bytes) } else { Cow::Owned(clean) }
}

impl Stream {
    pub(super) fn new(known: Arc<Known>) -> Stream {
        let (aside, scan) = (Aside::default(), Scan::default());
        Stream { known, part: Vec::new(), held: Vec::new(), aside, scan }
    }

    /// Takes the next piece and returns the bytes that are decided by now.
    #[must_use]
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.take(piece, false);
        match self.aside.size > MOST_ASIDE {
            true => self.release(self.held.len()),
            false => self.release((self.held.len() + 1).saturating_sub(LOOK)),
        }
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
        self.take(&[], true);
        let mut rest = self.release(self.held.len());
        self.aside.flush(&mut rest);
        self.scan = Scan { found: self.scan.found, ..Scan::default() };
        rest
    }

    /// Returns the number of bytes of text that are held back.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the number of secrets so far.
    pub(super) fn found(&self) -> usize {
        self.scan.found
    }

    /// Tells text from escape sequences.
    fn take(&mut self, piece: &[u8], is_last: bool) {
        let joined;
        let mut rest = match self.part.is_empty() {
            true => piece,
            false => {
                self.part.extend_from_slice(piece);
                joined = std::mem::take(&mut self.part);
                &joined
            }
        };
        let [escape, wide] = clean::ESCAPES;
        while let Some(at) = memchr::memchr2(escape, wide, rest) {
            self.held.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let length = match clean::escape(rest) {
                Found::Part if !is_last => {
                    self.part = rest.to_owned();
                    return;
                }
                Found::Part | Found::Nothing => {
                    self.held.push(rest[0]);
                    1
                }
                // The text around it is separate, which the sequence itself says.
                Found::Whole(Escape::Move, length) => {
                    self.held.extend_from_slice(&rest[..length]);
                    length
                }
                Found::Whole(kind, length) => {
                    self.set_aside(kind, &rest[..length]);
                    length
                }
            };
            rest = &rest[length..];
        }
        self.held.extend_from_slice(rest);
    }

    /// Keeps a sequence for the place where it was; a title may hold a secret of its own.
    fn set_aside(&mut self, kind: Escape, sequence: &[u8]) {
        let sequence = match kind {
            Escape::Text => plain(&self.known, sequence),
            _ => Cow::Borrowed(sequence),
        };
        self.scan.found += usize::from(matches!(sequence, Cow::Owned(_)));
        self.aside.push(self.aside.passed + self.held.len() as u64, &sequence);
    }

    fn release(&mut self, until: usize) -> Vec<u8> {
        let mut clean = Vec::new();
        let mut sink = Sink { clean: &mut clean, aside: &mut self.aside };
        let used = self.scan.advance(&self.known, &self.held, until, &mut sink);
        self.held.drain(..used);
        clean
    }
}

/// Escape sequences, each with its place in the text.
#[derive(Debug, Default)]
struct Aside {
    sequences: VecDeque<(u64, Vec<u8>)>,
    size: usize,
    /// The number of bytes of text that were decided.
    passed: u64,
}

impl Aside {
    fn push(&mut self, at: u64, sequence: &[u8]) {
        self.size += sequence.len();
        self.sequences.push_back((at, sequence.to_owned()));
    }

    /// True if a sequence stands right here.
    fn is_here(&self) -> bool {
        self.sequences.front().is_some_and(|(at, _)| *at <= self.passed)
    }

    /// Writes the sequences up to here.
    fn write(&mut self, clean: &mut Vec<u8>) {
        while self.is_here() {
            self.next(clean);
        }
    }

    fn next(&mut self, clean: &mut Vec<u8>) {
        if let Some((_, sequence)) = self.sequences.pop_front() {
            self.size -= sequence.len();
            clean.extend(sequence);
        }
    }

    fn flush(&mut self, clean: &mut Vec<u8>) {
        while !self.sequences.is_empty() {
            self.next(clean);
        }
    }
}

/// The outcome of a scan, with the escape sequences in their places.
struct Sink<'s> {
    clean: &'s mut Vec<u8>,
    aside: &'s mut Aside,
}

impl Sink<'_> {
    /// Passes these bytes on.
    fn keep(&mut self, mut bytes: &[u8]) {
        self.aside.write(self.clean);
        while let Some((at, _)) = self.aside.sequences.front() {
            let before = usize::try_from(at - self.aside.passed).unwrap_or(usize::MAX);
            if before >= bytes.len() {
                break;
            }
            self.clean.extend_from_slice(&bytes[..before]);
            self.aside.passed += before as u64;
            self.aside.write(self.clean);
            bytes = &bytes[before..];
        }
        self.clean.extend_from_slice(bytes);
        self.aside.passed += bytes.len() as u64;
    }

    /// Leaves this many bytes out; the sequences between them stay.
    fn drop(&mut self, count: usize) {
        self.aside.passed += count.saturating_sub(1) as u64;
        self.aside.write(self.clean);
        self.aside.passed += u64::from(count > 0);
    }

    fn mark(&mut self, kind: &str) {
        self.aside.write(self.clean);
        self.clean.extend_from_slice(mark(kind).as_bytes());
    }
}

/// The position of a scan in a text.
#[derive(Debug, Default)]
struct Scan {
    before: Before,
    dropping: Option<Drop>,
    /// Secrets further on, each after as many bytes as it keeps; the nearest one first.
    later: Vec<Match>,
    found: usize,
}

impl Scan {
    /// Decides about the bytes up to `until`, passes the remaining ones to `sink`, and returns the
    /// number of bytes consumed.
    fn advance(&mut self, by: &Known, bytes: &[u8], until: usize, sink: &mut Sink<'_>) -> usize {
        let mut at = 0;
        while at < until {
            let rest = &bytes[at..];
            let window = &rest[..rest.len().min(LOOK)];
            if let Some(dropping) = &mut self.dropping {
                match dropping.step(window) {
                    0 => self.dropping = None,
                    dropped => {
                        sink.drop(dropped);
                        at += self.passed(dropped);
                    }
                }
                continue;
            }
            let left = self.later.first().map_or(usize::MAX, |later| later.keep);
            if left == 0 {
                let Match { kind, drop, .. } = self.later.remove(0);
                self.begin(kind, drop, sink);
                continue;
            }
            let plain = match self.before.is_within_text() {
                true => by.starts.skip(rest, left.min(until - at)),
                false => 0,
            };
            if plain > 0 {
                sink.keep(&rest[..plain]);
                self.before.passed_all(&rest[..plain]);
                at += self.passed(plain);
                continue;
            }
            if let Some(length) = shape::mark(window) {
                // A mark of an earlier redaction is not inspected again, whatever the exact values
                // are.
                sink.keep(&rest[..length]);
                self.before = Before::after_mark();
                at += self.passed(length);
                continue;
            }
            let verdict = match by.exact(window) {
                Some(length) => Sighting::secret("environment", 0, Drop::Exactly(length)),
                None => shape::look(&self.before, window, sink.aside.is_here()),
            };
            match verdict {
                Sighting::Later(found) if self.expect(found) => {}
                Sighting::Plain | Sighting::Later(_) => {
                    sink.keep(&rest[..1]);
                    self.before.passed(rest[0]);
                    at += self.passed(1);
                }
                Sighting::Secret(Match { kind, keep, drop }) => {
                    sink.keep(&rest[..keep]);
                    at += self.passed(keep);
                    self.begin(kind, drop, sink);
                }
            }
        }
        at
    }

    fn begin(&mut self, kind: &str, drop: Drop, sink: &mut Sink<'_>) {
        sink.mark(kind);
        // The text after a mark is judged in its final position, so that a second pass over the
        // outcome finds nothing more.
        self.before = Before::after_mark();
        self.dropping = Some(drop);
        self.found += 1;
    }

    /// Notes a secret further on; false if it was known.
    fn expect(&mut self, found: Match) -> bool {
        let place = self.later.partition_point(|later| later.keep < found.keep);
        if self.later.get(place).is_some_and(|later| later.keep == found.keep) {
            return false;
        }
        self.later.insert(place, found);
        self.later.truncate(MOST_LATER);
        place < MOST_LATER
    }

    /// Notes that this many bytes are decided. A secret that began among them was part of another.
    fn passed(&mut self, count: usize) -> usize {
        self.later.retain_mut(|later| match later.keep.checked_sub(count) {
            Some(keep) => {
                later.keep = keep;
                true
            }
            None => false,
        });
        count
    }
}
