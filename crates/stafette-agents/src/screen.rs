//! A session's screen: what a person would see, and the frames visible on it.
//!
//! Full-screen programs do not write a frame from left to right. They move the cursor, skip letters
//! that are already there, wrap lines on their own, and draw the same line many times. So the bytes
//! go through a terminal emulator, and frames are searched for on its screen.
//!
//! - The screen is searched when the program pauses, after each synchronized update, and before the
//!   cursor leaves a row that has changed. It is not searched in the middle of an escape sequence or
//!   of a synchronized update, where half of a row may be old.
//! - Rows that the program wrapped itself are put together only when it has drawn all of them.
//! - Rows that scroll off are searched once more as they leave.
//! - A frame counts once, by its content: a redraw is not a second frame. [`Screen::next_turn`]
//!   lets the same frame count again, when it is no longer on the screen.
//! - Everything on a screen can be forged by any text that is shown there, so frames are
//!   [`Tier::Bare`] here: who has the session's secret may find them signed.

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

/// The maximum number of columns of a screen.
pub const COLUMNS_LIMIT: u16 = 1000;

/// The maximum number of rows of a screen.
pub const ROWS_LIMIT: u16 = 2000;

/// The number of bytes that are fed in one step, so that few rows scroll off meanwhile.
const PIECE: usize = 4096;

/// The trust in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Any program may have written it: it only proposes.
    Bare,
    /// The session's own shim signed it.
    Signed,
}

/// A frame that became visible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    pub frame: Frame,
    /// The number of bytes of the stream before it was first seen.
    pub offset: u64,
    /// The trust in the frame.
    pub tier: Tier,
}

/// The position of a screen's cursor, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Cursor {
    /// The distance from the left edge, in columns.
    pub column: u16,
    /// The distance from the top edge, in rows.
    pub row: u16,
    pub visible: bool,
}

/// The size is not possible for a screen.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{columns}x{rows} is not a screen: use 1x1 to {COLUMNS_LIMIT}x{ROWS_LIMIT}")]
pub struct BadSize {
    pub columns: u16,
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
    /// Creates an empty screen on which frames with `word` are searched for.
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
    pub fn history(&self, limit: usize) -> String {
        self.watch.history.text(limit)
    }

    /// The number of bytes of rows that left the screen and are kept.
    #[cfg(test)]
    pub(crate) fn history_size(&self) -> usize {
        self.watch.history.size()
    }

    /// Takes bytes after which the program pauses, and returns the frames that became visible.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Sighting> {
        let mut sightings = self.stream(bytes);
        self.watch.pause(&self.terminal);
        sightings.extend(self.watch.take());
        sightings
    }

    /// Takes bytes in the middle of a drawing, and returns the frames that became visible for
    /// certain: rows that the program wrapped are put together when it pauses.
    pub fn stream(&mut self, bytes: &[u8]) -> Vec<Sighting> {
        for piece in bytes.chunks(PIECE) {
            for update in self.decoder.updates(piece) {
                self.watch.expect(update.bytes, update.whole);
                self.terminal.feed_with(update.text.as_str(), &mut self.watch);
            }
        }
        self.watch.take()
    }

    /// Searches the screen at the end of the stream, even in the middle of an update.
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

    /// Begins another turn of work: frames of earlier turns count again once they are emitted anew,
    /// except those that are still visible.
    pub fn next_turn(&mut self) {
        self.watch.forget(&self.terminal);
    }

    /// The frames that are visible now, with repetitions.
    pub fn frames(&self) -> Vec<Frame> {
        self.watch.visible(&self.terminal)
    }

    /// The width in columns and the height in rows.
    pub fn size(&self) -> (u16, u16) {
        let (columns, rows) = self.terminal.size();
        let small = |size| u16::try_from(size).unwrap_or(u16::MAX);
        (small(columns), small(rows))
    }

    /// The number of bytes that its two buffers take.
    pub fn memory(&self) -> usize {
        let (columns, rows) = self.terminal.size();
        2 * columns * rows * size_of::<avt::Cell>()
    }

    /// The position of the cursor.
    pub fn cursor(&self) -> Cursor {
        let cursor = self.terminal.cursor();
        let (columns, rows) = self.size();
        // A cursor that waits to wrap stands beyond the last column; it is shown in that column.
        let within = |at: usize, size: u16| u16::try_from(at).unwrap_or(size).min(size - 1);
        Cursor {
            column: within(cursor.col, columns),
            row: within(cursor.row, rows),
            visible: cursor.visible,
        }
    }

    /// The number of bytes at the end of the stream that are the beginning of a character, and not
    /// shown yet.
    pub fn pending(&self) -> usize {
        self.decoder.pending()
    }

    /// The screen's rows as text, wrapped rows joined, without empty rows at the end.
    pub fn text(&self) -> Vec<String> {
        let mut text = self.terminal.screen().text();
        while text.last().is_some_and(String::is_empty) {
            text.pop();
        }
        text
    }

    /// The row of the cursor, without blanks at its end.
    pub fn line(&self) -> String {
        let line = self.terminal.screen().line(self.terminal.cursor().row);
        line.map_or_else(String::new, |line| line.text().trim_end().to_owned())
    }

    /// A part of the screen, row by row with its styling: text and colours, no other control
    /// sequences.
    pub fn part(&self, columns: Range<u16>, rows: Range<u16>) -> Vec<String> {
        let screen = self.terminal.screen();
        let lines = rows.map(|row| screen.line(row.into()));
        let columns = columns.start.into()..columns.end.into();
        lines
            .map(|line| line.map_or_else(String::new, |line| history::cut(line, &columns)))
            .collect()
    }

    /// The text that makes an empty terminal of this size show the same.
    pub fn dump(&self) -> String {
        self.terminal.dump()
    }
}

#[cfg(test)]
mod tests;
