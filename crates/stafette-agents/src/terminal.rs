//! A living program in a terminal of its own: its screen, its input, its frames, its restarts.
//!
//! A [`Terminal`] is a handle that is cheap to clone; the task behind it owns the process. Whoever
//! looks takes a [`Snapshot`] and then the bytes that follow it ([`Terminal::subscribe`]); nobody
//! who is slow costs memory, since he gets a fresh snapshot when he has fallen behind.
//!
//! Invariants:
//! - Screen and scrollback together take at most [`SCROLLBACK_LIMIT`], what was printed lately
//!   [`RECENT_LIMIT`], a recording [`RECORDING_LIMIT`].
//! - What a program prints makes us type nothing but the answers of a fixed list.
//! - What we type as text presses no key but letters, and Enter is pressed only when the text is
//!   there to be seen.
//! - When the last handle is dropped, or the terminal is ended, every process of its session goes.

mod input;
mod keyboard;
mod news;
mod pace;
mod person;
mod pump;
mod queries;
mod recording;
mod registry;
mod sightings;
mod subscription;
mod supervisor;
mod thread;
mod view;

use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use stafette_core::redact::Redactor;
use stafette_core::run::session::SessionState;
use stafette_core::wire::frame::Word;
use stafette_core::{Failure, Millis};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

pub use keyboard::Keyboard;
pub use news::{Follow, SessionNews};
pub use recording::{
    Event as RecordedEvent, Header as RecordingHeader, Lines as RecordingLines, RECORDING_LIMIT,
    Recording, RecordingError, Timed, file as recording_file,
};
pub use registry::{TerminalInfo, Terminals};
pub use subscription::{Piece, Subscription};
pub use supervisor::{Patience, State};
pub(crate) use thread::Thread;

use crate::Job;
use crate::output;
use crate::process::Launch;
use crate::profile::Key;
use crate::screen::{BadSize, Cursor, Sighting};
use input::{Proof, Sight, Way};
use news::Teller;
use pump::{Input, Order, Pump, Text};
use supervisor::Supervisor;
use view::View;

/// The most memory for a screen and what has left it.
pub const SCROLLBACK_LIMIT: usize = 8 * 1024 * 1024;

/// The most cells of a screen: its two buffers take most of [`SCROLLBACK_LIMIT`] then.
pub const CELLS_LIMIT: usize = 160_000;

/// How much of what was printed lately is kept for those who draw along.
pub const RECENT_LIMIT: usize = 256 * 1024;

/// Orders and texts that may wait for the task behind a terminal.
const QUEUE: usize = 16;

/// The size of a terminal when none is asked for.
pub const DEFAULT_SIZE: (u16, u16) = (120, 40);

/// Whether a terminal can have this size.
pub(crate) fn is_size(columns: u16, rows: u16) -> bool {
    columns > 1 && rows > 0 && usize::from(columns) * usize::from(rows) <= CELLS_LIMIT
}

/// How a terminal is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Columns and rows.
    pub size: (u16, u16),
    /// How long its program is waited for, and how often it is started.
    pub patience: Patience,
    /// How long a text that was typed may take to be seen.
    pub arrival: Duration,
    /// How long a turn may go without any output before the program is interrupted.
    pub stall: Duration,
    /// How long it must be quiet after a handoff or a result for the turn to be over.
    pub quiet: Duration,
    /// How long after a handoff or a result the turn is over though it is not quiet.
    pub unquiet: Duration,
    /// What interrupts its program.
    pub interrupt: Key,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            size: DEFAULT_SIZE,
            patience: Patience::default(),
            arrival: Duration::from_secs(5),
            stall: Duration::from_secs(600),
            quiet: Duration::from_millis(1500),
            unquiet: Duration::from_secs(60),
            interrupt: Key::default(),
        }
    }
}

impl Setup {
    /// Takes over what is said about a job's terminal.
    pub(crate) fn of(&mut self, job: &Job) {
        let span = |millis: Millis| Duration::from_millis(millis.0);
        if let Some(pty) = job.profile.as_ref().and_then(|profile| profile.pty.as_ref()) {
            self.size = pty.size.unwrap_or(self.size);
            self.quiet = pty.quiet.map_or(self.quiet, span);
            self.stall = pty.stall.map_or(self.stall, span);
            self.interrupt = pty.interrupt;
            self.patience.restarts = pty.restarts.unwrap_or(self.patience.restarts);
        }
        self.stall = job.agent.stall.map_or(self.stall, span);
        let ready = &mut self.patience.ready_timeout;
        *ready = job.ready_timeout.unwrap_or(*ready);
    }
}

/// What a terminal shows at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Snapshot {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
    /// Where the cursor is.
    pub cursor: Cursor,
    /// Where in the stream this is: what follows continues here.
    pub seq: u64,
    /// What must be written to an empty terminal of this size so that it shows the same.
    pub dump: String,
    /// What has left the screen, with its styling, if it was asked for; to be written first.
    pub history: String,
}

/// Why something could not be typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum InputError {
    /// No program is there to take it.
    #[error("nothing runs in the terminal")]
    Gone,
    /// The program did not show what was typed, so Enter was not pressed.
    #[error("what was typed did not show up on the screen")]
    Unseen,
    /// The program did not read its input.
    #[error("the program does not read its input")]
    Unread,
}

/// Why a size could not be changed.
#[derive(Debug, Error)]
pub enum ResizeError {
    /// No terminal has that size.
    #[error(transparent)]
    Size(#[from] BadSize),
    /// The terminal is gone.
    #[error("the terminal is gone")]
    Gone,
}

/// How a terminal stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Status {
    pub(crate) state: State,
    /// How often its program was started.
    pub(crate) life: u32,
    /// How the program that runs, or ran last, has left.
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) pid: Option<i32>,
    pub(crate) since: SystemTime,
    /// What people should know of it.
    pub(crate) note: Option<String>,
    /// Whether nothing will happen here any more.
    pub(crate) over: bool,
}

/// What was heard of a program since the last look.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) frames: Vec<Sighting>,
    pub(crate) status: Status,
    /// How many bytes were printed since the turn was submitted.
    pub(crate) heard: u64,
    /// Whether its agent has told by another channel what came of the turn.
    pub(crate) told: bool,
}

#[derive(Debug)]
struct Facts {
    view: View,
    supervisor: Supervisor,
    status: Status,
    /// Whom its changes are told to.
    teller: Option<Teller>,
    /// Whether its agent has told by another channel what came of its turn, and nobody knows yet.
    told: bool,
    /// The session that its program keeps by itself.
    thread: Option<Arc<Thread>>,
}

impl Facts {
    /// Takes over the supervisor's state.
    fn settle(&mut self) {
        let state = self.supervisor.state();
        if state != self.status.state {
            self.status.state = state;
            self.status.since = SystemTime::now();
            let note = self.status.note.clone().filter(|_| state.is_trouble());
            self.tell(state.into(), note.unwrap_or_default(), state == State::Crashed);
        }
    }

    /// Tells those who follow that its session stands so.
    fn tell(&self, state: SessionState, note: String, gave_up: bool) {
        if let Some(teller) = &self.teller {
            teller.tell(state, note, gave_up);
        }
    }
}

/// What everybody knows of a terminal.
#[derive(Debug)]
struct Board {
    facts: Mutex<Facts>,
    changes: watch::Sender<u64>,
}

impl Board {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        // Nobody leaves it half changed; a panic elsewhere is no reason to go blind.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// A living program in a terminal.
#[derive(Clone, Debug)]
pub struct Terminal {
    board: Arc<Board>,
    orders: mpsc::Sender<Order>,
    inputs: mpsc::Sender<Input>,
    /// Held by whoever has a turn in it.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Held by whoever types a text, so that no two are mixed.
    hand: Arc<tokio::sync::Mutex<()>>,
    setup: Arc<Setup>,
    launch: Arc<Launch>,
}

impl Terminal {
    /// Starts a program in a terminal. Must be called within a tokio runtime. One that gets its
    /// `order` with its command has its turn from the first byte on.
    pub(crate) async fn start(
        launch: Launch,
        setup: &Setup,
        word: Word,
        order: Option<&str>,
        recording: Option<(&Path, &str, &Redactor)>,
        teller: Option<Teller>,
    ) -> Result<Self, Failure> {
        let now = Instant::now();
        let mut view =
            View::new(word, setup.size).map_err(|error| pump::failure(error.to_string()))?;
        if let Some(order) = order {
            view.next_turn(order);
        }
        let facts = Facts {
            view,
            supervisor: Supervisor::new(setup.patience.clone(), now),
            status: Status {
                state: State::Starting,
                life: 0,
                exit: None,
                pid: None,
                since: SystemTime::now(),
                note: None,
                over: false,
            },
            teller,
            told: false,
            thread: None,
        };
        facts.tell(SessionState::Starting, String::new(), false);
        let board = Arc::new(Board { facts: Mutex::new(facts), changes: watch::Sender::new(0) });
        let (orders, order_queue) = mpsc::channel(QUEUE);
        let (inputs, input_queue) = mpsc::channel(QUEUE);
        let mut pump = Pump::new(board.clone(), launch.clone(), order_queue, input_queue);
        if let Some((path, title, redactor)) = recording {
            pump.record(path, title, setup.size, redactor);
        }
        pump.begin().await?;
        tokio::spawn(pump.run());
        Ok(Terminal {
            board,
            orders,
            inputs,
            turn: Arc::default(),
            hand: Arc::default(),
            setup: Arc::new(setup.clone()),
            launch: Arc::new(launch),
        })
    }

    /// What it shows now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.board.facts().view.snapshot(0)
    }

    /// What it shows now, and at most `limit` bytes of what has left the screen.
    #[must_use]
    pub fn snapshot_with_history(&self, limit: usize) -> Snapshot {
        self.board.facts().view.snapshot(limit)
    }

    /// Everything from now on: a snapshot first, or what follows `after` when it is still there.
    #[must_use]
    pub fn subscribe(&self, after: Option<u64>) -> Subscription {
        Subscription::new(self.board.clone(), after)
    }

    /// The screen's rows as text, without empty rows at the end.
    #[must_use]
    pub fn text(&self) -> Vec<String> {
        self.board.facts().view.screen.text()
    }

    /// How its session stands.
    #[must_use]
    pub fn state(&self) -> State {
        self.board.facts().status.state
    }

    /// Types bytes as they are. Returns when the program's terminal has taken them.
    ///
    /// # Errors
    /// When no program is there to take them.
    pub async fn write(&self, bytes: Vec<u8>) -> Result<(), InputError> {
        self.type_in(Text::Keys(bytes)).await.map(drop)
    }

    /// Types a text: in brackets when the program has asked for them, otherwise so that no line
    /// break sends it off too early.
    ///
    /// # Errors
    /// When no program is there to take it.
    pub async fn paste(&self, text: &str) -> Result<(), InputError> {
        self.type_in(Text::Pasted(text.to_owned())).await.map(drop)
    }

    /// Types a text and returns when it is there to be seen; tries it twice.
    ///
    /// # Errors
    /// When it was not seen in time: then Enter must not be pressed.
    pub async fn paste_seen(&self, text: &str) -> Result<(), InputError> {
        let typed = self.paste_once(text).await;
        if typed != Err(InputError::Unseen) {
            return typed;
        }
        // What may have come in part is removed first: Ctrl-U.
        self.write(vec![0x15]).await?;
        self.paste_once(text).await
    }

    async fn paste_once(&self, text: &str) -> Result<(), InputError> {
        let mut changes = self.board.changes.subscribe();
        // A turn may be under way, so what it counts is left alone.
        let (proof, before) = {
            let view = &self.board.facts().view;
            let brackets = view.modes.bracketed_paste();
            (Proof::new(text, brackets, &view.screen.text()), view.snapshot(0).seq)
        };
        let until = Instant::now() + self.setup.arrival;
        let typing = self.type_in(Text::Pasted(text.to_owned()));
        // A long text takes as long as the program takes to read it, within reason.
        let patience = until + self.setup.arrival * 5;
        let sight = match timeout_at(patience, typing).await {
            Ok(typed) => typed?,
            Err(_) => return Err(InputError::Unread),
        };
        if sight == Sight::None {
            return Ok(());
        }
        // And as long as it takes to draw it: while something still changes, it may be this.
        let longest = match text.len() {
            0..4096 => Instant::now() + self.setup.arrival,
            _ => patience.max(Instant::now() + self.setup.arrival * 5),
        };
        loop {
            changes.borrow_and_update();
            {
                let facts = self.board.facts();
                let printed = facts.view.since(before, RECENT_LIMIT);
                // More than is kept was printed, so all that was typed is among it.
                let passed = printed.is_none() || sight == Sight::Certain;
                let printed = String::from_utf8_lossy(&printed.unwrap_or_default()).into_owned();
                let lines = printed.split(['\r', '\n']);
                let plain: String =
                    lines.filter_map(|line| output::plain(line, usize::MAX)).collect();
                // What is left of the echo must not be taken for what the program says.
                let is_whole = passed || proof.is_echoed(&plain);
                if is_whole && proof.holds(&plain, &facts.view.screen.text()) {
                    return Ok(());
                }
                if facts.status.pid.is_none() {
                    return Err(InputError::Gone);
                }
            }
            let quiet = Instant::now() + self.setup.arrival;
            if timeout_at(quiet.min(longest), changes.changed()).await.is_err() {
                return match sight {
                    Sight::Certain => Err(InputError::Unseen),
                    Sight::None | Sight::Likely => Ok(()),
                };
            }
        }
    }

    /// Presses Enter.
    ///
    /// # Errors
    /// When no program is there to take it.
    pub async fn submit(&self) -> Result<(), InputError> {
        self.write(b"\r".to_vec()).await
    }

    /// Presses the key that interrupts its program.
    ///
    /// # Errors
    /// When no program is there to take it.
    pub async fn interrupt(&self) -> Result<(), InputError> {
        self.write(self.setup.interrupt.bytes().to_vec()).await
    }

    /// Types, and tells whether the text is going to be seen.
    async fn type_in(&self, text: Text) -> Result<Sight, InputError> {
        let (done, typed) = oneshot::channel();
        let sent = self.inputs.send(Input { text, done }).await;
        sent.map_err(|_| InputError::Gone)?;
        typed.await.map_err(|_| InputError::Gone)?
    }

    /// Changes its size.
    ///
    /// # Errors
    /// When no terminal has that size, or this one is gone.
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<(), ResizeError> {
        let (done, resized) = oneshot::channel();
        let order = Order::Resize { size: (columns, rows), done };
        self.orders.send(order).await.map_err(|_| ResizeError::Gone)?;
        Ok(resized.await.map_err(|_| ResizeError::Gone)??)
    }

    /// Ends its program and starts it again, whatever happened before.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) async fn restart(&self, launch: Option<Launch>) -> Result<(), Failure> {
        let (done, started) = oneshot::channel();
        let gone = || pump::failure("the terminal is gone".into());
        self.orders.send(Order::Restart { launch, done }).await.map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }

    /// Ends it for good. Returns when no process of its session is left.
    pub async fn end(&self) {
        let (done, ended) = oneshot::channel();
        if self.orders.send(Order::End { done }).await.is_ok() {
            // A task that is gone has ended its processes on the way out.
            drop(ended.await);
        }
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What its program's own frames are signed with.
    pub(crate) fn token(&self) -> Option<String> {
        self.board.facts().view.sightings.token().map(str::to_owned)
    }

    /// The largest number of a signed frame that it has shown.
    pub(crate) fn sealed(&self) -> u64 {
        self.board.facts().view.sightings.sealed()
    }

    /// Frames up to this number were said before it was there.
    pub(crate) fn sealed_up_to(&self, number: u64) {
        self.board.facts().view.sightings.sealed_up_to(number);
    }

    /// The last lines that say something.
    pub(crate) fn lines(&self, count: usize) -> Vec<String> {
        self.board.facts().view.lines(count)
    }

    /// Whether something other than line ends was printed since it was listened to.
    pub(crate) fn says_something(&self) -> bool {
        let facts = self.board.facts();
        facts.view.drawn || !facts.view.printed.lines(1).is_empty()
    }

    /// Whether its program draws on the screen, rather than writing line by line.
    pub(crate) fn draws(&self) -> bool {
        self.board.facts().view.drawn
    }

    /// Wakes whoever waits for something to happen.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.board.changes.subscribe()
    }

    /// How it stands.
    pub(crate) fn status(&self) -> Status {
        self.board.facts().status.clone()
    }

    /// What was heard since the last look.
    pub(crate) fn news(&self) -> News {
        let mut facts = self.board.facts();
        News {
            frames: facts.view.take(),
            status: facts.status.clone(),
            heard: facts.view.heard,
            told: std::mem::take(&mut facts.told),
        }
    }

    /// Begins a turn in which `text` is typed.
    pub(crate) fn turn_begins(&self, text: &str) {
        {
            let mut facts = self.board.facts();
            facts.view.next_turn(text);
            facts.told = false;
        }
        self.turn_has_begun();
    }

    /// A turn is under way that the program has got with its command.
    pub(crate) fn turn_has_begun(&self) {
        let mut facts = self.board.facts();
        facts.supervisor.turn_begins();
        facts.settle();
        let thread = facts.thread.clone();
        drop(facts);
        thread.inspect(|thread| thread.turn_begins());
        self.board.publish();
    }

    /// Its agent has told by a channel of its own what came of its turn, which is over as soon as it
    /// is quiet.
    pub(crate) fn told(&self) {
        self.board.facts().told = true;
        self.board.publish();
    }

    /// The turn's text is in: what is printed from now on is the agent's.
    pub(crate) fn listen(&self) {
        self.board.facts().view.listen();
    }

    /// The turn is over.
    pub(crate) fn turn_ends(&self) {
        let mut facts = self.board.facts();
        facts.supervisor.turn_ends();
        facts.settle();
        let thread = facts.thread.clone();
        drop(facts);
        thread.inspect(|thread| thread.turn_ends());
        self.board.publish();
    }

    /// Waits for the terminal to be free, and takes it for a turn.
    pub(crate) async fn take(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    /// Whether it runs this command in this folder.
    pub(crate) fn runs(&self, launch: &Launch) -> bool {
        (&self.launch.command, &self.launch.folder) == (&launch.command, &launch.folder)
    }
}

#[cfg(test)]
mod tests;
