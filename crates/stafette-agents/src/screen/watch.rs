//! Watches the emulator, and searches for frames when the screen has changed.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use avt::parser::{EdScope, Function};
use avt::{Line, Observation, Observer, Operation, ScreenKind, Terminal};
use stafette_core::wire::frame::{FRAME_LIMIT, Frame, Word};

use super::decoder::Whole;
use super::history::History;
use super::rows::{Row, Shown, frames_in};
use super::{Sighting, Tier};

/// The number of frames that are remembered, so that a redraw is not a second frame.
const SEEN_LIMIT: usize = 16 * 1024;

/// The rows that are searched together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Only rows that the terminal wrapped: the rows around may still be old ones.
    Narrow,
    /// Also rows that the program wrapped.
    Wide,
}

pub(super) struct Watch {
    pub(super) history: History,
    word: Word,
    whole: Whole,
    offset: u64,
    /// Rows that changed since the last wide search, and since the last search of any kind.
    changed: Vec<bool>,
    fresh: Vec<bool>,
    /// True if letters were drawn since the cursor came to its row.
    drawing: bool,
    /// True if there may be a `<` on the screen. Without one there is no frame, and searching is
    /// costly.
    opening: bool,
    /// Rows that scrolled off since the last search, and those that continue in the first row. The
    /// first `looked` of them were searched before.
    departed: VecDeque<Row>,
    looked: usize,
    seen: Seen,
    sightings: Vec<Sighting>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("word", &self.word).finish_non_exhaustive()
    }
}

impl Watch {
    pub(super) fn new(word: Word, rows: usize) -> Self {
        Watch {
            history: History::default(),
            word,
            whole: Whole::Throughout,
            offset: 0,
            changed: vec![false; rows],
            fresh: vec![false; rows],
            drawing: false,
            opening: false,
            departed: VecDeque::new(),
            looked: 0,
            seen: Seen::default(),
            sightings: Vec::new(),
        }
    }

    /// Prepares for the next piece of the stream.
    pub(super) fn expect(&mut self, bytes: usize, whole: Whole) {
        self.offset += bytes as u64;
        self.whole = whole;
    }

    /// The frames that were seen since the last call.
    pub(super) fn take(&mut self) -> Vec<Sighting> {
        std::mem::take(&mut self.sightings)
    }

    /// The frames on the screen, with repetitions.
    pub(super) fn visible(&self, terminal: &Terminal) -> Vec<Frame> {
        if !self.opening {
            return Vec::new();
        }
        let rows: Vec<Row> = terminal.screen().visible_lines().map(Row::from).collect();
        let groups = rows.chunk_by(Row::may_continue);
        groups.flat_map(|rows| frames_in(&self.word, rows)).map(|shown| shown.frame).collect()
    }

    /// Searches the screen as far as it is not being drawn.
    pub(super) fn pause(&mut self, terminal: &Terminal) {
        if self.whole != Whole::No {
            self.look(terminal, Look::Wide);
        }
    }

    /// Searches the whole screen, whatever state it is in.
    pub(super) fn settle(&mut self, terminal: &Terminal) {
        self.drawing = false;
        self.look(terminal, Look::Wide);
    }

    /// Forgets every frame that is not on the screen.
    pub(super) fn forget(&mut self, terminal: &Terminal) {
        self.seen = Seen::default();
        self.changed.fill(true);
        self.look(terminal, Look::Wide);
        self.sightings.clear();
    }

    /// The number of rows that scrolled off and are kept.
    #[cfg(test)]
    pub(super) fn departed(&self) -> usize {
        self.departed.len()
    }

    fn look(&mut self, terminal: &Terminal, look: Look) {
        if self.opening {
            if look == Look::Wide || self.fresh.contains(&true) {
                self.look_closely(terminal, look);
            }
            self.opening = look == Look::Narrow || self.may_open(terminal);
        } else {
            self.fresh.fill(false);
            if look == Look::Wide {
                self.changed.fill(false);
                self.departed.clear();
                self.looked = 0;
            }
        }
    }

    /// True if a frame may begin on the screen. The primary screen is hidden behind the alternate
    /// one, but not the other way round: that one is empty when it comes back.
    fn may_open(&self, terminal: &Terminal) -> bool {
        let opens = |line: &Line| line.cells().iter().any(|cell| cell.char() == '<');
        terminal.active_screen_kind() == ScreenKind::Alternate
            || !self.departed.is_empty()
            || terminal.screen().visible_lines().any(opens)
    }

    fn look_closely(&mut self, terminal: &Terminal, look: Look) {
        let screen = terminal.screen();
        let wide = look == Look::Wide;
        let primary = terminal.active_screen_kind() == ScreenKind::Primary;
        let changed = if wide { &self.changed } else { &self.fresh };
        // Rows that scrolled off the primary screen do not continue in the alternate one.
        let departed = self.departed.iter().filter(|_| wide);
        let mut rows: Vec<(Row, bool)> = departed.cloned().map(|row| (row, true)).collect();
        rows.iter_mut().take(self.looked).for_each(|(_, new)| *new = false);
        let above = rows.len();
        let apart = if primary { 0 } else { above };
        let span = if wide { 0..terminal.size().1 } else { self.fresh_rows(terminal) };
        let lines = screen.visible_lines().zip(changed.iter().copied());
        let lines = lines.skip(span.start).take(span.len());
        rows.extend(lines.map(|(line, new)| (Row::from(line), new)));
        let (rows, new): (Vec<Row>, Vec<bool>) = rows.into_iter().unzip();
        let joined = |upper: usize| match wide {
            true => upper + 1 != apart && rows[upper].may_continue(&rows[upper + 1]),
            false => rows[upper].is_wrapped(),
        };
        let busy = self.busy_row(terminal).map(|row| (row + above).wrapping_sub(span.start));
        let mut waiting = Vec::new();
        let mut frames = Vec::new();
        let mut done = 0;
        let mut top = 0;
        while top < rows.len() {
            let bottom = (top..rows.len() - 1).find(|at| !joined(*at)).unwrap_or(rows.len() - 1);
            let group = top..bottom + 1;
            top = bottom + 1;
            if !new[group.clone()].contains(&true) {
                continue;
            }
            let begins = group.start;
            for Shown { frame, rows } in frames_in(&self.word, &rows[group.clone()]) {
                let rows = begins + rows.start..begins + rows.end;
                done = rows.end - 1;
                if new[rows.clone()].contains(&true) && !busy.is_some_and(|at| rows.contains(&at)) {
                    frames.push(frame);
                }
            }
            if busy.is_some_and(|busy| group.contains(&busy)) {
                waiting.extend(group.filter(|at| new[*at]));
            }
        }
        let joins = (1..=above).rev().take_while(|below| wide && primary && joined(below - 1));
        let mut tail = done.max(above - joins.count())..above;
        let open = tail.find(|at| rows[*at].may_open(&self.word)).map_or(0, |at| above - at);
        for frame in frames {
            self.report(frame);
        }
        self.fresh.fill(false);
        if wide {
            self.changed.fill(false);
            self.keep_departed(open);
        }
        for row in waiting.into_iter().filter_map(|row| row.checked_sub(above)) {
            self.changed[span.start + row] = true;
            self.fresh[span.start + row] = true;
        }
    }

    /// The rows from the first to the last that changed since the last search, and those that the
    /// terminal wrapped around them.
    fn fresh_rows(&self, terminal: &Terminal) -> Range<usize> {
        let wrapped = |row: usize| terminal.screen().line(row).is_some_and(Line::is_wrapped);
        let mut first = self.fresh.iter().position(|fresh| *fresh).unwrap_or(0);
        let mut last = self.fresh.iter().rposition(|fresh| *fresh).unwrap_or(0);
        while first > 0 && wrapped(first - 1) {
            first -= 1;
        }
        while wrapped(last) && last + 1 < self.fresh.len() {
            last += 1;
        }
        first..last + 1
    }

    /// The row that is being redrawn: left of the cursor it is new, right of it old.
    fn busy_row(&self, terminal: &Terminal) -> Option<usize> {
        let cursor = terminal.cursor();
        let row = Row::from(terminal.screen().line(cursor.row)?);
        (self.drawing && row.used() > cursor.col).then_some(cursor.row)
    }

    /// True if enough rows have scrolled off for another search.
    fn departed_lately(&self) -> bool {
        self.departed.len() - self.looked > self.changed.len().max(self.looked / 4)
    }

    /// Keeps the last `rows` rows that scrolled off, if they are not too long for a frame.
    fn keep_departed(&mut self, rows: usize) {
        self.departed.drain(..self.departed.len() - rows);
        let mut size: usize = self.departed.iter().map(Row::size).sum();
        while size > FRAME_LIMIT
            && let Some(row) = self.departed.pop_front()
        {
            size -= row.size();
        }
        self.looked = self.departed.len();
    }

    fn report(&mut self, frame: Frame) {
        if !self.seen.insert(&frame) {
            return;
        }
        self.sightings.push(Sighting { frame, offset: self.offset, tier: Tier::Bare });
    }
}

/// The search to make before `function`, which may destroy what was drawn before, with the cursor
/// in `row`.
fn look_before(function: &Function, row: usize) -> Option<Look> {
    use Function::{
        Cnl, Cpl, Cud, Cup, Cuu, Dch, Decaln, Decrc, Decrst, Decset, Decstr, Dl, Ech, Ed, El, Ich,
        Il, Ri, Ris, Scorc, Sd, Su, Vpa, Vpr,
    };
    match function {
        // The screen is left, cleared, or drawn anew from its top: the last drawing is complete.
        Decset(_) | Decrst(_) | Ris | Decaln | Ed(EdScope::All) | Cup(0 | 1, 0 | 1) => {
            Some(Look::Wide)
        }
        Cup(to, _) | Vpa(to) if usize::from(*to) == row + 1 => None,
        // A row is left or changed: that row is complete.
        Cup(..) | Cuu(_) | Cud(_) | Cnl(_) | Cpl(_) | Vpa(_) | Vpr(_) | Decrc | Scorc | Decstr
        | Ri | Su(_) | Sd(_) | Il(_) | Dl(_) | Ich(_) | Dch(_) | Ech(_) | El(_) | Ed(_) => {
            Some(Look::Narrow)
        }
        _ => None,
    }
}

impl Observer for Watch {
    type Output = ();

    fn before(&mut self, context: &mut Observation<'_>, operation: &Operation) {
        let Operation::Function(function) = operation else {
            return;
        };
        let leaves = look_before(function, context.terminal().cursor().row);
        match function {
            Function::Print(letter) => {
                self.drawing = true;
                self.opening |= *letter == '<';
            }
            Function::Rep(_) => self.drawing = true,
            Function::Cr | Function::Lf | Function::Nel => self.drawing = false,
            // These stay in the row, and may be about to remove old text there.
            Function::El(_) | Function::Ed(_) | Function::Ech(_) => {}
            Function::Ich(_) | Function::Dch(_) => {}
            _ if leaves.is_some() => self.drawing = false,
            _ => {}
        }
        if self.whole == Whole::Throughout
            && let Some(look) = leaves
            && match look {
                Look::Narrow => self.fresh.contains(&true),
                Look::Wide => self.changed.contains(&true),
            }
        {
            self.look(context.terminal(), look);
        }
    }

    fn resized(&mut self, _: usize, rows: usize) {
        self.changed.resize(rows, true);
        self.fresh.resize(rows, true);
    }

    fn dirty(&mut self, rows: Range<usize>) {
        for rows in [self.changed.get_mut(rows.clone()), self.fresh.get_mut(rows.clone())] {
            rows.unwrap_or_default().fill(true);
        }
    }

    fn evicted(&mut self, _: &mut Observation<'_>, line: &Line) {
        self.history.push(line);
        if self.opening {
            self.departed.push_back(Row::from(line));
        }
    }

    fn end(&mut self, context: &mut Observation<'_>) {
        // Unless the program says that it has drawn everything, rows may be old or missing: those
        // that it wrapped itself are put together when it pauses.
        let look = match self.whole {
            Whole::AtEnd => Look::Wide,
            Whole::Throughout if self.departed_lately() => Look::Wide,
            Whole::Throughout => Look::Narrow,
            Whole::No => return,
        };
        self.look(context.terminal(), look);
    }
}

/// The latest frames that were seen.
#[derive(Default)]
struct Seen {
    hashes: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Seen {
    /// Adds a frame. Returns true if it was not seen before.
    fn insert(&mut self, frame: &Frame) -> bool {
        let mut hasher = DefaultHasher::new();
        frame.hash(&mut hasher);
        let hash = hasher.finish();
        if !self.hashes.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > SEEN_LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        true
    }
}
