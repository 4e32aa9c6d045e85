//! Lines of styled text.

use std::fmt::Write as _;

use stafette_core::clean::in_cell;
use unicode_width::UnicodeWidthChar;

/// How a text looks: the numbers that a terminal has for it.
pub(crate) type Style = &'static str;

/// A line, made of texts that may look different.
#[derive(Clone, Default, Debug)]
pub(crate) struct Line {
    spans: Vec<(Style, String)>,
    reversed: bool,
}

impl Line {
    /// A line that looks as usual.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Line::default().then("", text)
    }

    /// A line of one style.
    pub(crate) fn styled(style: Style, text: impl Into<String>) -> Self {
        Line::default().then(style, text)
    }

    /// Adds a text at its end.
    pub(crate) fn then(mut self, style: Style, text: impl Into<String>) -> Self {
        self.spans.push((style, text.into()));
        self
    }

    /// Changes the colours of text and ground, if that is wanted.
    pub(crate) fn reversed(self, reversed: bool) -> Self {
        Line { reversed, ..self }
    }

    /// What is written to a terminal with this many columns: without anything that would steer it.
    pub(crate) fn row(&self, columns: u16) -> String {
        let mut row = String::new();
        let mut room = usize::from(columns);
        for (style, text) in &self.spans {
            let reversed = if self.reversed { ";7" } else { "" };
            let style = if style.is_empty() { String::new() } else { format!(";{style}") };
            // Writing to a string does not fail.
            let _ = write!(row, "\x1b[0{reversed}{style}m");
            for letter in text.chars().map(in_cell) {
                let wide = letter.width().unwrap_or(0);
                let Some(left) = room.checked_sub(wide) else { break };
                room = left;
                row.push(letter);
            }
        }
        row + "\x1b[0m"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_17_a_line_is_cut_and_steers_no_terminal() {
        let line = Line::plain("ab\x1b[2Jc\u{202e}").then("1;31", "日本").reversed(true);
        assert_eq!(line.row(9), "\x1b[0;7mab [2Jc\u{fffd}\x1b[0;7;1;31m\x1b[0m");
        assert_eq!(line.row(11), "\x1b[0;7mab [2Jc\u{fffd}\x1b[0;7;1;31m日\x1b[0m");
        assert_eq!(Line::styled("2", "x").row(1), "\x1b[0;2mx\x1b[0m");
        assert_eq!(Line::default().row(5), "\x1b[0m");
    }
}
