//! Frames of a terminal: from its bytes and from its screen, each counted once in a turn.
//!
//! The bytes hold a frame exactly if a program prints it in one go: a cursor that moves ends it there.
//! Then the screen decides, which holds a frame however it was drawn, but with its blanks lost. A
//! frame of one source is the same as a frame of the other when their letters are.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use stafette_core::wire::frame::{Found, Frame, FrameError, Scanner, Word};

use crate::screen::{Screen, Sighting, Tier};
use crate::seal;

/// The maximum number of frames in one turn; further ones are dropped.
pub(super) const FRAMES_LIMIT: usize = 4096;

/// The maximum number of frames in one turn that cannot be read and are kept.
const MALFORMED_LIMIT: usize = 16;

/// The number of characters by which malformed frames are told apart.
const BEGINNING: usize = 40;

/// The frames of a terminal that were not taken yet.
#[derive(Debug)]
pub(super) struct Sightings {
    word: Word,
    /// The token that the program's own frames are signed with.
    token: Option<String>,
    /// The largest number of a signed frame so far, and at the end of the last turn: a frame signed
    /// up to then that shows up again does not count again.
    sealed: u64,
    floor: u64,
    scanner: Scanner,
    /// Frames in the bytes of this turn, exactly, and by their letters.
    exact: HashSet<u64>,
    printed: HashSet<u64>,
    /// Frames on the screen in this turn, by their letters.
    drawn: HashSet<u64>,
    /// Frames that were visible when the program last paused: in the middle of a drawing, rows may
    /// seem to belong together that do not.
    glimpsed: HashSet<u64>,
    /// Frames in the text that we typed ourselves: programs echo it.
    typed: HashSet<u64>,
    /// Frames of earlier turns that were visible when the turn began.
    standing: HashSet<u64>,
    /// Frames in the bytes of this turn that cannot be read, each once; known are also those in the
    /// text that we typed ourselves.
    malformed: Vec<Found>,
    known_malformed: HashSet<u64>,
    found: VecDeque<Sighting>,
    counted: usize,
    ready: bool,
}

impl Sightings {
    pub(super) fn new(word: Word) -> Self {
        Sightings {
            scanner: Scanner::printed(word.clone()),
            word,
            token: None,
            sealed: 0,
            floor: 0,
            exact: HashSet::new(),
            printed: HashSet::new(),
            drawn: HashSet::new(),
            glimpsed: HashSet::new(),
            typed: HashSet::new(),
            standing: HashSet::new(),
            malformed: Vec::new(),
            known_malformed: HashSet::new(),
            found: VecDeque::new(),
            counted: 0,
            ready: false,
        }
    }

    /// True if the program has signalled that it takes input.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Another program takes the place of the one before, and signs with this token.
    pub(super) fn program_begins(&mut self, token: Option<&str>) {
        self.ready = false;
        self.token = token.map(str::to_owned);
    }

    /// The token that the program's own frames are signed with.
    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The largest number of a signed frame so far.
    pub(super) fn sealed(&self) -> u64 {
        self.sealed
    }

    /// Ignores frames that were signed up to this number.
    pub(super) fn sealed_up_to(&mut self, number: u64) {
        self.sealed = self.sealed.max(number);
        self.floor = self.floor.max(number);
    }

    /// The frames in the bytes that are complete with these.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Vec<(Frame, u64)> {
        let mut frames = Vec::new();
        self.scanner.scan(bytes, |found| match found {
            Found::Frame { frame, offset } => frames.push((frame, offset)),
            Found::Malformed { ref text, .. } => {
                // Known from now on, so that a redraw is not another one.
                if self.malformed.len() < MALFORMED_LIMIT
                    && !is_drawn(&found)
                    && self.known_malformed.insert(beginning(text))
                {
                    self.malformed.push(found);
                }
            }
        });
        frames
    }

    /// The frames in the bytes of this turn that cannot be read, since the last call. The screen may
    /// have shown them whole.
    pub(super) fn take_malformed(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.malformed)
    }

    /// True if a frame of an earlier turn is still visible, so that it may only have been redrawn.
    pub(super) fn stands(&self, frame: &Frame) -> bool {
        self.standing.contains(&shape(frame))
    }

    /// Counts a frame in the bytes, unless it was counted before.
    pub(super) fn printed(&mut self, frame: Frame, offset: u64, redrawn: bool) {
        if self.counted == FRAMES_LIMIT {
            return;
        }
        let shape = shape(&frame);
        let stands = self.standing.contains(&shape);
        let again = !self.exact.insert(exact(&frame));
        self.printed.insert(shape);
        if redrawn || (again && !stands) || self.drawn.contains(&shape) {
            return;
        }
        // From now on it is one of this turn.
        self.standing.remove(&shape);
        self.keep(Sighting { frame, offset, tier: Tier::Bare }, shape);
    }

    /// Counts a frame on the screen, unless it was counted before.
    pub(super) fn drawn(&mut self, sighting: Sighting) {
        let shape = shape(&sighting.frame);
        let known = self.printed.contains(&shape) || self.standing.contains(&shape);
        if self.counted < FRAMES_LIMIT && !known && self.drawn.insert(shape) {
            self.keep(sighting, shape);
        }
    }

    /// Counts the frames that are visible while the program pauses, if they were there before.
    pub(super) fn visible(&mut self, frames: Vec<Frame>, offset: u64) {
        let visible = frames.iter().map(shape).collect();
        let before = std::mem::replace(&mut self.glimpsed, visible);
        for frame in frames.into_iter().filter(|frame| before.contains(&shape(frame))) {
            self.drawn(Sighting { frame, offset, tier: Tier::Bare });
        }
    }

    fn keep(&mut self, mut sighting: Sighting, shape: u64) {
        self.counted += 1;
        let token = self.token.as_deref();
        let number = token.and_then(|token| seal::verify(&sighting.frame, token));
        if let Some(number) = number {
            sighting.tier = Tier::Signed;
            self.sealed = self.sealed.max(number);
        }
        let again = number.is_some_and(|number| number <= self.floor);
        if !again && !self.typed.contains(&shape) {
            self.ready |= sighting.frame.kind == "READY";
            self.found.push_back(sighting);
        }
    }

    /// The frames that were found since the last call.
    pub(super) fn take(&mut self) -> Vec<Sighting> {
        self.found.drain(..).collect()
    }

    /// Begins another turn, in which `text` is typed.
    pub(super) fn next_turn(&mut self, text: &str, screen: &mut Screen) {
        screen.next_turn();
        self.floor = self.sealed;
        self.exact.clear();
        self.printed.clear();
        self.drawn.clear();
        self.glimpsed.clear();
        self.found.clear();
        self.counted = 0;
        self.standing = screen.frames().iter().map(shape).collect();
        self.typed.clear();
        self.malformed.clear();
        self.known_malformed.clear();
        for scanner in [Scanner::new(self.word.clone()), Scanner::drawn(self.word.clone())] {
            let mut scanner = scanner;
            let mut note = |found| match found {
                Found::Frame { frame, .. } => {
                    self.typed.insert(shape(&frame));
                }
                Found::Malformed { text, .. } => {
                    self.known_malformed.insert(beginning(&text));
                }
            };
            scanner.scan(text.as_bytes(), &mut note);
            scanner.finish(&mut note);
        }
    }
}

/// The number of times that a frame is visible.
pub(super) fn times(wanted: &Frame, screen: &Screen) -> usize {
    let wanted = shape(wanted);
    screen.frames().iter().filter(|frame| shape(frame) == wanted).count()
}

/// True for a frame that only drawing has torn apart.
fn is_drawn(found: &Found) -> bool {
    use FrameError::{Control, Cut, Escape, Moved};
    matches!(found, Found::Malformed { fault: Moved | Escape | Control | Cut, .. })
}

/// The beginning of a malformed frame, as far as it survives a terminal.
fn beginning(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let letters = text.chars().filter(|letter| !letter.is_whitespace());
    letters.take(BEGINNING).for_each(|letter| letter.hash(&mut hasher));
    hasher.finish()
}

fn exact(frame: &Frame) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.hash(&mut hasher);
    hasher.finish()
}

/// A frame reduced to what survives any terminal: everything but blanks.
fn shape(frame: &Frame) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.kind.hash(&mut hasher);
    frame.attributes.hash(&mut hasher);
    let body = frame.body.as_deref().unwrap_or_default();
    let letters = body.chars().filter(|letter| !letter.is_whitespace());
    letters.for_each(|letter| letter.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests;
