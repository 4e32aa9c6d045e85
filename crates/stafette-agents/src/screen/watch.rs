//! Watches the emulator, and searches for frames when the screen has changed.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use avt::parser::{EdScope, Function};
use avt::{Line, Observation, Observer, Operation, ScreenKind, Terminal};
use stafette_core::wire::frame::{FRAME_LIMIT, Found, Frame, Scanner, Word};

use super::decoder::Whole;
use super::history::History;
use super::rows::{Join, Row};
use super::{Sighting, Tier};

/// The number of frames that are remembered, so that a redraw is not a second frame.
const SEEN_LIMIT: usize = 16 * 1024;

/// Returns true if a signed frame's signature is valid.
pub(super) type Verifier = Box<dyn Fn(&Frame) -> bool + Send>;

/// The rows that are searched together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Only rows that the terminal wrapped: the rows around may still be old ones.
    Narrow,
    /// Also rows that the program wrapped.
    Wide,
}

pub(super) struct Watch {
    pub(super) verifier: Option<Verifier>,
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
            verifier: None,
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
        let columns = terminal.size().0;
        let mut rows = terminal.screen().visible_lines().map(Row::from).peekable();
        let mut frames = Vec::new();
        while let Some(mut row) = rows.next() {
            let mut text = row.begin();
            while let Some(next) = rows.peek().cloned()
                && let Some(join) = row.join(&next, columns)
            {
                next.add_to(&mut text, join);
                row = next;
                rows.next();
            }
            if text.contains("<<") {
                frames.extend(frames_in(&self.word, &text));
            }
        }
        frames
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
            self.look_closely(terminal, look);
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
        let columns = terminal.size().0;
        let screen = terminal.screen();
        let wide = look == Look::Wide;
        let primary = terminal.active_screen_kind() == ScreenKind::Primary;
        let above = if wide { self.departed.len() } else { 0 };
        let row = |at: usize| match at.checked_sub(above) {
            None => self.departed.get(at).cloned(),
            Some(at) => screen.line(at).map(Row::from),
        };
        let changed = |at: usize| match at.checked_sub(above) {
            None => at >= self.looked,
            Some(at) => if wide { &self.changed } else { &self.fresh }.get(at) == Some(&true),
        };
        // Rows that scrolled off the primary screen do not continue in the alternate one.
        let join = |upper: usize| -> Option<Join> {
            if upper + 1 == above && !primary {
                return None;
            }
            let join = row(upper)?.join(&row(upper + 1)?, columns)?;
            (wide || join == Join::Terminal).then_some(join)
        };
        let busy = self.busy_row(terminal).map(|row| row + above);
        let mut waiting = Vec::new();
        let mut frames = Vec::new();
        let total = above + terminal.size().1;
        let mut at = 0;
        while at < total {
            if !changed(at) {
                at += 1;
                continue;
            }
            let mut top = at;
            let mut size = 0;
            while top > 0 && size < FRAME_LIMIT && join(top - 1).is_some() {
                top -= 1;
                size += columns;
            }
            let Some(mut text) = row(top).map(|row| row.begin()) else {
                break;
            };
            let mut bottom = top;
            while text.len() < 2 * FRAME_LIMIT
                && let Some((join, row)) = join(bottom).zip(row(bottom + 1))
            {
                row.add_to(&mut text, join);
                bottom += 1;
            }
            if busy.is_some_and(|busy| (top..=bottom).contains(&busy)) {
                waiting.extend((top..=bottom).filter(|row| changed(*row)));
            } else if text.contains("<<") {
                frames.extend(frames_in(&self.word, &text));
            }
            at = at.max(bottom) + 1;
        }
        let open = if wide && primary {
            let joined = (1..=above).rev().take_while(|below| join(below - 1).is_some());
            joined.count()
        } else {
            0
        };
        for frame in frames {
            self.report(frame);
        }
        self.fresh.fill(false);
        if wide {
            self.changed.fill(false);
            self.keep_departed(open);
        }
        for row in waiting.into_iter().filter_map(|row| row.checked_sub(above)) {
            self.changed[row] = true;
            self.fresh[row] = true;
        }
    }

    /// The row that is being redrawn: left of the cursor it is new, right of it old.
    fn busy_row(&self, terminal: &Terminal) -> Option<usize> {
        let cursor = terminal.cursor();
        let row = Row::from(terminal.screen().line(cursor.row)?);
        (self.drawing && row.used() > cursor.col).then_some(cursor.row)
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
        let vouched = |verifier: &Verifier| frame.seal().is_some() && verifier(&frame);
        let tier = match &self.verifier {
            Some(verifier) if vouched(verifier) => Tier::Signed,
            _ => Tier::Bare,
        };
        let offset = self.offset;
        self.sightings.push(Sighting { frame, offset, tier });
    }
}

/// The complete frames in `text`. Incomplete ones are not reported: every frame is one while it is
/// drawn.
fn frames_in(word: &Word, text: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut keep = |found| {
        if let Found::Frame { frame, .. } = found {
            frames.push(frame);
        }
    };
    let mut scanner = Scanner::drawn(word.clone());
    scanner.scan(text.as_bytes(), &mut keep);
    scanner.finish(&mut keep);
    frames
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
        if self.whole != Whole::No {
            self.look(context.terminal(), Look::Wide);
        }
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
