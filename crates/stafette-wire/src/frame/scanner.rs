//! Finds frames in a stream of bytes that arrives in pieces.

use memchr::memchr;

use super::candidate::{Candidate, Source, Step};
use super::{FRAME_LIMIT, Found, FrameError, Word};

/// Finds frames in a stream of bytes, however it is split.
///
/// Ordinary text is skipped in place. Bytes are kept only from a possible opening on, at most
/// [`FRAME_LIMIT`] and one piece of input, so that scanning can continue behind an opening that
/// turns out to be none.
#[derive(Debug)]
pub struct Scanner {
    word: Word,
    source: Source,
    /// The bytes of the candidate, from its first bracket.
    held: Vec<u8>,
    candidate: Option<Candidate>,
    /// The offset in the stream of the next byte, or of the first held one.
    offset: u64,
    /// The number of bytes that candidates have taken, to prove that the work is bounded.
    #[cfg(test)]
    steps: u64,
}

impl Scanner {
    /// Creates a scanner for frames as agents write them.
    #[must_use]
    pub fn new(word: Word) -> Self {
        Scanner {
            word,
            source: Source::Stream,
            held: Vec::new(),
            candidate: None,
            offset: 0,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Creates a scanner that also accepts what Markdown programs draw in place of a frame:
    /// `<<ODEI:HANDOFF:x>>` and `<<ODEI:HANDOFF:x (ODEI:HANDOFF:x)>>`. For screens only.
    #[must_use]
    pub fn drawn(word: Word) -> Self {
        Scanner { source: Source::Screen, ..Scanner::new(word) }
    }

    /// Creates a scanner for what a program prints to its terminal. Text ends where the cursor is
    /// moved, because what follows is shown elsewhere; only the screen tells what belongs together.
    #[must_use]
    pub fn printed(word: Word) -> Self {
        Scanner { source: Source::Terminal, ..Scanner::new(word) }
    }

    /// Takes the next bytes of the stream, and calls `found` for each result that they complete.
    pub fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(Found)) {
        let mut rest = bytes;
        while !self.held.is_empty() && !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.len().min(FRAME_LIMIT));
            rest = later;
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(piece);
            let done = self.pass(&held, &mut found);
            held.drain(..done);
            self.held = held;
        }
        let done = self.pass(rest, &mut found);
        self.held.extend_from_slice(&rest[done..]);
    }

    /// Ends the stream: an open candidate is reported as cut off.
    pub fn finish(&mut self, mut found: impl FnMut(Found)) {
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_slice();
        while let Some(candidate) = self.candidate.take() {
            if candidate.opening().is_some() {
                found(Found::malformed(FrameError::Cut, rest, self.offset));
            }
            let behind = candidate.opening().unwrap_or(1);
            self.offset += behind as u64;
            rest = &rest[behind..];
            let done = self.pass(rest, &mut found);
            rest = &rest[done..];
        }
    }

    /// Processes `data`, which begins with the candidate if there is one. Returns the number of
    /// bytes that are finished: all, or those before the candidate that is still open at the end.
    fn pass(&mut self, data: &[u8], found: &mut impl FnMut(Found)) -> usize {
        let mut start = 0;
        let mut at = self.candidate.as_ref().map_or(0, Candidate::taken);
        loop {
            let mut candidate = match self.candidate.take() {
                Some(candidate) => candidate,
                None => match possible_opening(data, at) {
                    Some(next) => {
                        (start, at) = (next, next);
                        Candidate::new(self.source)
                    }
                    None => {
                        self.offset += data.len() as u64;
                        return data.len();
                    }
                },
            };
            let offset = self.offset + start as u64;
            loop {
                let Some(byte) = data.get(at) else {
                    self.candidate = Some(candidate);
                    self.offset = offset;
                    return start;
                };
                at += 1;
                #[cfg(test)]
                {
                    self.steps += 1;
                }
                match candidate.take(*byte, &self.word) {
                    Step::More => continue,
                    Step::Not => at = start + 1,
                    Step::Wrong(fault) => {
                        found(Found::malformed(fault, &data[start..at], offset));
                        at = start + candidate.opening().unwrap_or(1);
                    }
                    Step::Done(frame) => found(Found::Frame { frame, offset }),
                }
                break;
            }
        }
    }
}

/// Returns the next `<` at which a frame may open: another bracket, styling or a line break follows
/// it, or the data ends there.
fn possible_opening(data: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = from + memchr(b'<', data.get(from..)?)?;
        if matches!(data.get(at + 1), None | Some(b'<' | 0x1b | b'\r' | b'\n')) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests;
