//! Rows of a screen, and the frames that they show.
//!
//! A terminal marks the rows that it wraps. A program that wraps lines itself leaves no mark, so its
//! rows are judged as a whole: a frame goes on in the next row if the rows fit one width. The same
//! width tells whether a row was cut in the middle of a word or ended between two.

use std::collections::HashSet;
use std::ops::Range;

use avt::Line;
use stafette_core::wire::frame::{Found, Frame, Scanner, Word};

/// The number of columns that a program may leave free at the right when it wraps lines itself.
const MARGIN: usize = 2;

/// The number of openings that may turn out to be none in rows that are searched together.
const TRIES: usize = 64;

/// One row as it is shown.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// All of its letters, blanks included.
    line: String,
    /// Its letters without the border of a box, and without blanks around them.
    text: Range<usize>,
    columns: Range<usize>,
    /// The number of columns that its first and its last word take.
    first_word: usize,
    last_word: usize,
    /// The columns between which a program may have put the text.
    room: Range<usize>,
    /// The number of columns up to the last one that is not blank.
    used: usize,
    /// True if the terminal wrapped it onto the next row.
    wrapped: bool,
    /// True if its first letter takes two columns.
    begins_wide: bool,
}

/// A frame, and the rows that show it.
pub(super) struct Shown {
    pub(super) frame: Frame,
    pub(super) rows: Range<usize>,
}

impl From<&Line> for Row {
    fn from(line: &Line) -> Self {
        let cells = line.cells();
        let used = |at: &usize| cells[*at].char() != ' ' || cells[*at].width() == 0;
        let first = (0..cells.len()).find(used).unwrap_or(0);
        let end = (0..cells.len()).rev().find(used).map_or(0, |at| at + 1);
        let (mut room, mut columns) = (0..cells.len(), first..end);
        if first < end && is_border(cells[first].char()) {
            room.start = first + 1;
            if first + 1 < end && is_border(cells[end - 1].char()) {
                room.end = end - 1;
            }
            let begin = room.clone().find(used).unwrap_or(room.start);
            let last = room.clone().rev().find(used).map_or(begin, |at| at + 1);
            columns = begin..last.min(end);
        }
        let bytes = |columns: &[avt::Cell]| -> usize {
            columns.iter().filter(|cell| cell.width() > 0).map(|cell| cell.char().len_utf8()).sum()
        };
        let text = bytes(&cells[..columns.start])..bytes(&cells[..columns.end]);
        Row {
            line: line.text(),
            text,
            first_word: columns.clone().take_while(used).count(),
            last_word: columns.clone().rev().take_while(used).count(),
            begins_wide: cells.get(columns.start).is_some_and(|cell| cell.width() == 2),
            columns,
            room,
            used: end,
            wrapped: line.is_wrapped(),
        }
    }
}

fn is_border(letter: char) -> bool {
    matches!(letter, '│' | '┃' | '║' | '▌' | '▐')
}

impl Row {
    /// The length of its text, in bytes.
    pub(super) fn size(&self) -> usize {
        self.line.len()
    }

    /// The number of columns up to the last one that is not blank.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// True if a frame may begin in it, perhaps with the first letters of its opening.
    pub(super) fn may_open(&self, word: &Word) -> bool {
        let opening = format!("<<{word}:");
        let text = self.text();
        let begins = |size: usize| text.ends_with(&opening[..size]);
        self.line.contains('<') && (text.contains(&opening) || (1..opening.len()).any(begins))
    }

    /// True if the terminal wrapped it onto the next row.
    pub(super) fn is_wrapped(&self) -> bool {
        self.wrapped
    }

    /// True if a frame may go on in `next`.
    pub(super) fn may_continue(&self, next: &Row) -> bool {
        let text = |row: &Row| !row.text.is_empty() && !row.is_rule();
        self.wrapped || text(self) && text(next) && self.room.end == next.room.end
    }

    /// True for a line that separates.
    fn is_rule(&self) -> bool {
        self.text().chars().all(|letter| ('\u{2500}'..='\u{259f}').contains(&letter))
    }

    fn text(&self) -> &str {
        &self.line[self.text.clone()]
    }

    /// The part that follows `upper`, and precedes `lower`.
    fn between(&self, upper: Option<&Row>, lower: Option<&Row>) -> &str {
        let begin = if upper.is_some_and(|upper| upper.wrapped) { 0 } else { self.text.start };
        let gap = lower.is_some_and(|lower| lower.begins_wide) && self.line.ends_with(' ');
        let end = match self.wrapped {
            // A wide letter did not fit into the last column.
            true if gap => self.line.len() - 1,
            true => self.line.len(),
            false => self.text.end,
        };
        &self.line[begin.min(end)..end]
    }
}

/// The frames in rows of which each may continue in the next one.
pub(super) fn frames_in(word: &Word, rows: &[Row]) -> Vec<Shown> {
    let part = |at: usize| {
        let upper = at.checked_sub(1).map(|upper| &rows[upper]);
        rows[at].between(upper, rows.get(at + 1))
    };
    let mut shown = Vec::new();
    if !rows.iter().any(|row| row.may_open(word)) {
        return shown;
    }
    let mut from = (0, 0);
    'again: for _ in 0..TRIES {
        let mut starts = Vec::new();
        let mut text = String::new();
        for at in from.0..rows.len() {
            starts.push(text.len());
            text += &part(at)[if at == from.0 { from.1 } else { 0 }..];
        }
        for (offset, frame) in scan(word, &text) {
            let first = starts.partition_point(|start| *start <= offset) - 1;
            let top = from.0 + first;
            let within = offset - starts[first] + if first == 0 { from.1 } else { 0 };
            let bottom = top + rows_until_found(word, &text, offset, &starts[first + 1..]);
            let frame = match Wrapping::of(&rows[top..=bottom], &frame) {
                None => Some(frame),
                Some(wrapping) if wrapping.is_plausible() => {
                    let mut whole = part(top)[within..].to_owned();
                    for lower in top + 1..=bottom {
                        whole.push_str(wrapping.joint(&rows[lower - 1], &rows[lower]));
                        whole.push_str(part(lower));
                    }
                    scan(word, &whole).into_iter().next().map(|(_, frame)| frame)
                }
                Some(_) => None,
            };
            match frame {
                Some(frame) => shown.push(Shown { frame, rows: top..bottom + 1 }),
                // Another one may hide behind an opening that is none.
                None => {
                    from = (top, within + 1);
                    continue 'again;
                }
            }
        }
        break;
    }
    shown
}

/// The number of rows that a frame which begins at `offset` takes besides the first one, when further
/// rows begin at `starts`.
fn rows_until_found(word: &Word, text: &str, offset: usize, starts: &[usize]) -> usize {
    let mut scanner = Scanner::drawn(word.clone());
    let mut from = offset;
    let ends = starts.iter().copied().chain([text.len()]);
    ends.take_while(|end| {
        let mut found = false;
        scanner.scan(&text.as_bytes()[from..*end], |it| found |= matches!(it, Found::Frame { .. }));
        from = *end;
        !found
    })
    .count()
    .min(starts.len())
}

/// The complete frames in a text, with their offsets. Incomplete ones are not reported: every frame
/// is one while it is drawn.
fn scan(word: &Word, text: &str) -> Vec<(usize, Frame)> {
    let mut frames = Vec::new();
    if !text.contains("<<") {
        return frames;
    }
    let mut keep = |found| {
        if let Found::Frame { frame, offset } = found {
            frames.push((usize::try_from(offset).unwrap_or(usize::MAX), frame));
        }
    };
    let mut scanner = Scanner::drawn(word.clone());
    scanner.scan(text.as_bytes(), &mut keep);
    scanner.finish(&mut keep);
    frames
}

/// The way a program wrapped a frame, read off the rows.
struct Wrapping<'a> {
    /// The rows above and below each break that the program made.
    breaks: Vec<(&'a Row, &'a Row)>,
    /// The column at which rows end, and the one at which all but the first begin.
    end: usize,
    left: usize,
    /// True if the payload is a document, so that its end is certain.
    document: bool,
}

impl<'a> Wrapping<'a> {
    /// `None` if the terminal wrapped all of the rows.
    fn of(rows: &'a [Row], frame: &Frame) -> Option<Self> {
        let breaks = rows.windows(2).map(|pair| (&pair[0], &pair[1]));
        let breaks: Vec<_> = breaks.filter(|(upper, _)| !upper.wrapped).collect();
        let left = breaks.iter().map(|(_, lower)| lower.columns.start).min()?;
        let first = rows.first()?.columns.start;
        let left = if first + 1 == left { first } else { left };
        let end = rows.iter().map(|row| row.columns.end).max()?;
        let document = frame.body.as_ref().is_some_and(|body| body.starts_with(['{', '[']));
        Some(Wrapping { breaks, end, left, document })
    }

    /// True if the rows look like one text. A row is full, or the next word did not fit into it:
    /// into the whole screen or box, or into the longest of the rows if there are enough of them.
    fn is_plausible(&self) -> bool {
        let full = |end: usize, (upper, lower): &(&Row, &Row)| {
            upper.columns.end >= end || upper.columns.end + 1 + lower.first_word > end
        };
        let all = |full: &dyn Fn(&(&Row, &Row)) -> bool| self.breaks.iter().all(full);
        let certain = self.document || self.breaks.len() > 1;
        all(&|pair| full(pair.0.room.end.saturating_sub(MARGIN), pair))
            || certain && all(&|pair| full(self.end, pair))
    }

    /// The text between two rows: a blank, unless a word was cut.
    fn joint(&self, upper: &Row, lower: &Row) -> &'static str {
        let end = upper.columns.end;
        let hyphen = upper.text().ends_with('-') && end < self.end;
        let blank = if upper.wrapped || hyphen {
            false
        } else if lower.columns.start == self.left + 1 {
            true
        } else if end + 1 == self.end && lower.begins_wide {
            false
        } else {
            end < self.end || !self.cuts(upper, lower)
        };
        if blank { " " } else { "" }
    }

    /// True if the program cut a word at the end of a full row: one that is too long for any row, or
    /// any word if all rows are full and that is no coincidence.
    fn cuts(&self, upper: &Row, lower: &Row) -> bool {
        let room = &upper.room;
        // A wide letter leaves a column free that it does not fit into.
        let margin = room.end.saturating_sub(self.end + usize::from(lower.begins_wide));
        let word = upper.last_word + lower.first_word;
        if word > self.end.saturating_sub(self.left) {
            return self.breaks.len() > 1 || margin <= MARGIN;
        }
        let full = |(upper, _): &(&Row, &Row)| upper.columns.end + 1 >= self.end;
        let to_the_edge = margin == 0 || margin == self.left.saturating_sub(room.start);
        let cut_everywhere = self.breaks.iter().all(full) && (to_the_edge || self.breaks.len() > 2);
        cut_everywhere && !self.breaks_between_words()
    }

    /// True if the words around each full row's end also stand elsewhere in the frame, so that they
    /// are words and not parts of one.
    fn breaks_between_words(&self) -> bool {
        let whole = |row: &'a Row| {
            let mut words = row.text().split(' ');
            words.next().and_then(|_| words.next_back()).map(|_| words)
        };
        let rows = self.breaks.iter().flat_map(|(upper, lower)| [*upper, *lower]);
        let known: HashSet<&str> = rows.filter_map(whole).flatten().collect();
        let mut full = self.breaks.iter().filter(|(upper, _)| upper.columns.end == self.end);
        full.all(|(upper, lower)| {
            let last = upper.text().rsplit(' ').next().unwrap_or_default();
            let first = lower.text().split(' ').next().unwrap_or_default();
            known.contains(last) && known.contains(first)
        })
    }
}
