//! The user's terminal, taken over as a whole and always released.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::buffer::Cell;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use stafette_core::clean::shown;
use tokio::sync::mpsc;

use super::state::{Input, Key, State};
use super::view::{self, Theme};

/// Keys that may wait to be handled.
const QUEUE: usize = 64;

/// The time for which the terminal is read before another reader may have it.
const GLANCE: Duration = Duration::from_millis(50);

/// A terminal that shows only this program. It is released when this is dropped, and on a panic
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
        self.inner.draw(|frame| {
            view::draw(frame, state, self.theme);
            frame.buffer_mut().content.iter_mut().for_each(clear);
        })?;
        Ok(())
    }
}

/// Empties a cell whose character would steer the terminal or hide in it.
fn clear(cell: &mut Cell) {
    if cell.symbol().chars().any(|c| shown(c) != Some(c)) {
        cell.set_symbol(" ");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// The typed keys. Reading a terminal cannot be cancelled, so it has a thread that no one waits
/// for; the channel closes when the terminal is gone.
#[derive(Debug)]
pub(super) struct Keys {
    typed: mpsc::Receiver<Input>,
    /// True while another reader has the terminal; locked while we read.
    resting: Arc<Mutex<bool>>,
}

impl Keys {
    pub(super) fn read() -> Self {
        let (sender, typed) = mpsc::channel(QUEUE);
        let resting = Arc::new(Mutex::new(false));
        let rests = resting.clone();
        std::thread::spawn(move || {
            loop {
                let Some(read) = next(&rests) else {
                    std::thread::sleep(GLANCE);
                    continue;
                };
                let input = match read {
                    Ok(Some(Event::Key(key))) => key_of(key).map(Input::Key),
                    Ok(Some(Event::Resize(..))) => Some(Input::Resize),
                    Ok(_) => None,
                    Err(_) => break,
                };
                if input.is_some_and(|input| sender.blocking_send(input).is_err()) {
                    break;
                }
            }
        });
        Keys { typed, resting }
    }

    pub(super) async fn recv(&mut self) -> Option<Input> {
        self.typed.recv().await
    }

    /// Leaves the terminal to another reader, or reads it again. Takes effect before it returns.
    pub(super) fn rest(&self, rest: bool) {
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = rest;
    }
}

/// The keys typed within a short time; `None` while another reader has the terminal.
fn next(resting: &Mutex<bool>) -> Option<io::Result<Option<Event>>> {
    let resting = resting.lock().unwrap_or_else(PoisonError::into_inner);
    let read = || match event::poll(GLANCE)? {
        true => event::read().map(Some),
        false => Ok(None),
    };
    (!*resting).then(read)
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
