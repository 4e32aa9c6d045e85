//! The rows of a window, of which only those that change are written.

use std::fmt::Write as _;

/// The rows as they were written last; none when nothing of the window can be relied on.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<String>);

impl Rows {
    /// The text that makes these rows visible, each of which is text and colours alone. The cursor is
    /// hidden, and [`SHOWN`] has to follow.
    pub(crate) fn write(&mut self, rows: Vec<String>) -> String {
        // Hidden while it moves.
        let mut text = "\x1b[?2026h\x1b[?25l".to_owned();
        if self.0.is_empty() {
            text.push_str("\x1b[2J");
        }
        for (place, row) in rows.iter().enumerate() {
            if self.0.get(place) != Some(row) {
                // Writing to a string does not fail.
                let _ = write!(text, "\x1b[{};1H\x1b[2K{row}", place + 1);
            }
        }
        self.0 = rows;
        text
    }
}

/// What ends a picture: only now the terminal shows it, as a whole.
pub(crate) const SHOWN: &str = "\x1b[?2026l";
