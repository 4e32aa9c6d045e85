//! Rows that have left the screen, kept as long as there is room for them.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::Range;

use avt::{Color, Line, Pen};
use stafette_core::clean::in_cell;

/// The memory for a row besides its text, in bytes.
const ROW_COST: usize = size_of::<Past>() + 16;

/// A row that has left the screen.
#[derive(Debug)]
struct Past {
    /// The text of the row with its styling.
    text: Box<str>,
    /// True if it continues in the next row.
    wrapped: bool,
}

/// Rows that have left the screen; the oldest are dropped when there are too many.
#[derive(Debug, Default)]
pub(super) struct History {
    rows: VecDeque<Past>,
    size: usize,
    limit: usize,
}

impl History {
    /// Keeps at most `limit` bytes from now on.
    pub(super) fn limit(&mut self, limit: usize) {
        self.limit = limit;
        self.shed();
    }

    /// The number of bytes that are kept.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Adds a row that leaves the screen.
    pub(super) fn push(&mut self, line: &Line) {
        if self.limit == 0 {
            return;
        }
        let row = Past { text: styled(line).into(), wrapped: line.is_wrapped() };
        self.size += row.text.len() + ROW_COST;
        self.rows.push_back(row);
        self.shed();
    }

    fn shed(&mut self) {
        while self.size > self.limit
            && let Some(row) = self.rows.pop_front()
        {
            self.size -= row.text.len() + ROW_COST;
        }
        if self.rows.is_empty() {
            self.rows.shrink_to_fit();
        }
    }

    /// The latest rows, at most `limit` bytes of them, each line ended.
    pub(super) fn text(&self, limit: usize) -> String {
        let mut size = 0;
        let fits = |row: &&Past| {
            size += row.text.len() + 2;
            size <= limit
        };
        let count = self.rows.iter().rev().take_while(fits).count();
        let mut text = String::new();
        for row in self.rows.iter().skip(self.rows.len() - count) {
            text.push_str(&row.text);
            if !row.wrapped {
                text.push_str("\r\n");
            }
        }
        text
    }
}

/// A row as text with its styling, which ends with the row.
fn styled(line: &Line) -> String {
    let cells = line.cells();
    let blank = |cell: &avt::Cell| cell.char() == ' ' && cell.pen().is_default();
    let used = match line.is_wrapped() {
        true => cells.len(),
        false => cells.iter().rposition(|cell| !blank(cell)).map_or(0, |at| at + 1),
    };
    let mut text = String::new();
    let mut pen = Pen::default();
    for cell in cells.iter().take(used).filter(|cell| cell.width() > 0) {
        if *cell.pen() != pen {
            pen = *cell.pen();
            sgr(&mut text, &pen);
        }
        text.push(in_cell(cell.char()));
    }
    if !pen.is_default() {
        text.push_str("\x1b[0m");
    }
    text
}

/// Some columns of a row as text with its styling, without blanks at the end. Half of a wide
/// character is a blank.
pub(super) fn cut(line: &Line, columns: &Range<usize>) -> String {
    let cells = line.cells();
    let blank = |cell: &avt::Cell| cell.char() == ' ' && cell.pen().is_default();
    let end = columns.end.min(cells.len());
    let end = cells[..end].iter().rposition(|cell| !blank(cell)).map_or(0, |at| at + 1);
    let mut text = String::new();
    let mut pen = Pen::default();
    let mut at = columns.start;
    while at < end {
        let cell = &cells[at];
        if *cell.pen() != pen {
            pen = *cell.pen();
            sgr(&mut text, &pen);
        }
        match usize::from(cell.width()) {
            // The left half is outside.
            0 => {
                text.push(' ');
                at += 1;
            }
            width if at + width > end => {
                text.push(' ');
                at += 1;
            }
            width => {
                text.push(in_cell(cell.char()));
                at += width;
            }
        }
    }
    if !pen.is_default() {
        text.push_str("\x1b[0m");
    }
    text
}

/// Adds the sequence that switches to a pen.
fn sgr(text: &mut String, pen: &Pen) {
    text.push_str("\x1b[0");
    let attributes = [
        (pen.is_bold(), ";1"),
        (pen.is_faint(), ";2"),
        (pen.is_italic(), ";3"),
        (pen.is_underline(), ";4"),
        (pen.is_blink(), ";5"),
        (pen.is_inverse(), ";7"),
        (pen.is_strikethrough(), ";9"),
    ];
    for (_, code) in attributes.into_iter().filter(|(set, _)| *set) {
        text.push_str(code);
    }
    for (base, color) in [(38, pen.foreground()), (48, pen.background())] {
        // Writing to a string does not fail.
        let _ = match color {
            None => Ok(()),
            Some(Color::Indexed(index)) => write!(text, ";{base};5;{index}"),
            Some(Color::RGB(rgb)) => write!(text, ";{base};2;{};{};{}", rgb.r, rgb.g, rgb.b),
        };
    }
    text.push('m');
}

#[cfg(test)]
mod tests {
    use stafette_core::wire::frame::Word;

    use crate::screen::Screen;

    fn screen(limit: usize) -> Screen {
        Screen::new(Word::default(), 10, 2).unwrap().keeping(limit)
    }

    #[test]
    fn s1_16_what_scrolls_off_is_kept_with_its_styling_and_its_wraps() {
        let mut screen = screen(10_000);
        screen.feed(b"\x1b[1;31mred\x1b[0m and plain\r\nend\r\n\r\n");
        assert_eq!(screen.history(1000), "\x1b[0;1;38;5;1mred\x1b[0m and plain\r\nend\r\n");
        let mut again = Screen::new(Word::default(), 10, 8).unwrap();
        again.feed(screen.history(1000).as_bytes());
        assert_eq!(again.text(), ["red and plain", "end"]);
    }

    #[test]
    fn s1_16_a_part_of_the_screen_is_cut_between_its_cells() {
        let mut screen = Screen::new(Word::default(), 10, 3).unwrap();
        screen.feed("ab\x1b[31mcd\x1b[0m語ef\r\nsecond".as_bytes());
        assert_eq!(screen.part(0..4, 0..1), ["ab\x1b[0;38;5;1mcd\x1b[0m"]);
        assert_eq!(screen.part(2..5, 0..2), ["\x1b[0;38;5;1mcd\x1b[0m ", "con"]);
        assert_eq!(screen.part(5..8, 0..1), [" ef"], "half of a wide character");
        assert_eq!(screen.part(8..20, 2..5), ["", "", ""], "beyond the screen is nothing");
    }

    #[test]
    fn s1_16_history_is_bounded_and_the_oldest_goes_first() {
        let mut screen = screen(10_000);
        let lines: String = (0..10_000).map(|line| format!("{line}\r\n")).collect();
        screen.feed(lines.as_bytes());
        assert!(screen.history_size() <= 10_000);
        assert!(screen.history(1_000_000).ends_with("9998\r\n"));
        assert_eq!(screen.history(12), "9997\r\n9998\r\n");
        screen.keep(100);
        assert!(screen.history_size() <= 100);
    }
}
