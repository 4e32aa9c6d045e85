//! Rows of a screen, and the lines that they form.

use avt::Line;

/// The number of columns that a program may leave free at the right when it wraps lines itself.
const MARGIN: usize = 2;

/// One row as it is shown.
#[derive(Clone, Debug)]
pub(super) struct Row {
    text: String,
    /// The number of columns up to the last one that is not blank.
    used: usize,
    /// True if the terminal wrapped it onto the next row.
    wrapped: bool,
}

/// The way a row continues in the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Join {
    /// The terminal wrapped it.
    Terminal,
    /// The program broke it in the middle of a word, and may have indented the rest.
    Program,
    /// The program broke it between two words.
    ProgramAtSpace,
}

impl From<&Line> for Row {
    fn from(line: &Line) -> Self {
        let blank = |cell: &avt::Cell| cell.char() == ' ';
        let used = line.cells().iter().rposition(|cell| !blank(cell));
        Row { text: line.text(), used: used.map_or(0, |at| at + 1), wrapped: line.is_wrapped() }
    }
}

impl Row {
    /// The length of its text, in bytes.
    pub(super) fn size(&self) -> usize {
        self.text.len()
    }

    /// The number of columns up to the last one that is not blank.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The way this row continues in `next`, on a screen with this many columns. A program that
    /// wraps lines itself leaves no mark: the row is full, or the next row's first word did not
    /// fit.
    pub(super) fn join(&self, next: &Row, columns: usize) -> Option<Join> {
        if self.wrapped {
            return Some(Join::Terminal);
        }
        let word = next.text.split_whitespace().next()?;
        if self.used == 0 {
            return None;
        }
        if self.used + MARGIN >= columns {
            return Some(Join::Program);
        }
        let fits = self.used + 1 + word.chars().count() + MARGIN <= columns;
        let hyphen = self.text.trim_end().ends_with('-');
        match (fits, hyphen) {
            (true, _) => None,
            (false, true) => Some(Join::Program),
            (false, false) => Some(Join::ProgramAtSpace),
        }
    }

    /// Begins a text with this row.
    pub(super) fn begin(&self) -> String {
        self.text.clone()
    }

    /// Adds this row to a text that continues in it.
    pub(super) fn add_to(&self, text: &mut String, join: Join) {
        if join == Join::Terminal {
            text.push_str(&self.text);
            return;
        }
        text.truncate(text.trim_end().len());
        if join == Join::ProgramAtSpace {
            text.push(' ');
        }
        text.push_str(self.text.trim_start());
    }
}
