//! The user's terminal: what is drawn, and the keys that are typed.

use std::collections::VecDeque;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::state::{Input, Key, State};
use super::view::{self, Theme};
use crate::window::rows::{Rows, SHOWN};
use crate::window::{Keys, Window};

/// A terminal that shows only this program. It is released when this is dropped, and on a panic
/// before the panic is reported.
#[derive(Debug)]
pub(super) struct Terminal {
    // Dropped before the window: no key that is typed afterwards is read.
    keys: Keys,
    window: Window,
    resized: Signal,
    size: (u16, u16),
    drawn: Rows,
    theme: Theme,
    typed: VecDeque<Key>,
    /// The beginning of a letter whose end was not read yet.
    half: Vec<u8>,
}

impl Terminal {
    pub(super) fn take(theme: Theme) -> io::Result<Self> {
        let resized = signal(SignalKind::window_change())?;
        let window = Window::take()?;
        Ok(Terminal {
            keys: Keys::read(),
            size: window.size(),
            window,
            resized,
            drawn: Rows::default(),
            theme,
            typed: VecDeque::new(),
            half: Vec::new(),
        })
    }

    pub(super) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        let lines = view::draw(state, self.theme, self.size);
        let rows = lines.iter().map(|line| line.row(self.size.0)).collect();
        self.window.write(&(self.drawn.write(rows) + SHOWN))
    }

    /// Returns the next key, or that the size has changed; `None` when the terminal is gone.
    pub(super) async fn next(&mut self) -> Option<Input> {
        loop {
            if let Some(key) = self.typed.pop_front() {
                return Some(Input::Key(key));
            }
            tokio::select! {
                bytes = self.keys.next() => {
                    self.half.extend(bytes?);
                    self.typed.extend(keys(&mut self.half));
                }
                _ = self.resized.recv() => {
                    (self.size, self.drawn) = (self.window.size(), Rows::default());
                    return Some(Input::Resize);
                }
            }
        }
    }
}

/// Takes the keys out of typed bytes. What no key of ours begins with is left out.
fn keys(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = &bytes[..];
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        keys.extend(match first {
            0x03 => Some(Key::Stop),
            b'\r' => Some(Key::Enter),
            0x08 | 0x7f => Some(Key::Backspace),
            0x1b => match after {
                [b'[' | b'O', sequence @ ..] if !sequence.is_empty() => {
                    let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
                    let (sequence, after) =
                        sequence.split_at(end.map_or(sequence.len(), |end| end + 1));
                    rest = after;
                    key_of(sequence)
                }
                // A letter with Alt is the letter.
                [b' '..=b'~' | 0x80.., ..] => None,
                _ => Some(Key::Escape),
            },
            0..b' ' => None,
            _ => {
                let length = first.leading_ones().clamp(1, 4) as usize;
                let Some(letter) = rest.get(..length - 1) else {
                    rest = &bytes[bytes.len() - rest.len() - 1..];
                    break;
                };
                let letter = [&[first], letter].concat();
                rest = &rest[length - 1..];
                std::str::from_utf8(&letter)
                    .ok()
                    .and_then(|text| text.chars().next())
                    .map(Key::Char)
            }
        });
    }
    *bytes = rest.to_vec();
    keys
}

/// The key behind a sequence of a terminal, without its introduction.
fn key_of(sequence: &[u8]) -> Option<Key> {
    Some(match sequence {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"H" | b"1~" | b"7~" => Key::Home,
        b"F" | b"4~" | b"8~" => Key::End,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_13_keys_are_read_as_terminals_send_them() {
        let mut half = Vec::new();
        let mut typed = |bytes: &[u8]| {
            half.extend(bytes);
            (keys(&mut half), half.clone())
        };
        let nothing = Vec::new;
        assert_eq!(
            typed("j\r\u{7f}ü\x03".as_bytes()),
            (
                vec![Key::Char('j'), Key::Enter, Key::Backspace, Key::Char('ü'), Key::Stop],
                nothing()
            )
        );
        let ways = [Key::Up, Key::Down, Key::PageUp, Key::PageDown, Key::Home, Key::End, Key::Up];
        let sent = b"\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[A";
        assert_eq!(typed(sent), (ways.to_vec(), nothing()));
        assert_eq!(typed(b"\x1b"), (vec![Key::Escape], nothing()));
        assert_eq!(typed(b"\x1bq"), (vec![Key::Char('q')], nothing()), "with Alt");
        assert_eq!(
            typed(b"\x1b[200~x\x1b[1;5C\x01\n\x1b["),
            (vec![Key::Char('x'), Key::Char('[')], nothing())
        );
        assert_eq!(typed(&[0xe8, 0xaa]), (vec![], vec![0xe8, 0xaa]), "half a letter");
        assert_eq!(typed(&[0x9e, b'k']), (vec![Key::Char('語'), Key::Char('k')], nothing()));
        assert_eq!(typed(&[0x9e, 0xff, b'a', b'b', b'c', b'k']).1, nothing(), "nonsense ends");
    }
}
