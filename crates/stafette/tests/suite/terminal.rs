//! A person at a terminal: types, and reads what is to be seen.

use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use pty_process::Size;
use pty_process::blocking::{Pty, open};
use stafette_agents::screen::Screen;
use stafette_core::wire::frame::Word;

use crate::world::PATIENCE;

/// A terminal with a program in it.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    output: Receiver<Vec<u8>>,
    screen: Screen,
    bytes: Vec<u8>,
}

impl Terminal {
    pub(crate) fn start(command: Command, columns: u16, rows: u16) -> Self {
        let (pty, inside) = open().expect("a terminal");
        pty.resize(Size::new(rows, columns)).expect("a size");
        let child = pty_process::blocking::Command::from(command)
            .spawn(inside)
            .expect("the program starts");
        let pty = Arc::new(pty);
        let (sender, output) = channel();
        let reader = pty.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // A terminal whose last program has gone fails to be read.
            while let Ok(count @ 1..) = (&*reader).read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let screen = Screen::new(Word::default(), columns, rows).expect("a screen");
        Terminal { pty, child, output, screen, bytes: Vec::new() }
    }

    pub(crate) fn types(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits until these words are to be seen. What is drawn with them may come a moment later.
    pub(crate) fn sees(&mut self, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = self.screen.text().join("\n");
            if text.contains(words) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(why) => panic!("`{words}` is not to be seen ({why}):\n{text}"),
            }
        }
    }

    /// Gives the window another size.
    pub(crate) fn resizes(&mut self, columns: u16, rows: u16) {
        self.screen.resize(columns, rows).expect("a size");
        self.pty.resize(Size::new(rows, columns)).expect("a size");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the program to end. Returns its status, and all that it wrote.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("an end");
        loop {
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(why) => panic!("something still holds the terminal: {why}"),
            }
        }
        (status.code(), String::from_utf8_lossy(&self.bytes).into_owned())
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.feed(bytes);
        self.bytes.extend_from_slice(bytes);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Of use only when a test fails half way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
