//! The questions of a program to its terminal, and the short list of answers.
//!
//! An answer is typed into the program, so anything that can make a program print — a file, a web
//! page, a colleague — could type through it. The list is fixed, and an answer holds nothing but
//! numbers of our own:
//!
//! | question | answer |
//! |---|---|
//! | device attributes, primary and secondary | a VT220 with colours |
//! | status (`CSI 5 n`), cursor position (`CSI 6 n`, `CSI ? 6 n`) | fine; its position |
//! | whether a mode is set (DECRQM) | for [`MODES`]; others are unknown |
//! | colour of text and background (`OSC 10`, `OSC 11`) | light on dark |
//! | name and version (XTVERSION) | ours |
//!
//! Never answered: the title, the clipboard (`OSC 52`), settings (DECRQSS, XTGETTCAP), checksums of
//! the screen, the answer-back message, and everything else.

use crate::screen::Cursor;

/// The private modes whose state is reported.
const MODES: [u16; 11] = [1, 7, 25, 1000, 1002, 1003, 1004, 1006, 1049, 2004, 2026];

/// Those of them that the screen's own dump does not restore.
const DUMPED: [u16; 6] = [1000, 1002, 1003, 1004, 1006, 2004];

/// The mode that puts pasted text in brackets.
const BRACKETED_PASTE: u16 = 2004;

/// The longest control sequence that is understood, in bytes.
const CONTROL: usize = 64;

/// The longest operating system command that is understood, in bytes.
const COMMAND: usize = 512;

/// The longest title, in characters.
const TITLE: usize = 200;

/// The private modes that a program has switched on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Modes(u16);

impl Default for Modes {
    fn default() -> Self {
        let mut modes = Modes(0);
        modes.put(7, true);
        modes.put(25, true);
        modes
    }
}

impl Modes {
    fn put(&mut self, mode: u16, on: bool) {
        if let Some(at) = MODES.iter().position(|known| *known == mode) {
            self.0 = self.0 & !(1 << at) | u16::from(on) << at;
        }
    }

    /// True if a mode is on; `None` when it is not known.
    fn get(&self, mode: u16) -> Option<bool> {
        MODES.iter().position(|known| *known == mode).map(|at| self.0 & (1 << at) != 0)
    }

    /// True if pasted text is put in brackets.
    pub(super) fn bracketed_paste(&self) -> bool {
        self.get(BRACKETED_PASTE) == Some(true)
    }

    /// The text that switches on the modes that matter for drawing and typing.
    pub(super) fn dump(&self) -> String {
        let on = DUMPED.iter().filter(|mode| self.get(**mode) == Some(true));
        on.map(|mode| format!("\x1b[?{mode}h")).collect()
    }
}

/// A message of a program to its terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A question that has an answer.
    Ask(Ask),
    /// A private mode is switched.
    Mode { mode: u16, on: bool },
    /// Everything is reset to its initial state.
    Reset,
    /// The program sets the window's title.
    Title(String),
    /// The program draws, rather than writing line by line.
    Drawing,
}

/// A question that has an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    Attributes,
    SecondaryAttributes,
    Status,
    Position { private: bool },
    Mode { mode: u16 },
    Colour { which: u8, bell: bool },
    Version,
}

impl Ask {
    /// The answer, with the cursor and the modes as they are.
    pub(super) fn answer(self, cursor: Cursor, modes: &Modes) -> String {
        match self {
            Ask::Attributes => "\x1b[?62;22c".to_owned(),
            Ask::SecondaryAttributes => "\x1b[>1;10;0c".to_owned(),
            Ask::Status => "\x1b[0n".to_owned(),
            Ask::Position { private } => {
                let private = if private { "?" } else { "" };
                format!("\x1b[{private}{};{}R", cursor.row + 1, cursor.column + 1)
            }
            Ask::Mode { mode } => {
                let state = match modes.get(mode) {
                    None => 0,
                    Some(true) => 1,
                    Some(false) => 2,
                };
                format!("\x1b[?{mode};{state}$y")
            }
            Ask::Colour { which, bell } => {
                let colour = if which == 10 { "d0d0/d0d0/d0d0" } else { "1010/1010/1010" };
                let end = if bell { "\x07" } else { "\x1b\\" };
                format!("\x1b]{which};rgb:{colour}{end}")
            }
            Ask::Version => {
                concat!("\x1bP>|stafette(", env!("CARGO_PKG_VERSION"), ")\x1b\\").to_owned()
            }
        }
    }
}

/// The position within a sequence of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    #[default]
    Text,
    Escape,
    Control,
    /// In an escape sequence of more than one letter.
    Longer,
    /// In an operating system command.
    Command,
    /// In a string that means nothing to us.
    String,
}

/// Finds questions and modes in the output of a program, wherever it is cut.
#[derive(Debug, Default)]
pub(super) struct Listener {
    place: Place,
    held: Vec<u8>,
    /// True if the sequence is too long to be understood.
    overlong: bool,
}

impl Listener {
    /// Passes every event that is complete with `bytes` to `each`, with the number of bytes up to
    /// its end.
    pub(super) fn listen(&mut self, bytes: &[u8], mut each: impl FnMut(usize, Event)) {
        let mut at = 0;
        while at < bytes.len() {
            if self.place == Place::Text {
                match bytes[at..].iter().position(|byte| *byte == 0x1b) {
                    None => return,
                    Some(skip) => at += skip + 1,
                }
                self.begin(Place::Escape);
                continue;
            }
            let byte = bytes[at];
            at += 1;
            self.step(byte, |event| each(at, event));
        }
    }

    fn begin(&mut self, place: Place) {
        self.place = place;
        self.held.clear();
        self.overlong = false;
    }

    fn hold(&mut self, byte: u8, limit: usize) {
        if self.held.len() < limit {
            self.held.push(byte);
        } else {
            self.overlong = true;
        }
    }

    fn step(&mut self, byte: u8, mut each: impl FnMut(Event)) {
        match (self.place, byte) {
            (_, 0x18 | 0x1a) => self.begin(Place::Text),
            (Place::Command, 0x1b | 0x07) => {
                if !self.overlong {
                    command(&self.held, byte == 0x07).into_iter().for_each(each);
                }
                self.begin(if byte == 0x07 { Place::Text } else { Place::Escape });
            }
            (_, 0x1b) => self.begin(Place::Escape),
            (Place::Escape, b'[') => self.begin(Place::Control),
            (Place::Escape, b']') => self.begin(Place::Command),
            (Place::Escape, b'P' | b'X' | b'^' | b'_') => self.begin(Place::String),
            (Place::Escape, b' '..=b'/') => self.begin(Place::Longer),
            (Place::Escape, _) => {
                match byte {
                    b'c' => each(Event::Reset),
                    b'7' | b'8' | b'M' => each(Event::Drawing),
                    _ => {}
                }
                self.begin(Place::Text);
            }
            (Place::Longer, b'0'..=b'~') => self.begin(Place::Text),
            (Place::Control, b' '..=b'?') => self.hold(byte, CONTROL),
            (Place::Control, b'@'..=b'~') => {
                if !self.overlong {
                    control(&self.held, byte, each);
                }
                self.begin(Place::Text);
            }
            (Place::Command, _) => self.hold(byte, COMMAND),
            (Place::Longer | Place::Control | Place::String | Place::Text, _) => {}
        }
    }
}

/// Reads a control sequence.
fn control(parameters: &[u8], last: u8, mut each: impl FnMut(Event)) {
    let text = str::from_utf8(parameters).unwrap_or_default();
    match (text, last) {
        ("" | "0", b'c') => each(Event::Ask(Ask::Attributes)),
        (">" | ">0", b'c') => each(Event::Ask(Ask::SecondaryAttributes)),
        (">" | ">0", b'q') => each(Event::Ask(Ask::Version)),
        ("5", b'n') => each(Event::Ask(Ask::Status)),
        ("6", b'n') => each(Event::Ask(Ask::Position { private: false })),
        ("?6", b'n') => each(Event::Ask(Ask::Position { private: true })),
        ("!", b'p') => each(Event::Reset),
        (_, b'p') => {
            let mode = text.strip_prefix('?').and_then(|text| text.strip_suffix('$'));
            if let Some(mode) = mode.and_then(|mode| mode.parse().ok()) {
                each(Event::Ask(Ask::Mode { mode }));
            }
        }
        (_, b'h' | b'l') => {
            let Some(modes) = text.strip_prefix('?') else { return };
            for mode in modes.split(';').filter_map(|mode| mode.parse().ok()) {
                each(Event::Mode { mode, on: last == b'h' });
            }
        }
        (_, b'A'..=b'D' | b'F' | b'H' | b'f' | b'J' | b'L' | b'M' | b'S' | b'T' | b'd') => {
            each(Event::Drawing);
        }
        _ => {}
    }
}

/// Reads an operating system command.
fn command(text: &[u8], bell: bool) -> Option<Event> {
    let text = String::from_utf8_lossy(text);
    let (number, rest) = text.split_once(';')?;
    match (number, rest) {
        ("10", "?") => Some(Event::Ask(Ask::Colour { which: 10, bell })),
        ("11", "?") => Some(Event::Ask(Ask::Colour { which: 11, bell })),
        ("0" | "2", title) => {
            Some(Event::Title(crate::output::plain(title, TITLE).unwrap_or_default()))
        }
        _ => None,
    }
}

impl Modes {
    /// Applies an event of the program.
    pub(super) fn follow(&mut self, event: &Event) {
        match event {
            Event::Mode { mode, on } => self.put(*mode, *on),
            Event::Reset => *self = Modes::default(),
            Event::Ask(_) | Event::Title(_) | Event::Drawing => {}
        }
    }
}

#[cfg(test)]
mod tests;
