//! The player: the process that follows a script.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;

use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;
use stafette_core::wire::frame;
use stafette_core::{AgentName, Fields, HandoffId, Kind, Offer, Party, Reason, Time, TurnOrder};

use super::commit::{Commit, commit};
use super::ledger::{Event, Ledger};
use super::script::{Blanks, Script, Step, inside};
use super::{Reply, Word};
use crate::HEARTBEAT;

/// The longest piece of a command's output in one message, in bytes.
const PIECE: u64 = 8 * 1024;

/// The message for a caller that sends no order.
const BY_HAND: &str = "a script is played by `stafette run`, not by hand";

/// Plays a script for the order on standard input, and returns the exit status.
///
/// Without an order there — when a script is used as a command that gets a prompt — the turn is
/// known from the environment, talk is plain text, and signals are bare frames.
pub fn play(script: &Path) -> ExitCode {
    if io::stdin().is_terminal() {
        return play_in_terminal(script);
    }
    let mut first = String::new();
    if let Err(error) = io::stdin().lock().read_line(&mut first) {
        return complain(&format!("cannot read the order: {error}"));
    }
    let (order, voice) = match serde_json::from_str::<TurnOrder>(&first) {
        Ok(order) => (order, Voice::Channel),
        Err(_) => match (order_from_environment(), prompt_read()) {
            (Some(order), Ok(())) => (order, Voice::frames()),
            _ => return complain(BY_HAND),
        },
    };
    follow(script, order, voice)
}

/// Plays a script in a terminal, like an interactive program: it asks for bracketed paste, and
/// begins with the Enter after the paste.
fn play_in_terminal(script: &Path) -> ExitCode {
    let Some(order) = order_from_environment() else {
        return complain(BY_HAND);
    };
    match pasted() {
        Ok(()) => follow(script, order, Voice::frames()),
        Err(error) => complain(&format!("cannot read the order: {error}")),
    }
}

/// Reads a pasted prompt.
fn pasted() -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(b"\x1b[?2004h")?;
    output.flush()?;
    for line in io::stdin().lock().lines() {
        if line?.contains("\x1b[201~") {
            output.write_all(b"\x1b[?2004l")?;
            return output.flush();
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

fn follow(script: &Path, order: TurnOrder, voice: Voice) -> ExitCode {
    let mut player = Player {
        heartbeat: voice.heartbeat(),
        blanks: Blanks::of(&order),
        ledger: Ledger::new(None, order.key),
        order,
        voice,
    };
    let end = player.turn(script).unwrap_or_else(|end| end);
    match end {
        End::Done => match player.take_leave() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error.to_string()),
        },
        End::Left(status) => ExitCode::from(status),
        End::Unheard => ExitCode::FAILURE,
        End::Failed { message, fatal } => match player.voice {
            Voice::Channel => {
                drop(player.voice.word(&Word::Fail { message, fatal }));
                ExitCode::FAILURE
            }
            Voice::Frames { .. } => complain(&message),
        },
    }
}

fn complain(message: &str) -> ExitCode {
    // If even this cannot be written, the exit status still says it.
    drop(writeln!(io::stderr(), "{message}"));
    ExitCode::FAILURE
}

/// Reads the rest of a prompt, so that its writer is not cut off.
fn prompt_read() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

/// The parts of an order that a command finds in its environment.
fn order_from_environment() -> Option<TurnOrder> {
    let variable = |name: &str| std::env::var(name).ok();
    let agent: AgentName = variable("STAFETTE_AGENT")?.parse().ok()?;
    let me = Party::from(&agent);
    Some(TurnOrder {
        key: variable("STAFETTE_KEY")?.parse().ok()?,
        agent,
        request: String::new(),
        offer: Offer::new(Party::Orchestrator, me, Kind::Transfer, Reason::Stage),
        constraints: stafette_core::handoff::Constraints::default(),
        trace_id: String::new(),
        cause: None::<HandoffId>,
        inputs: Fields::new(),
        replies: std::collections::BTreeSet::new(),
        answers: Vec::new(),
        permits: Vec::new(),
        messages: Vec::new(),
        routes: Vec::new(),
        round: variable("STAFETTE_ROUND")?.parse().ok()?,
        finish_by: Time(0),
        deliveries: variable("STAFETTE_DELIVERY")?.parse().ok()?,
    })
}

/// The way a player reports.
#[derive(Debug)]
enum Voice {
    /// JSON lines, to the runner of scripts.
    Channel,
    /// Plain text with frames, like any command.
    Frames { word: frame::Word },
}

impl Voice {
    fn frames() -> Self {
        let word = std::env::var("STAFETTE_FRAME_WORD").ok();
        let word = word.and_then(|word| word.parse().ok()).unwrap_or_default();
        Voice::Frames { word }
    }

    fn word(&self, word: &Word) -> io::Result<()> {
        let line = match (self, word) {
            (Voice::Channel, word) => serde_json::to_string(word)?,
            (Voice::Frames { .. }, Word::Say(text)) => text.clone(),
            (Voice::Frames { word }, Word::Emit { kind, payload }) => {
                let body = payload.as_str().map_or_else(|| payload.to_string(), str::to_owned);
                frame::Frame::new(kind, Some(body)).wire(word)
            }
            (Voice::Frames { .. }, _) => return Ok(()),
        };
        let mut output = io::stdout().lock();
        output.write_all(line.as_bytes())?;
        output.write_all(b"\n")?;
        output.flush()
    }

    /// Sends signs of life until the sender is dropped.
    fn heartbeat(&self) -> Option<Sender<()>> {
        let Voice::Channel = self else { return None };
        let (sender, dropped) = mpsc::channel::<()>();
        thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = dropped.recv_timeout(HEARTBEAT) {
                if Voice::Channel.word(&Word::Alive {}).is_err() {
                    return;
                }
            }
        });
        Some(sender)
    }
}

/// The end of a turn.
#[derive(Debug)]
enum End {
    Done,
    /// An exit with this status.
    Left(u8),
    /// The receiver is gone.
    Unheard,
    /// A failure with its reason.
    Failed {
        message: String,
        fatal: bool,
    },
}

impl End {
    fn broken(message: impl ToString) -> Self {
        End::Failed { message: message.to_string(), fatal: false }
    }

    fn hopeless(message: impl ToString) -> Self {
        End::Failed { message: message.to_string(), fatal: true }
    }
}

/// An agent in one turn.
#[derive(Debug)]
struct Player {
    order: TurnOrder,
    voice: Voice,
    heartbeat: Option<Sender<()>>,
    ledger: Ledger,
    blanks: Blanks,
}

impl Player {
    /// Takes the order, and every step of its turn.
    fn turn(&mut self, path: &Path) -> Result<End, End> {
        let script = Script::read(path).map_err(|error| End::hopeless(place(path, &error)))?;
        let ledger = script.ledger.as_ref().map(|ledger| beside(path, ledger));
        self.ledger = Ledger::new(ledger, self.order.key);
        self.note(Event::Started, None)?;
        self.speak(&Word::Accepted(self.order.key))?;
        let Some(turn) = script.turn_for(&self.order) else {
            let key = self.order.key;
            return Err(End::hopeless(format!(
                "{} has no turn for round {}, attempt {}, turn {}",
                path.display(),
                self.order.round,
                key.attempt,
                key.turn
            )));
        };
        for step in &turn.steps {
            self.step(step)?;
        }
        self.note(Event::Finished, None)?;
        Ok(End::Done)
    }

    fn step(&mut self, step: &Step) -> Result<(), End> {
        match step {
            Step::Say(text) => self.speak(&Word::Say(self.blanks.fill(text))),
            Step::Write { path, text } => self.write(path, text, false),
            Step::Append { path, text } => self.write(path, text, true),
            Step::Run { command, ok } => self.run(&self.blanks.fill_command(command), *ok),
            Step::Commit(message) => self.commit(message),
            Step::Wait(span) => {
                thread::sleep((*span).into());
                Ok(())
            }
            Step::Report { tokens, usd, note } => {
                let mut payload = json!({ "tokens": tokens, "usd": usd });
                if let Some(note) = note {
                    payload["note"] = self.blanks.fill(note).into();
                }
                self.speak(&Word::Emit { kind: "REPORT".into(), payload })
            }
            Step::Emit { kind, payload } => {
                let payload = self.blanks.fill_value(payload);
                self.speak(&Word::Emit { kind: kind.clone(), payload })
            }
            Step::Crash => {
                kill_process(getpid(), Signal::KILL).map_err(End::broken)?;
                self.hang()
            }
            Step::Exit(status) => Err(End::Left(*status)),
            Step::Hang => self.hang(),
        }
    }

    fn speak(&self, word: &Word) -> Result<(), End> {
        self.voice.word(word).map_err(|_| End::Unheard)
    }

    fn note(&self, event: Event, commit: Option<&str>) -> Result<(), End> {
        let noted = self.ledger.note(event, commit);
        noted.map_err(|error| End::broken(format!("cannot write the ledger: {error}")))
    }

    fn write(&self, path: &str, text: &str, add: bool) -> Result<(), End> {
        let path = self.blanks.fill(path);
        inside(&path).map_err(End::hopeless)?;
        no_links(Path::new(&path)).map_err(End::hopeless)?;
        let write = || {
            if let Some(folder) = Path::new(&path).parent() {
                fs::create_dir_all(folder)?;
            }
            let mut options = OpenOptions::new();
            options.create(true).append(add).truncate(!add).write(true);
            options.open(&path)?.write_all(self.blanks.fill(text).as_bytes())
        };
        write().map_err(|error: io::Error| End::broken(format!("cannot write {path}: {error}")))
    }

    fn run(&self, command: &str, must_succeed: bool) -> Result<(), End> {
        let failed = |error| End::broken(format!("`{command}` did not run: {error}"));
        let mut shell = Command::new("sh");
        // One stream for both, so that they stay in order.
        shell.arg("-c").arg(format!("exec 2>&1\n{command}"));
        shell.env("STAFETTE_REQUEST", self.order.request.replace('\0', ""));
        shell.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut running = shell.spawn().map_err(failed)?;
        if let Some(output) = running.stdout.take() {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.by_ref().take(PIECE).read_until(b'\n', &mut line).map_err(failed)? > 0 {
                let text = String::from_utf8_lossy(&line);
                self.speak(&Word::Say(text.trim_end_matches(['\n', '\r']).to_owned()))?;
                line.clear();
            }
        }
        let status = running.wait().map_err(failed)?;
        if must_succeed && !status.success() {
            return Err(End::broken(format!("`{command}` failed: {status}")));
        }
        Ok(())
    }

    fn commit(&mut self, message: &str) -> Result<(), End> {
        let message = self.blanks.fill(message);
        let done = commit(Path::new("."), &self.order.agent, self.order.key, &message);
        self.blanks.commit = match done.map_err(End::broken)? {
            Commit::Made(hash) => {
                self.note(Event::Committed, Some(&hash))?;
                hash
            }
            Commit::Found(hash) => hash,
        };
        Ok(())
    }

    /// Does nothing until it is ended, or until no process is left that could end it.
    fn hang(&mut self) -> Result<(), End> {
        self.heartbeat = None;
        drop(prompt_read());
        match self.voice {
            Voice::Channel => Err(End::Unheard),
            Voice::Frames { .. } => loop {
                thread::park();
            },
        }
    }

    /// Sends the result and waits for the acknowledgement.
    fn take_leave(&mut self) -> io::Result<()> {
        let Voice::Channel = self.voice else {
            return Ok(());
        };
        self.heartbeat = None;
        self.voice.word(&Word::Done {})?;
        for line in io::stdin().lock().lines() {
            if serde_json::from_str(&line?).is_ok_and(|Reply::Ack(key)| key == self.order.key) {
                return self.ledger.note(Event::Acknowledged, None);
            }
        }
        Ok(())
    }
}

/// A path relative to a file.
fn beside(file: &Path, path: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new(".")).join(path)
}

fn place(path: &Path, error: &super::ScriptError) -> String {
    match error {
        super::ScriptError::Unreadable { .. } => error.to_string(),
        super::ScriptError::Wrong { .. } => format!("{}: {error}", path.display()),
    }
}

/// Checks that no link is on the path to a file.
fn no_links(path: &Path) -> Result<(), String> {
    let leads = |part: &&Path| fs::symlink_metadata(part).is_ok_and(|part| part.is_symlink());
    let mut parts = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    match parts.find(leads) {
        Some(link) => Err(format!("{} leads out of the agent's folder", link.display())),
        None => Ok(()),
    }
}
