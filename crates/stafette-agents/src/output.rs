//! The output of an agent: its end is kept, the rest is only scanned.

use stafette_core::clean::unescaped;

/// The longest note on what an agent is doing, in characters.
const NOTE: usize = 200;

/// The number of bytes at the end that are searched for a note.
const NOTE_REACH: usize = 4 * 1024;

/// The number of lines that are searched for a complaint.
const COMPLAINT_LINES: usize = 20;

/// The line by which `stafette emit` confirms a signal: it is no complaint.
const TAKEN: &str = "taken";

/// The last bytes of a stream.
#[derive(Debug)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    limit: usize,
}

impl Tail {
    /// A tail of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Tail { bytes: Vec::new(), limit }
    }

    /// Adds the bytes of one read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // It grows to twice the limit before it is moved, so that a byte is moved once and not at
        // every read.
        if self.bytes.len() > self.limit * 2 {
            self.bytes.drain(..self.bytes.len() - self.limit);
        }
    }

    /// The bytes that are kept.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(self.limit)..]
    }

    /// The last line with visible text.
    pub(crate) fn note(&self) -> Option<String> {
        self.lines(1).pop()
    }

    /// The line that says best what went wrong: the last one that begins with `error:`, since what
    /// follows it says how to mend that; otherwise the last one that is not our own.
    pub(crate) fn complaint(&self) -> Option<String> {
        let lines = self.lines(COMPLAINT_LINES);
        let is_error = |line: &&String| {
            line.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("error:"))
        };
        let other = |line: &&String| *line != TAKEN;
        let best = lines.iter().rev().find(is_error).or_else(|| lines.iter().rev().find(other));
        best.cloned()
    }

    /// The last `count` lines with visible text, oldest first, without styling and not too long.
    /// Control frames mean nothing to people.
    pub(crate) fn lines(&self, count: usize) -> Vec<String> {
        let bytes = self.bytes();
        let mut recent = &bytes[bytes.len().saturating_sub(NOTE_REACH)..];
        if recent.len() < bytes.len() {
            // It may begin in the middle of a secret.
            let ends = recent.iter().position(u8::is_ascii_whitespace);
            recent = &recent[ends.unwrap_or(recent.len())..];
        }
        let text = String::from_utf8_lossy(recent);
        let mut lines: Vec<String> = text
            .rsplit(['\n', '\r'])
            .filter_map(|line| plain(line, NOTE))
            .filter(|line| !line.starts_with("<<<"))
            .take(count)
            .collect();
        lines.reverse();
        lines
    }
}

/// A line as plain text: no escape sequences, no control characters, at most `limit` characters;
/// `None` when nothing is left.
pub(crate) fn plain(line: &str, limit: usize) -> Option<String> {
    let text = unescaped(line);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    match text.char_indices().nth(limit) {
        // Between words if possible: half of a secret could not be recognised any more.
        Some((end, _)) => {
            let end = text[..end].rfind(' ').unwrap_or(end);
            Some(format!("{}…", &text[..end]))
        }
        None => Some(text.to_owned()),
    }
}

/// Cuts a stream into lines of at most `limit` bytes; a longer one is dropped up to its end.
#[derive(Debug)]
pub(crate) struct Lines {
    held: Vec<u8>,
    limit: usize,
    skipping: bool,
    dropped: bool,
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Lines { held: Vec::new(), limit, skipping: false, dropped: false }
    }

    /// True if a line was too long.
    pub(crate) fn dropped(&self) -> bool {
        self.dropped
    }

    /// Takes the bytes of one read and passes every complete line to `each`. Returns the number of
    /// lines that were too long.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> u64 {
        let mut dropped = 0;
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if !self.skipping && self.held.len() + line.len() <= self.limit {
                if self.held.is_empty() {
                    each(line);
                } else {
                    self.held.extend_from_slice(line);
                    each(&self.held);
                }
            } else {
                self.dropped = true;
                dropped += 1;
            }
            self.held.clear();
            self.skipping = false;
            bytes = rest;
        }
        if self.skipping || self.held.len() + bytes.len() > self.limit {
            self.held.clear();
            self.skipping = true;
            self.dropped = true;
        } else {
            self.held.extend_from_slice(bytes);
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_18_the_line_with_the_error_is_the_complaint_and_not_what_to_do_about_it() {
        let complaint = |text: &str| {
            let mut tail = Tail::new(1024);
            tail.push(text.as_bytes());
            tail.complaint()
        };
        let refused = "starting\nerror: Unknown target: nobody\n  why: x\n  fix: correct it\n";
        assert_eq!(complaint(refused).as_deref(), Some("error: Unknown target: nobody"));
        assert_eq!(complaint("Error: no\nat line 3\n").as_deref(), Some("Error: no"));
        assert_eq!(complaint("out of memory\ntaken\n").as_deref(), Some("out of memory"));
        assert_eq!(complaint("one\ntwo\n").as_deref(), Some("two"));
        assert_eq!(complaint("taken\n"), None);
    }

    #[test]
    fn a_tail_keeps_the_end_and_stays_small() {
        let mut tail = Tail::new(10);
        for _ in 0..1000 {
            tail.push(b"0123456789abc");
        }
        assert_eq!(tail.bytes(), b"3456789abc");
        assert!(tail.bytes.len() <= 33);
    }

    #[test]
    fn a_note_is_the_last_line_without_its_styling() {
        let mut tail = Tail::new(1000);
        tail.push(b"first\n\x1b[32mtests \x1b[1mpass\x1b[0m\n\n  \r\n");
        assert_eq!(tail.note().as_deref(), Some("tests pass"));
        assert_eq!(tail.lines(2), ["first", "tests pass"]);
        assert_eq!(plain("\u{1b}]0;title\u{7}busy\u{1b}(B", 200).as_deref(), Some("busy"));
        assert_eq!(plain(&"x".repeat(300), 200).map(|note| note.chars().count()), Some(201));
        assert_eq!(plain(" \u{1b}[2K\t", 200), None);
    }

    #[test]
    fn lines_come_whole_under_any_cut_and_long_ones_are_dropped() {
        let stream = b"one\ntwo is too long\nthree\nrest";
        for size in 1..stream.len() {
            let mut lines = Lines::new(6);
            let mut seen = Vec::new();
            for chunk in stream.chunks(size) {
                lines.push(chunk, |line| seen.push(String::from_utf8_lossy(line).into_owned()));
            }
            assert_eq!(seen, ["one", "three"], "in chunks of {size}");
            assert!(lines.dropped());
        }
    }
}
