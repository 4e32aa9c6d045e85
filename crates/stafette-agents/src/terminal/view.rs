//! The content of a terminal, for all observers.

use std::collections::VecDeque;

use stafette_core::wire::frame::Word;

use super::queries::{Ask, Event, Listener, Modes};
use super::sightings::{Sightings, times};
use super::{CELLS_LIMIT, RECENT_LIMIT, SCROLLBACK_LIMIT, Snapshot};
use crate::output::Tail;
use crate::screen::{BadSize, Screen, Sighting};

/// The size of output since the last [`View::listen`] that is kept, in bytes.
const PRINTED: usize = 64 * 1024;

/// The maximum number of bytes of answers for one read.
const ANSWERS: usize = 1024;

/// The maximum number of searches for a frame of an earlier turn in one read.
const LOOKS: usize = 16;

/// A terminal's screen, its recent output, and the frames found in it.
#[derive(Debug)]
pub(super) struct View {
    pub(super) screen: Screen,
    pub(super) sightings: Sightings,
    pub(super) modes: Modes,
    pub(super) title: Option<String>,
    /// The output since [`View::listen`].
    pub(super) printed: Tail,
    /// The total number of bytes of that output.
    pub(super) heard: u64,
    /// True if some of it was drawn rather than written line by line.
    pub(super) drawn: bool,
    listener: Listener,
    /// The number of bytes printed plus the number of size changes.
    seq: u64,
    /// The number of bytes that were searched.
    fed: u64,
    recent: VecDeque<u8>,
}

impl View {
    pub(super) fn new(word: Word, (columns, rows): (u16, u16)) -> Result<Self, BadSize> {
        fits(columns, rows)?;
        let screen = Screen::new(word.clone(), columns, rows)?;
        let mut view = View {
            screen,
            sightings: Sightings::new(word),
            modes: Modes::default(),
            title: None,
            printed: Tail::new(PRINTED),
            heard: 0,
            drawn: false,
            listener: Listener::default(),
            seq: 0,
            fed: 0,
            recent: VecDeque::new(),
        };
        view.share_memory();
        Ok(view)
    }

    /// Gives the history the part of the scrollback's limit that the screen's two buffers do not
    /// take.
    fn share_memory(&mut self) {
        self.screen.keep(SCROLLBACK_LIMIT.saturating_sub(self.screen.memory()));
    }

    /// Takes output of the program, and returns the answers to its questions.
    pub(super) fn output(&mut self, bytes: &[u8]) -> String {
        let mut events = Vec::new();
        self.listener.listen(bytes, |at, event| events.push((at, event)));
        let mut answers = String::new();
        let mut fed = 0;
        for (at, event) in events {
            self.modes.follow(&event);
            match event {
                Event::Ask(_) if answers.len() > ANSWERS => {}
                Event::Ask(ask) => {
                    // The cursor is where the bytes before the question have put it.
                    if matches!(ask, Ask::Position { .. }) {
                        self.feed(&bytes[fed..at]);
                        fed = at;
                    }
                    answers += &ask.answer(self.screen.cursor(), &self.modes);
                }
                Event::Title(title) => self.title = Some(title).filter(|title| !title.is_empty()),
                Event::Drawing => self.drawn = true,
                Event::Mode { .. } | Event::Reset => {}
            }
        }
        self.feed(&bytes[fed..]);
        self.printed.push(bytes);
        self.heard += bytes.len() as u64;
        self.remember(bytes);
        answers
    }

    /// Searches for frames in the bytes and on the screen that they draw.
    fn feed(&mut self, mut bytes: &[u8]) {
        let begins = self.fed;
        self.fed += bytes.len() as u64;
        let mut drawn = Vec::new();
        let mut looks = 0;
        for (frame, offset) in self.sightings.scan(bytes) {
            let mut redrawn = false;
            if self.sightings.stands(&frame) {
                looks += 1;
                if looks > LOOKS {
                    continue;
                }
                // It is a redraw unless the frame is visible once more: counted right before and
                // after its line, since the earlier one may leave the screen at any time.
                let gone = self.fed - bytes.len() as u64;
                let start = usize::try_from(offset.max(begins).saturating_sub(gone)).unwrap_or(0);
                let (before, rest) = bytes.split_at(start.min(bytes.len()));
                drawn.extend(self.screen.stream(before));
                let earlier = times(&frame, &self.screen);
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                let (line, after) = rest.split_at(end);
                drawn.extend(self.screen.stream(line));
                redrawn = times(&frame, &self.screen) <= earlier;
                bytes = after;
            }
            self.sightings.printed(frame, offset, redrawn);
        }
        drawn.extend(self.screen.stream(bytes));
        drawn.into_iter().for_each(|sighting| self.sightings.drawn(sighting));
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.seq += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(RECENT_LIMIT)..];
        let surplus = (self.recent.len() + kept.len()).saturating_sub(RECENT_LIMIT);
        self.recent.drain(..surplus);
        self.recent.extend(kept);
    }

    /// Searches the screen while the program pauses.
    pub(super) fn pause(&mut self) {
        self.sightings.visible(self.screen.frames(), self.fed);
    }

    /// Searches the screen as it is, since no more output will come.
    pub(super) fn finish(&mut self) {
        let drawn = self.screen.finish();
        drawn.into_iter().for_each(|sighting| self.sightings.drawn(sighting));
    }

    /// Changes the size. Observers begin anew, since a stream of bytes cannot express this.
    pub(super) fn resize(&mut self, columns: u16, rows: u16) -> Result<(), BadSize> {
        fits(columns, rows)?;
        self.screen.resize(columns, rows)?;
        self.share_memory();
        self.recent.clear();
        self.seq += 1;
        Ok(())
    }

    /// Begins another turn, in which `text` is typed.
    pub(super) fn next_turn(&mut self, text: &str) {
        self.sightings.next_turn(text, &mut self.screen);
        self.listen();
    }

    /// Forgets the output so far.
    pub(super) fn listen(&mut self) {
        self.printed = Tail::new(PRINTED);
        self.heard = 0;
        self.drawn = false;
    }

    /// The frames that were not taken yet.
    pub(super) fn take(&mut self) -> Vec<Sighting> {
        self.sightings.take()
    }

    /// The screen, and with it at most `history` bytes of the rows that left it.
    pub(super) fn snapshot(&self, history: usize) -> Snapshot {
        let (cols, rows) = self.screen.size();
        // Half a character is not on the screen yet, and comes with the bytes that follow.
        let pending = self.screen.pending().min(self.recent.len()) as u64;
        Snapshot {
            cols,
            rows,
            cursor: self.screen.cursor(),
            seq: self.seq - pending,
            // The screen's dump may end within a sequence, so it comes last.
            dump: self.modes.dump() + &self.screen.dump(),
            history: if history == 0 { String::new() } else { self.screen.history(history) },
        }
    }

    /// At most `limit` bytes that follow `after`; `None` when they are gone.
    pub(super) fn since(&self, after: u64, limit: usize) -> Option<Vec<u8>> {
        let first = self.seq - self.recent.len() as u64;
        let skip = usize::try_from(after.checked_sub(first)?).ok()?;
        if after > self.seq {
            return None;
        }
        Some(self.recent.iter().skip(skip).take(limit).copied().collect())
    }

    /// The last lines with visible text, oldest first: as they were printed by a program that
    /// writes line by line, as they are shown by one that draws.
    pub(super) fn lines(&self, count: usize) -> Vec<String> {
        if !self.drawn {
            return self.printed.lines(count);
        }
        let text = self.screen.text();
        let lines = text.iter().rev().filter_map(|line| crate::output::plain(line, 200));
        let says = |line: &String| line.chars().any(char::is_alphanumeric) && !line.contains("<<");
        let mut lines: Vec<String> = lines.filter(says).take(count).collect();
        lines.reverse();
        lines
    }
}

/// Checks that a screen of this size leaves room for its history.
fn fits(columns: u16, rows: u16) -> Result<(), BadSize> {
    if usize::from(columns) * usize::from(rows) > CELLS_LIMIT {
        return Err(BadSize { columns, rows });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
