//! The keyboard and mouse modes that a program has requested from the terminal of the person who
//! types.

use super::queries::{Event, Listener};

/// The private modes that change what a terminal sends when something is typed, clicked or pasted.
const MODES: [u16; 7] = [1, 1000, 1002, 1003, 1004, 1006, 2004];

/// Follows the output of a program, and returns the settings with which a person's own terminal
/// sends what the program expects.
#[derive(Debug, Default)]
pub struct Keyboard {
    listener: Listener,
    on: [bool; MODES.len()],
}

impl Keyboard {
    /// Takes output of the program, or a snapshot of it.
    pub fn feed(&mut self, bytes: &[u8]) {
        let on = &mut self.on;
        self.listener.listen(bytes, |_, event| match event {
            Event::Mode { mode, on: set } => {
                if let Some(at) = MODES.iter().position(|known| *known == mode) {
                    on[at] = set;
                }
            }
            Event::Reset => *on = [false; MODES.len()],
            Event::Ask(_) | Event::Title(_) | Event::Drawing => {}
        });
    }

    /// The text that applies these settings. It never contains anything but these modes.
    pub fn settings(&self) -> String {
        // Switching off one mode of the mouse switches off the others.
        let mut text = Self::plain();
        for (mode, _) in MODES.iter().zip(self.on).filter(|(_, on)| *on) {
            text += &format!("\x1b[?{mode}h");
        }
        text
    }

    /// The text that resets the settings.
    pub fn plain() -> String {
        MODES.iter().map(|mode| format!("\x1b[?{mode}l")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_16_the_persons_keyboard_is_set_as_the_program_asks_and_nothing_else_is() {
        let mut keyboard = Keyboard::default();
        keyboard.feed(b"\x1b[?1h\x1b[?1049h\x1b[?1000;10");
        keyboard.feed(b"06h\x1b]52;c;?\x07\x1b[?2004h\x1b[?2004l");
        let set = keyboard.settings();
        assert_eq!(set.strip_prefix(&Keyboard::plain()), Some("\x1b[?1h\x1b[?1000h\x1b[?1006h"));
        keyboard.feed(b"\x1bc");
        assert_eq!(keyboard.settings(), Keyboard::plain());
    }
}
