//! The terminal: taken over whole, and always given back.

use std::io;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use super::state::{Input, Key, State};
use super::view::{self, Theme};

/// Keys that may wait to be handled.
const QUEUE: usize = 64;

/// A terminal that shows nothing but us. It is given back when this is dropped, and on a panic
/// before the panic is reported.
#[derive(Debug)]
pub(super) struct Terminal {
    inner: DefaultTerminal,
    theme: Theme,
}

impl Terminal {
    pub(super) fn take(theme: Theme) -> io::Result<Self> {
        Ok(Terminal { inner: ratatui::try_init()?, theme })
    }

    pub(super) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        self.inner.draw(|frame| view::draw(frame, state, self.theme))?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// What is typed. Reading a terminal cannot be called off, so it has a thread that nobody waits
/// for; the channel closes when the terminal is gone.
pub(super) fn keys() -> mpsc::Receiver<Input> {
    let (sender, keys) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let input = match event {
                Event::Key(key) => key_of(key).map(Input::Key),
                Event::Resize(..) => Some(Input::Resize),
                _ => None,
            };
            if input.is_some_and(|input| sender.blocking_send(input).is_err()) {
                break;
            }
        }
    });
    keys
}

fn key_of(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => Key::Stop,
        KeyCode::Char(letter) if !control => Key::Char(letter),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}
