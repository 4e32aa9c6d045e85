//! A session's screen: what a person would see, and the frames that are to be seen on it.
//!
//! Full-screen programs do not write a frame from left to right. They move the cursor, skip letters
//! that are already there, wrap by themselves, and draw the same line many times. So the bytes go
//! through a terminal emulator, and frames are looked for on what it shows.
//!
//! - The screen is looked at after each piece of input, after each synchronized update, and before
//!   the cursor leaves a row that has changed. It is not looked at in the middle of an escape
//!   sequence or of a synchronized update, where half of a row may be old.
//! - Rows that scroll off are looked at once more as they leave.
//! - A frame counts once, by its content: a redraw is not a second frame. [`Screen::next_turn`]
//!   lets the same frame count again, when it is no longer on the screen.
//! - Everything on a screen can be forged by whatever is shown there, so frames are
//!   [`Tier::Bare`] unless a verifier vouches for their signature.

mod decoder;
mod history;
mod rows;
mod watch;

use std::fmt;
use std::ops::Range;

use avt::Terminal;
use serde::Serialize;
use stafette_core::wire::frame::{Frame, Word};
use thiserror::Error;

pub(crate) use decoder::Utf8;

use decoder::Decoder;
use watch::Watch;

/// The most columns that a screen may have.
pub const COLUMNS_LIMIT: u16 = 1000;

/// The most rows that a screen may have.
pub const ROWS_LIMIT: u16 = 2000;

/// How many bytes are fed at once, so that what scrolls off meanwhile stays small.
const PIECE: usize = 4096;

/// How far a frame can be trusted by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Anybody may have written it: it only proposes.
    Bare,
    /// The session's own shim signed it.
    Signed,
}

/// A frame that became visible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// The frame.
    pub frame: Frame,
    /// How many bytes of the stream had been taken when it was first seen.
    pub offset: u64,
    /// How far it can be trusted.
    pub tier: Tier,
}

/// Where a screen's cursor is, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cursor {
    /// From the left.
    pub column: u16,
    /// From the top.
    pub row: u16,
    /// Whether it is to be seen.
    pub visible: bool,
}

/// The size cannot be a screen's.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{columns}x{rows} is not a screen: use 1x1 to {COLUMNS_LIMIT}x{ROWS_LIMIT}")]
pub struct BadSize {
    /// The columns that were asked for.
    pub columns: u16,
    /// The rows that were asked for.
    pub rows: u16,
}

/// A terminal's screen, and the frames that were seen on it.
pub struct Screen {
    terminal: Terminal,
    decoder: Decoder,
    watch: Watch,
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, rows) = self.terminal.size();
        f.debug_struct("Screen")
            .field("columns", &columns)
            .field("rows", &rows)
            .finish_non_exhaustive()
    }
}

fn checked(columns: u16, rows: u16) -> Result<(usize, usize), BadSize> {
    if (1..=COLUMNS_LIMIT).contains(&columns) && (1..=ROWS_LIMIT).contains(&rows) {
        Ok((columns.into(), rows.into()))
    } else {
        Err(BadSize { columns, rows })
    }
}

impl Screen {
    /// An empty screen on which frames with `word` are looked for.
    ///
    /// # Errors
    /// When no screen has that size.
    pub fn new(word: Word, columns: u16, rows: u16) -> Result<Self, BadSize> {
        let bad = BadSize { columns, rows };
        let (columns, rows) = checked(columns, rows)?;
        Ok(Screen {
            terminal: Terminal::new(columns, rows).map_err(|_| bad)?,
            decoder: Decoder::default(),
            watch: Watch::new(word, rows),
        })
    }

    /// Lets `verifier` vouch for signed frames.
    #[must_use]
    pub fn verified_by(mut self, verifier: impl Fn(&Frame) -> bool + Send + 'static) -> Self {
        self.watch.verifier = Some(Box::new(verifier));
        self
    }

    /// Keeps rows that leave the screen, at most `limit` bytes of them.
    #[must_use]
    pub fn keeping(mut self, limit: usize) -> Self {
        self.keep(limit);
        self
    }

    /// Keeps at most `limit` bytes of rows that left the screen from now on.
    pub fn keep(&mut self, limit: usize) {
        self.watch.history.limit(limit);
    }

    /// The latest rows that left the screen, at most `limit` bytes of them, with their styling.
    #[must_use]
    pub fn history(&self, limit: usize) -> String {
        self.watch.history.text(limit)
    }

    /// How many bytes of rows that left the screen are kept.
    #[must_use]
    pub fn history_size(&self) -> usize {
        self.watch.history.size()
    }

    /// Takes the bytes of one read, and answers with the frames that became visible.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Sighting> {
        for piece in bytes.chunks(PIECE) {
            for update in self.decoder.updates(piece) {
                self.watch.expect(update.bytes, update.whole);
                self.terminal.feed_with(update.text.as_str(), &mut self.watch);
            }
        }
        self.watch.take()
    }

    /// Looks at the screen as the stream left it, even in the middle of an update.
    pub fn finish(&mut self) -> Vec<Sighting> {
        self.watch.settle(&self.terminal);
        self.watch.take()
    }

    /// Changes the size, as the window of the program did.
    ///
    /// # Errors
    /// When no screen has that size.
    pub fn resize(&mut self, columns: u16, rows: u16) -> Result<(), BadSize> {
        let (columns, rows) = checked(columns, rows)?;
        self.terminal.resize_with(columns, rows, &mut self.watch);
        Ok(())
    }

    /// Begins another turn of work: frames of earlier turns count again once they are emitted
    /// anew, except those that are still to be seen.
    pub fn next_turn(&mut self) {
        self.watch.forget(&self.terminal);
    }

    /// The frames that are to be seen now, each as often as it is.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame> {
        self.watch.visible(&self.terminal)
    }

    /// Columns and rows.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        let (columns, rows) = self.terminal.size();
        let small = |size| u16::try_from(size).unwrap_or(u16::MAX);
        (small(columns), small(rows))
    }

    /// How many bytes its two buffers take.
    #[must_use]
    pub fn memory(&self) -> usize {
        let (columns, rows) = self.terminal.size();
        2 * columns * rows * size_of::<avt::Cell>()
    }

    /// Where the cursor is.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        let cursor = self.terminal.cursor();
        let (columns, rows) = self.size();
        // A cursor that waits to wrap stands beyond the last column; it is shown in it.
        let within = |at: usize, size: u16| u16::try_from(at).unwrap_or(size).min(size - 1);
        Cursor {
            column: within(cursor.col, columns),
            row: within(cursor.row, rows),
            visible: cursor.visible,
        }
    }

    /// How many bytes at the end of the stream are the beginning of a character, and not shown yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.decoder.pending()
    }

    /// The screen's rows as text, wrapped rows joined, without empty rows at the end.
    #[must_use]
    pub fn text(&self) -> Vec<String> {
        let mut text = self.terminal.screen().text();
        while text.last().is_some_and(String::is_empty) {
            text.pop();
        }
        text
    }

    /// A part of what is shown, row by row with its styling: text and colours, nothing that steers.
    #[must_use]
    pub fn part(&self, columns: Range<u16>, rows: Range<u16>) -> Vec<String> {
        let screen = self.terminal.screen();
        let lines = rows.map(|row| screen.line(row.into()));
        let columns = columns.start.into()..columns.end.into();
        lines
            .map(|line| line.map_or_else(String::new, |line| history::cut(line, &columns)))
            .collect()
    }

    /// What must be written to an empty terminal of this size so that it shows the same.
    #[must_use]
    pub fn dump(&self) -> String {
        self.terminal.dump()
    }
}

#[cfg(test)]
mod tests;
