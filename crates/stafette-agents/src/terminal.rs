//! A living program in a terminal of its own: its screen, its input, its frames, its restarts.
//!
//! A [`Terminal`] is a handle that is cheap to clone; the task behind it owns the process. An
//! observer takes a [`Snapshot`] and then the bytes that follow it ([`Terminal::subscribe`]); a
//! slow observer costs no memory, since it gets a fresh snapshot when it has fallen behind.
//!
//! Invariants:
//! - Screen and scrollback together take at most [`SCROLLBACK_LIMIT`], recent output
//!   [`RECENT_LIMIT`], a recording [`RECORDING_LIMIT`].
//! - The output of a program makes us type nothing but the answers of a fixed list.
//! - Text that we type presses no key but letters, and Enter is pressed only when the text is
//!   visible.
//! - When the last handle is dropped, or the terminal is ended, every process of its session ends.

mod input;
mod keyboard;
mod news;
mod pace;
mod pause;
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
use stafette_core::wire::frame::{Found, Word};
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

use crate::output;
use crate::process::Launch;
use crate::profile::Key;
use crate::screen::{BadSize, Cursor, Sighting};
use crate::{Job, STALL};
use input::{Proof, Sight, Way};
use news::Teller;
use pump::{Input, Order, Pump, Text};
use supervisor::Supervisor;
use view::View;

/// The maximum memory for a screen and the rows that have left it, in bytes.
pub const SCROLLBACK_LIMIT: usize = 8 * 1024 * 1024;

/// The maximum number of cells of a screen: its two buffers take most of [`SCROLLBACK_LIMIT`] then.
pub const CELLS_LIMIT: usize = 160_000;

/// The size of recent output that is kept for observers, in bytes.
pub const RECENT_LIMIT: usize = 256 * 1024;

/// The number of orders and texts that may wait for the task behind a terminal.
const QUEUE: usize = 16;

/// The default size of a terminal, in columns and rows.
pub const DEFAULT_SIZE: (u16, u16) = (120, 40);

/// True if a terminal can have this size.
pub(crate) fn is_size(columns: u16, rows: u16) -> bool {
    columns > 1 && rows > 0 && usize::from(columns) * usize::from(rows) <= CELLS_LIMIT
}

/// The settings of a terminal.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The size in columns and rows.
    pub size: (u16, u16),
    /// The time limits for its program to start, and the limits for restarts.
    pub patience: Patience,
    /// The time limit for typed text to become visible.
    pub arrival: Duration,
    /// The time that a turn may go without any output before the program is interrupted.
    pub stall: Duration,
    /// The time that it must be quiet after a handoff or a result for the turn to end.
    pub quiet: Duration,
    /// The time after a handoff or a result at which the turn ends even if it is not quiet.
    pub unquiet: Duration,
    pub interrupt: Key,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            size: DEFAULT_SIZE,
            patience: Patience::default(),
            arrival: Duration::from_secs(5),
            stall: STALL,
            quiet: Duration::from_millis(1500),
            unquiet: Duration::from_secs(60),
            interrupt: Key::default(),
        }
    }
}

impl Setup {
    /// Applies the settings that a job has for its terminal.
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

/// The content of a terminal at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Snapshot {
    /// Width in columns.
    pub cols: u16,
    pub rows: u16,
    /// The position of the cursor.
    pub cursor: Cursor,
    /// The position in the stream: the bytes that follow continue here.
    pub seq: u64,
    /// The text that makes an empty terminal of this size show the same.
    pub dump: String,
    /// The rows that have left the screen, with their styling, if they were requested; to be
    /// written first.
    pub history: String,
}

/// The reason why input could not be typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum InputError {
    #[error("nothing runs in the terminal")]
    Gone,
    #[error("what was typed did not show up on the screen")]
    Unseen,
    #[error("the program does not read its input")]
    Unread,
}

/// The reason why a size could not be changed.
#[derive(Debug, Error)]
pub enum ResizeError {
    #[error(transparent)]
    Size(#[from] BadSize),
    #[error("the terminal is gone")]
    Gone,
}

/// The state of a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Status {
    pub(crate) state: State,
    /// The number of times its program was started.
    pub(crate) life: u32,
    /// The exit status of the program that ran last; `None` while one runs.
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) pid: Option<i32>,
    pub(crate) since: SystemTime,
    /// A message for people.
    pub(crate) note: Option<String>,
    /// True if the terminal has ended.
    pub(crate) over: bool,
}

/// The new output of a program since the last call.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) frames: Vec<Sighting>,
    pub(crate) status: Status,
    /// The number of bytes printed since the turn was submitted.
    pub(crate) heard: u64,
    /// True if its agent has reported the outcome of the turn through another channel.
    pub(crate) told: bool,
    /// True if its agent was given a message.
    pub(crate) given: bool,
}

#[derive(Debug)]
struct Facts {
    view: View,
    supervisor: Supervisor,
    status: Status,
    /// The receiver of its changes.
    teller: Option<Teller>,
    /// True if its agent has reported the outcome of its turn through another channel, and that was
    /// not taken yet.
    told: bool,
    /// True if its agent was given a message, and that was not taken yet.
    given: bool,
    /// The last start of the program that has taken an order in.
    worked: Option<u32>,
    /// The session that its program keeps on its own.
    thread: Option<Arc<Thread>>,
}

impl Facts {
    /// Copies the supervisor's state.
    fn settle(&mut self) {
        let state = self.supervisor.state();
        if state != self.status.state {
            self.status.state = state;
            self.status.since = SystemTime::now();
            let note = self.status.note.clone().filter(|_| state.is_trouble());
            self.tell(state.into(), note.unwrap_or_default(), state == State::Crashed);
        }
    }

    /// Reports the state of its session to followers.
    fn tell(&self, state: SessionState, note: String, gave_up: bool) {
        if let Some(teller) = &self.teller {
            teller.tell(state, note, gave_up);
        }
    }
}

/// The shared state of a terminal.
#[derive(Debug)]
struct Board {
    facts: Mutex<Facts>,
    changes: watch::Sender<u64>,
}

impl Board {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        // It is never left half changed, so a panic elsewhere is no reason to fail here.
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
    /// Locked by the turn in progress.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Locked while a text is typed, so that no two are mixed.
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
            given: false,
            worked: None,
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

    /// The content that it shows now.
    pub fn snapshot(&self) -> Snapshot {
        self.board.facts().view.snapshot(0)
    }

    /// Everything from now on: a snapshot first, or the bytes after `after` when they are still
    /// there.
    #[must_use]
    pub fn subscribe(&self, after: Option<u64>) -> Subscription {
        Subscription::new(self.board.clone(), after)
    }

    /// The screen's rows as text, without empty rows at the end.
    pub fn text(&self) -> Vec<String> {
        self.board.facts().view.screen.text()
    }

    /// The row of the cursor, without blanks at its end.
    pub(crate) fn line(&self) -> String {
        self.board.facts().view.screen.line()
    }

    /// Types bytes as they are. Returns when the program's terminal has taken them.
    ///
    /// # Errors
    /// When no program is there to take them.
    pub async fn write(&self, bytes: Vec<u8>) -> Result<(), InputError> {
        self.type_in(Text::Keys(bytes)).await.map(drop)
    }

    /// Types a text and returns when it is visible; tries it twice.
    ///
    /// # Errors
    /// When it was not seen in time: then Enter must not be pressed.
    pub async fn paste_seen(&self, text: &str) -> Result<(), InputError> {
        let typed = self.paste_once(text).await;
        if typed != Err(InputError::Unseen) {
            return typed;
        }
        // Text that may have arrived in part is removed first: Ctrl-U.
        self.write(vec![0x15]).await?;
        self.paste_once(text).await
    }

    async fn paste_once(&self, text: &str) -> Result<(), InputError> {
        let mut changes = self.board.changes.subscribe();
        // A turn may be under way, so its counters are left alone.
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
        // And as long as it takes to draw it: while the screen still changes, it may be this text.
        let longest = match text.len() {
            0..4096 => Instant::now() + self.setup.arrival,
            _ => patience.max(Instant::now() + self.setup.arrival * 5),
        };
        loop {
            changes.borrow_and_update();
            {
                let facts = self.board.facts();
                let printed = facts.view.since(before, RECENT_LIMIT);
                // More than is kept was printed, so the typed text was part of it.
                let passed = printed.is_none() || sight == Sight::Certain;
                let printed = String::from_utf8_lossy(&printed.unwrap_or_default()).into_owned();
                let lines = printed.split(['\r', '\n']);
                let plain: String =
                    lines.filter_map(|line| output::plain(line, usize::MAX)).collect();
                // The rest of the echo must not be taken for output of the program.
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

    /// Presses Enter in the program.
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

    /// Types, and returns whether the text will become visible.
    async fn type_in(&self, text: Text) -> Result<Sight, InputError> {
        let (done, typed) = oneshot::channel();
        let sent = self.inputs.send(Input { text, done }).await;
        sent.map_err(|_| InputError::Gone)?;
        typed.await.map_err(|_| InputError::Gone)?
    }

    /// Changes the size of the terminal.
    ///
    /// # Errors
    /// When no terminal has that size, or this one has ended.
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<(), ResizeError> {
        let (done, resized) = oneshot::channel();
        let order = Order::Resize { size: (columns, rows), done };
        self.orders.send(order).await.map_err(|_| ResizeError::Gone)?;
        Ok(resized.await.map_err(|_| ResizeError::Gone)??)
    }

    /// Ends its program and starts it again, whatever happened before.
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

    /// The token that its program's own frames are signed with.
    pub(crate) fn token(&self) -> Option<String> {
        self.board.facts().view.sightings.token().map(str::to_owned)
    }

    /// The largest number of a signed frame that it has shown.
    pub(crate) fn sealed(&self) -> u64 {
        self.board.facts().view.sightings.sealed()
    }

    /// Ignores frames up to this number: they were shown before this terminal existed.
    pub(crate) fn sealed_up_to(&self, number: u64) {
        self.board.facts().view.sightings.sealed_up_to(number);
    }

    /// The last lines with visible text.
    pub(crate) fn lines(&self, count: usize) -> Vec<String> {
        self.board.facts().view.lines(count)
    }

    /// True if anything other than line ends was printed since [`Terminal::listen`].
    pub(crate) fn says_something(&self) -> bool {
        let facts = self.board.facts();
        facts.view.drawn || !facts.view.printed.lines(1).is_empty()
    }

    /// True if its program draws on the screen, rather than writing line by line.
    pub(crate) fn draws(&self) -> bool {
        self.board.facts().view.drawn
    }

    /// Wakes a receiver whenever something changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.board.changes.subscribe()
    }

    /// The state of the terminal.
    pub(crate) fn status(&self) -> Status {
        self.board.facts().status.clone()
    }

    /// The new output since the last call.
    pub(crate) fn news(&self) -> News {
        let mut facts = self.board.facts();
        News {
            frames: facts.view.take(),
            status: facts.status.clone(),
            heard: facts.view.heard,
            told: std::mem::take(&mut facts.told),
            given: std::mem::take(&mut facts.given),
        }
    }

    /// The printed frames of the turn that cannot be read, since the last call.
    pub(crate) fn malformed(&self) -> Vec<Found> {
        self.board.facts().view.sightings.take_malformed()
    }

    /// Begins a turn in which `text` is typed.
    pub(crate) fn turn_begins(&self, text: &str) {
        {
            let mut facts = self.board.facts();
            facts.view.next_turn(text);
            (facts.told, facts.given) = (false, false);
        }
        self.turn_has_begun();
    }

    /// Begins a turn whose order the program got with its command.
    pub(crate) fn turn_has_begun(&self) {
        let mut facts = self.board.facts();
        facts.supervisor.turn_begins();
        facts.settle();
        let thread = facts.thread.clone();
        drop(facts);
        thread.inspect(|thread| thread.turn_begins());
        self.board.publish();
    }

    /// Marks that its program has taken an order in: from now on its screen shows what the agent writes.
    pub(crate) fn has_taken(&self) {
        let mut facts = self.board.facts();
        facts.worked = Some(facts.status.life);
    }

    /// True if its program asks for pasted text in brackets.
    pub(crate) fn takes_brackets(&self) -> bool {
        self.board.facts().view.modes.bracketed_paste()
    }

    /// True if its program has taken no order in since its start.
    pub(crate) fn is_fresh(&self) -> bool {
        let facts = self.board.facts();
        facts.worked != Some(facts.status.life)
    }

    /// Marks that its agent has reported the outcome of its turn through a channel of its own; the
    /// turn ends as soon as it is quiet.
    pub(crate) fn told(&self) {
        self.board.facts().told = true;
        self.board.publish();
    }

    /// Marks that its agent was given a message: it continues, also after a printed answer.
    pub(crate) fn given(&self) {
        self.board.facts().given = true;
        self.board.publish();
    }

    /// The turn's text has been typed: output from now on is the agent's.
    pub(crate) fn listen(&self) {
        self.board.facts().view.listen();
    }

    /// Marks the end of the turn.
    pub(crate) fn turn_ends(&self) {
        let mut facts = self.board.facts();
        facts.supervisor.turn_ends();
        facts.settle();
        let thread = facts.thread.clone();
        drop(facts);
        thread.inspect(|thread| thread.turn_ends());
        self.board.publish();
    }

    /// The id of the session that its program keeps on its own, if it is known.
    pub(crate) fn session(&self) -> Option<String> {
        let thread = self.board.facts().thread.clone()?;
        thread.session()
    }

    /// Waits until the terminal is free, and takes it for a turn.
    pub(crate) async fn take(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    /// True if it runs this command in this folder.
    pub(crate) fn runs(&self, launch: &Launch) -> bool {
        (&self.launch.command, &self.launch.folder) == (&launch.command, &launch.folder)
    }
}

#[cfg(test)]
mod tests;
