//! The task behind a terminal: it owns the process, and moves bytes both ways.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

use stafette_core::redact::Redactor;
use stafette_core::{Failure, FailureKind};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout_at};

use stafette_core::run::session::SessionState;

use super::pace::Pace;
use super::pause::Pauses;
use super::recording::Recorder;
use super::supervisor::{Due, ExitAction};
use super::{BadSize, Board, InputError, Sight, Way, input};
use crate::exec::DRAIN;
use crate::output;
use crate::process::{Group, Launch, describe};
use crate::tty::{self, Manner, Tty};

/// The number of bytes in one read.
const CHUNK: usize = 16 * 1024;

/// The number of bytes in one write, so that reading is never held up for long.
const PIECE: usize = 4 * 1024;

/// The number of bytes of answers that may wait to be typed; further ones are dropped.
const ANSWERS: usize = 4 * 1024;

/// Rows of the last screen that are kept for people when a program dies.
const LAST_ROWS: usize = 12;

/// Leaves every half-finished sequence and the alternate screen, keeps the rows, and begins anew.
const FRESH: &[u8] = b"\x18\x1b[?1049l\x1b[2J\x1bc";

/// Input to be typed.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) text: Text,
    /// Notified when it is typed, with the visibility of the text.
    pub(super) done: oneshot::Sender<Result<Sight, InputError>>,
}

/// The kind of input.
#[derive(Debug)]
pub(super) enum Text {
    Keys(Vec<u8>),
    /// A text, in the form that the program takes.
    Pasted(String),
}

/// An order for the task behind a terminal.
#[derive(Debug)]
pub(super) enum Order {
    Resize { size: (u16, u16), done: oneshot::Sender<Result<(), BadSize>> },
    Restart { launch: Option<Launch>, done: oneshot::Sender<Result<(), Failure>> },
    End { done: oneshot::Sender<()> },
    Note { text: String },
}

/// The input that is being typed.
#[derive(Debug)]
struct Typing {
    bytes: Vec<u8>,
    at: usize,
    seen: Sight,
    done: oneshot::Sender<Result<Sight, InputError>>,
}

enum Happening {
    Order(Option<Order>),
    Input(Option<Input>),
    Read(io::Result<usize>),
    Wrote(io::Result<usize>),
    Left(ExitStatus),
    Due,
}

/// The task behind a terminal.
#[derive(Debug)]
pub(super) struct Pump {
    board: Arc<Board>,
    launch: Launch,
    orders: mpsc::Receiver<Order>,
    inputs: mpsc::Receiver<Input>,
    program: Option<Program>,
    typing: Option<Typing>,
    answers: VecDeque<u8>,
    recorder: Option<Recorder>,
    pace: Pace,
    pauses: Pauses,
}

/// A program and its terminal.
#[derive(Debug)]
struct Program {
    tty: Tty,
    group: Group,
    closed: bool,
}

pub(super) fn failure(message: String) -> Failure {
    Failure::new(FailureKind::Recoverable, message)
}

impl Pump {
    pub(super) fn new(
        board: Arc<Board>,
        launch: Launch,
        orders: mpsc::Receiver<Order>,
        inputs: mpsc::Receiver<Input>,
    ) -> Self {
        Pump {
            board,
            launch,
            orders,
            inputs,
            program: None,
            typing: None,
            answers: VecDeque::new(),
            recorder: None,
            pace: Pace::new(),
            pauses: Pauses::default(),
        }
    }

    /// Records everything. If the recording cannot be started, that is noted, and the work
    /// continues.
    pub(super) fn record(
        &mut self,
        path: &Path,
        title: &str,
        size: (u16, u16),
        redactor: &Redactor,
    ) {
        match Recorder::open(path, title, size, redactor) {
            Ok(recorder) => self.recorder = Some(recorder),
            Err(error) => {
                let note = format!("cannot record to {}: {error}", path.display());
                self.board.facts().status.note = Some(note);
            }
        }
    }

    /// Starts the program in the terminal.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        let no_terminal = |error| failure(format!("cannot open a terminal: {error}"));
        let (tty, program_side) = Tty::open().map_err(no_terminal)?;
        let (columns, rows) = self.board.facts().view.screen.size();
        tty.resize(columns, rows).map_err(no_terminal)?;
        let group = Group::start_in(&self.launch, program_side).await?;
        let again = self.board.facts().status.life > 0;
        if again {
            self.show(FRESH);
        }
        if again && let Some(recorder) = &mut self.recorder {
            recorder.note("started again");
        }
        let mut facts = self.board.facts();
        facts.view.sightings.program_begins(self.launch.token());
        facts.thread = self.launch.thread.clone();
        facts.supervisor.started(Instant::now());
        facts.status.life += 1;
        facts.status.exit = None;
        facts.status.pid = Some(group.id());
        facts.settle();
        drop(facts);
        self.board.publish();
        self.program = Some(Program { tty, group, closed: false });
        Ok(())
    }

    /// Works until the terminal is ended or its last handle is dropped.
    pub(super) async fn run(mut self) {
        let mut chunk = vec![0; CHUNK];
        loop {
            match self.next(&mut chunk).await {
                Happening::Order(Some(Order::Resize { size, done })) => {
                    drop(done.send(self.resize(size)));
                }
                Happening::Order(Some(Order::Restart { launch, done })) => {
                    drop(done.send(self.restart(launch).await));
                }
                Happening::Order(Some(Order::End { done })) => {
                    self.stop().await;
                    self.over();
                    let _ = done.send(());
                    return;
                }
                Happening::Order(Some(Order::Note { text })) => {
                    if let Some(recorder) = &mut self.recorder {
                        recorder.note(&text);
                    }
                }
                Happening::Order(None) | Happening::Input(None) => {
                    self.stop().await;
                    return;
                }
                Happening::Input(Some(input)) => self.type_in(input),
                Happening::Read(Ok(count @ 1..)) => self.read_on(&mut chunk, count).await,
                // A terminal whose programs have closed it returns EIO.
                Happening::Read(_) => self.closed(),
                Happening::Wrote(Ok(count)) => self.wrote(count),
                Happening::Wrote(Err(_)) => self.forget_input(),
                Happening::Left(status) => self.left(status).await,
                Happening::Due => self.due(&mut chunk).await,
            }
        }
    }

    async fn next(&mut self, chunk: &mut [u8]) -> Happening {
        let due = self.board.facts().supervisor.next();
        let rest = self.recorder.as_ref().and_then(Recorder::next);
        let due = due.into_iter().chain(rest).chain(self.pauses.next()).min();
        let (mut reading, mut writing, mut group) = (None, None, None);
        if let Some(program) = &mut self.program {
            let (read, write) = program.tty.split();
            reading = (!program.closed).then_some(read);
            writing = Some(write);
            group = Some(&mut program.group);
        }
        let typing = self.typing.as_ref().map(|typing| &typing.bytes[typing.at..]);
        let bytes = typing.unwrap_or(self.answers.as_slices().0);
        tokio::select! {
            order = self.orders.recv() => Happening::Order(order),
            input = self.inputs.recv(), if self.typing.is_none() => Happening::Input(input),
            read = read(reading, chunk) => Happening::Read(read),
            wrote = write(writing, bytes) => Happening::Wrote(wrote),
            status = leaves(group) => Happening::Left(status),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Happening::Due,
        }
    }

    /// Takes the bytes of a read, and further ones that are ready. Other terminals come before the
    /// next read.
    async fn read_on(&mut self, chunk: &mut [u8], mut count: usize) {
        let turn = self.pace.turn().await;
        while count < chunk.len() {
            let more = self.waiting(&mut chunk[count..]).await;
            if more == 0 {
                break;
            }
            count += more;
        }
        self.show(&chunk[..count]);
        self.pace.printed(count);
        drop(turn);
        yield_now().await;
    }

    /// Reads the output that is ready, and returns its size.
    async fn waiting(&mut self, chunk: &mut [u8]) -> usize {
        let Some(program) = self.program.as_mut().filter(|program| !program.closed) else {
            return 0;
        };
        tokio::select! {
            biased;
            read = program.tty.read(chunk) => read.unwrap_or(0),
            () = ready(()) => 0,
        }
    }

    /// Reads the screen, unless more output is ready: then it was we who paused.
    async fn pause(&mut self, chunk: &mut [u8], restless: bool) {
        match self.waiting(chunk).await {
            count @ 1.. if !restless => self.read_on(chunk, count).await,
            count => {
                self.board.facts().view.pause();
                self.board.publish();
                if count > 0 {
                    self.read_on(chunk, count).await;
                }
            }
        }
    }

    /// Takes output of the program.
    fn show(&mut self, bytes: &[u8]) {
        let mut facts = self.board.facts();
        let answers = facts.view.output(bytes);
        let now = Instant::now();
        self.pauses.printed(now);
        facts.supervisor.shown(now);
        // Until it has left the mode of lines, the system would echo and change what is pasted.
        let takes_keys = || self.program.as_ref().is_some_and(|it| !it.tty.manner().lines);
        if facts.view.sightings.is_ready() || facts.view.modes.bracketed_paste() && takes_keys() {
            facts.supervisor.ready();
            facts.settle();
        }
        drop(facts);
        if self.answers.len() + answers.len() <= ANSWERS {
            self.answers.extend(answers.as_bytes());
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.output(bytes);
        }
        self.board.publish();
    }

    fn closed(&mut self) {
        if let Some(program) = &mut self.program {
            program.closed = true;
        }
    }

    /// Begins to type an input.
    fn type_in(&mut self, input: Input) {
        let Input { text, done } = input;
        let Some(program) = &self.program else {
            let _ = done.send(Err(InputError::Gone));
            return;
        };
        let (bytes, seen) = match text {
            Text::Keys(bytes) => (bytes, Sight::None),
            Text::Pasted(text) => {
                let Manner { lines, echo } = program.tty.manner();
                let way = match self.board.facts().view.modes.bracketed_paste() {
                    true => Way::Brackets { lines },
                    false if lines => Way::Lines,
                    false => Way::Keys,
                };
                let sight = match (lines, echo) {
                    (false, _) => Sight::Certain,
                    (true, true) => Sight::Likely,
                    (true, false) => Sight::None,
                };
                (input::encode(&text, way), sight)
            }
        };
        if bytes.is_empty() {
            let _ = done.send(Ok(seen));
        } else {
            self.typing = Some(Typing { bytes, at: 0, seen, done });
        }
    }

    /// Counts the bytes of the input that were taken.
    fn wrote(&mut self, count: usize) {
        let Some(mut typing) = self.typing.take() else {
            self.answers.drain(..count.min(self.answers.len()));
            return;
        };
        typing.at += count;
        if typing.at < typing.bytes.len() {
            self.typing = Some(typing);
        } else {
            let _ = typing.done.send(Ok(typing.seen));
        }
    }

    /// Drops the input that can no longer be typed.
    fn forget_input(&mut self) {
        self.answers.clear();
        if let Some(typing) = self.typing.take() {
            let _ = typing.done.send(Err(InputError::Gone));
        }
    }

    fn resize(&mut self, (columns, rows): (u16, u16)) -> Result<(), BadSize> {
        let mut facts = self.board.facts();
        facts.view.resize(columns, rows)?;
        drop(facts);
        if let Some(program) = &self.program {
            // A program that is about to die does not mind.
            drop(program.tty.resize(columns, rows));
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.resize(columns, rows);
        }
        self.board.publish();
        Ok(())
    }

    /// Handles the exit of the program: ends the other processes of its session, and reads its last
    /// output.
    async fn left(&mut self, status: ExitStatus) {
        self.clear_away(status).await;
        if let Some(thread) = self.launch.thread.as_ref().filter(|_| !status.success()) {
            thread.died();
        }
        self.dead(status.success(), describe(status));
        self.board.publish();
    }

    async fn clear_away(&mut self, status: ExitStatus) {
        let Some(mut program) = self.program.take() else {
            return;
        };
        program.group.end().await;
        let mut chunk = vec![0; CHUNK];
        let until = Instant::now() + DRAIN;
        while !program.closed
            && let Ok(Ok(count @ 1..)) = timeout_at(until, program.tty.read(&mut chunk)).await
        {
            self.show(&chunk[..count]);
            yield_now().await;
        }
        self.forget_input();
        let mut facts = self.board.facts();
        facts.view.finish();
        facts.status.exit = Some(status);
        facts.status.pid = None;
        drop(facts);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(&describe(status));
        }
    }

    /// Decides on the action after a death.
    fn dead(&mut self, well: bool, how: String) {
        let mut facts = self.board.facts();
        let chance = RandomState::new().hash_one(facts.status.life);
        let chance = u32::try_from(chance >> 32).unwrap_or(0);
        let now = Instant::now();
        let deaths = |count: u32| {
            if count == 1 { String::new() } else { format!(" {count} times in a row") }
        };
        let verdict = facts.supervisor.left(now, well, chance);
        let count = facts.supervisor.deaths();
        let screen = last_rows(&facts.view.screen.text());
        facts.status.note = match verdict {
            ExitAction::Ended => None,
            ExitAction::Restart { at } => {
                let wait = (at - now).as_secs_f32();
                let died = format!("died{} ({how}){screen}", deaths(count));
                facts.tell(SessionState::Crashed, died, false);
                Some(format!("died{} ({how}), starts again in {wait:.1} s{screen}", deaths(count)))
            }
            ExitAction::GiveUp => {
                Some(format!("died{} ({how}) and is not started again{screen}", deaths(count)))
            }
        };
        facts.settle();
    }

    /// Does the actions that are due now.
    async fn due(&mut self, chunk: &mut [u8]) {
        let now = Instant::now();
        if let Some(recorder) = &mut self.recorder
            && recorder.next().is_some_and(|rest| rest <= now)
        {
            recorder.rest();
        }
        if let Some(restless) = self.pauses.due(now) {
            self.pause(chunk, restless).await;
        }
        let due = self.board.facts().supervisor.due(now);
        match due {
            None => return,
            Some(Due::Restart) => {
                if let Err(failure) = self.begin().await {
                    self.dead(false, failure.message);
                }
            }
            Some(Due::Changed) => self.board.facts().settle(),
        }
        self.board.publish();
    }

    async fn restart(&mut self, launch: Option<Launch>) -> Result<(), Failure> {
        self.stop().await;
        if let Some(launch) = launch {
            self.launch = launch;
        }
        {
            let mut facts = self.board.facts();
            facts.supervisor.forgive();
            facts.status.note = None;
        }
        self.begin().await
    }

    /// Ends the program and all processes of its session.
    async fn stop(&mut self) {
        if let Some(program) = &mut self.program {
            program.group.end().await;
            let status = program.group.leader_ends().await;
            self.clear_away(status).await;
        }
        let mut facts = self.board.facts();
        facts.supervisor.end();
        facts.settle();
        drop(facts);
        self.board.publish();
    }

    /// Marks the terminal as ended.
    fn over(&mut self) {
        self.board.facts().status.over = true;
        self.board.publish();
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.over();
    }
}

/// The last rows of a screen with visible text, as plain text.
fn last_rows(screen: &[String]) -> String {
    let rows = screen.iter().rev().filter_map(|row| output::plain(row, 200));
    let mut rows: Vec<String> = rows.take(LAST_ROWS).collect();
    rows.reverse();
    if rows.is_empty() { String::new() } else { format!("; last screen:\n{}", rows.join("\n")) }
}

async fn read(tty: Option<tty::Output<'_>>, chunk: &mut [u8]) -> io::Result<usize> {
    match tty {
        Some(mut tty) => tty.read(chunk).await,
        None => pending().await,
    }
}

async fn write(tty: Option<tty::Input<'_>>, bytes: &[u8]) -> io::Result<usize> {
    match tty {
        Some(mut tty) if !bytes.is_empty() => tty.write(&bytes[..bytes.len().min(PIECE)]).await,
        _ => pending().await,
    }
}

async fn leaves(group: Option<&mut Group>) -> ExitStatus {
    match group {
        Some(group) => group.leader_ends().await,
        None => pending().await,
    }
}
