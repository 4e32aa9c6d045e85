//! The user's own terminal, taken over as a whole and always released.
//!
//! Invariants:
//! - It is released on every way out: at the end, by an error, on a panic before it is reported,
//!   and on the signals that mean the end.
//! - Nothing that an agent printed is written to it as it is: only text, colours, and the few modes
//!   of keyboard and mouse that [`Keyboard`] knows.

pub(crate) mod canvas;
pub(crate) mod keys;
pub(crate) mod line;
pub(crate) mod rows;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use rustix::termios::{
    OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use stafette_agents::terminal::Keyboard;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failure;
pub(crate) use canvas::Canvas;
pub(crate) use keys::Keys;

/// The size of a terminal that does not report it, in columns and rows.
const PLAIN_SIZE: (u16, u16) = (80, 24);

/// Switches to the alternate screen, empty, on which long rows do not wrap.
const TAKE: &str = "\x1b[?1049h\x1b[?7l\x1b[0m\x1b[2J";

/// Restores the previous state.
const GIVE_BACK: &str = "\x1b[?2026l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal to release when something panics.
static TAKEN: Mutex<Option<Arc<Taken>>> = Mutex::new(None);

/// The panic hook is installed once for all windows.
static PANICS: Once = Once::new();

/// The user's terminal, as long as this program has it.
#[derive(Debug)]
pub(crate) struct Window(Arc<Taken>);

#[derive(Debug)]
struct Taken {
    before: Termios,
    given_back: AtomicBool,
}

/// True if both input and output are a terminal.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl Window {
    /// Takes the terminal: keys arrive as they are typed, and the screen is ours.
    pub(crate) fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // A read returns after a tenth of a second, so that the reader can be asked to stop.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 1;
        let taken = Arc::new(Taken { before, given_back: AtomicBool::new(false) });
        PANICS.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if let Some(taken) = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    taken.give_back();
                }
                report(panic);
            }));
        });
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken.clone());
        let window = Window(taken);
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        window.write(TAKE)?;
        Ok(window)
    }

    /// The width in columns and the height in rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => PLAIN_SIZE,
        }
    }

    /// Writes to it immediately.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.0.give_back();
    }
}

impl Taken {
    fn give_back(&self) {
        if self.given_back.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut out = io::stdout().lock();
        // A terminal that went away needs no release.
        let _ = write!(out, "{}{GIVE_BACK}", Keyboard::plain());
        let _ = out.flush();
        // Keys that were typed for an agent and not read yet are not for the shell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

/// The failure for a process that cannot receive signals.
pub(crate) fn no_signals(error: &io::Error) -> Failure {
    Failure::failed("Cannot receive signals")
        .because(error)
        .fix("raise the limit of open files (`ulimit -n`), and try again")
}

/// The signals that ask this program to leave.
#[derive(Debug)]
pub(crate) struct Signals([Signal; 4]);

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
        ];
        let [terminate, hangup, interrupt, quit] = kinds.map(signal);
        Ok(Signals([terminate?, hangup?, interrupt?, quit?]))
    }

    pub(crate) async fn any(&mut self) {
        let [terminate, hangup, interrupt, quit] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = interrupt.recv() => {}
            _ = quit.recv() => {}
        }
    }
}
