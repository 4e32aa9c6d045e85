//! The pipes of an agent, and the messages in them.
//!
//! - A line has a limit, and nothing more is read before all messages of a piece are handled: an
//!   agent that is faster than its reader is slowed down.
//! - What is written does not wait for what is read.
//! - Only a limited number of requests of the agent may be open.
//! - A line that is not a message is dropped, and kept as a possible reason for a failure.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::Error;
use serde_json::Value;
use stafette_core::{Failure, FailureKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use super::message::Message;
use super::{Event, Reply};
use crate::exec::CHUNK;
use crate::output::{Lines, Tail, plain};
use crate::process::Pipes;

/// The longest message of an agent, in bytes.
const MESSAGE: usize = 8 * 1024 * 1024;

/// The maximum number of open requests of an agent.
const REQUESTS: usize = 64;

/// The maximum number of invalid lines from an agent that has not sent a single message.
const RUBBISH: u64 = 256;

/// The size of standard error that is kept, in bytes.
const ERRORS: usize = 64 * 1024;

/// The method of the task.
pub(super) const TASK: &str = "session/prompt";

/// What a request of ours gets: a value, or the agent's error.
pub(super) type AcpAnswer = Result<Value, Error>;

/// Something that is to be written to the agent.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// A request; its answer is sent on. When the agent leaves, that is dropped.
    Request {
        method: &'static str,
        params: Value,
        answer: oneshot::Sender<AcpAnswer>,
    },
    Notification {
        method: &'static str,
        params: Value,
    },
    Response {
        id: Value,
        result: AcpAnswer,
    },
}

/// The state of the pipes, as seen from outside.
#[derive(Clone, Debug, Default)]
pub(in crate::acp) struct State {
    /// Signalled when the task has been written to the agent.
    pub(in crate::acp) delivered: Arc<Notify>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    errors: Tail,
    /// The last line that was not a message.
    rubbish: Option<String>,
    /// The reason why the line was cut.
    cut: Option<Failure>,
}

impl Default for Inner {
    fn default() -> Self {
        Inner { errors: Tail::new(ERRORS), rubbish: None, cut: None }
    }
}

impl State {
    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        f(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The reason why the line was cut; `None` when the agent left.
    pub(in crate::acp) fn cut(&self) -> Option<Failure> {
        self.with(|inner| inner.cut.clone())
    }

    /// Other output of the agent: its standard error, or lines in place of messages.
    pub(in crate::acp) fn aside(&self) -> Option<String> {
        self.with(|inner| inner.errors.note().or_else(|| inner.rubbish.clone()))
    }
}

/// Moves messages between an agent and whoever talks to it.
#[derive(Debug)]
pub(in crate::acp) struct Pump {
    state: State,
    events: mpsc::Sender<Event>,
    /// Also held for the replies to the agent's requests.
    sender: mpsc::UnboundedSender<Outgoing>,
    outgoing: mpsc::UnboundedReceiver<Outgoing>,
    /// Messages that are not handled yet.
    arrived: VecDeque<Message>,
    /// Those who wait for an answer of the agent, by the id of the request.
    asked: HashMap<u64, oneshot::Sender<AcpAnswer>>,
    ids: u64,
    requests: usize,
    messages: u64,
    rubbish: u64,
}

impl Pump {
    pub(super) fn new(
        state: State,
        events: mpsc::Sender<Event>,
    ) -> (mpsc::UnboundedSender<Outgoing>, Self) {
        let (sender, outgoing) = mpsc::unbounded_channel();
        let pump = Pump {
            state,
            events,
            sender: sender.clone(),
            outgoing,
            arrived: VecDeque::new(),
            asked: HashMap::new(),
            ids: 0,
            requests: 0,
            messages: 0,
            rubbish: 0,
        };
        (sender, pump)
    }

    /// Moves messages until the agent closes its output or breaks a limit. When this returns, all
    /// of its messages are handled.
    pub(in crate::acp) async fn run(mut self, pipes: Pipes) {
        let Pipes { input, mut output, mut errors } = pipes;
        let mut input = Some(input);
        let (mut output_chunk, mut errors_chunk) = (vec![0; CHUNK], vec![0; CHUNK]);
        let mut lines = Lines::new(MESSAGE);
        let (mut writing, mut written) = (Vec::new(), 0);
        let mut task_in = false;
        let (mut output_ended, mut errors_ended) = (false, false);
        let events = self.events.clone();
        loop {
            if output_ended && self.arrived.is_empty() {
                // A program says there why it leaves, before it does.
                let read = timeout(Duration::ZERO, errors.read(&mut errors_chunk)).await;
                if let Ok(Ok(count)) = read {
                    self.state.with(|inner| inner.errors.push(&errors_chunk[..count]));
                }
                return;
            }
            tokio::select! {
                Some(message) = self.outgoing.recv(), if writing.is_empty() && input.is_some() => {
                    task_in = matches!(&message, Outgoing::Request { method: TASK, .. });
                    (writing, written) = (self.leaves(message).to_line(), 0);
                }
                done = write(input.as_mut(), &writing[written..]), if !writing.is_empty() => {
                    match done {
                        Ok(count) => written += count,
                        // The agent has closed its input; it may still send messages.
                        Err(_) => (input, written) = (None, writing.len()),
                    }
                    if written == writing.len() {
                        (writing, written) = (Vec::new(), 0);
                        if task_in {
                            self.state.delivered.notify_one();
                        }
                    }
                }
                place = events.reserve(), if !self.arrived.is_empty() => {
                    // Nobody listens any more when there is no place.
                    let Ok(place) = place else { return };
                    if let Some(event) = self.handle() {
                        place.send(event);
                    }
                }
                read = output.read(&mut output_chunk), if self.arrived.is_empty() && !output_ended => {
                    let count = read.unwrap_or_default();
                    output_ended = count == 0 || !self.arrives(&output_chunk[..count], &mut lines);
                }
                read = errors.read(&mut errors_chunk), if !errors_ended => match read {
                    Ok(count @ 1..) => {
                        self.state.with(|inner| inner.errors.push(&errors_chunk[..count]));
                    }
                    Ok(0) | Err(_) => errors_ended = true,
                },
            }
        }
    }

    /// Notes what is going to the agent.
    fn leaves(&mut self, message: Outgoing) -> Message {
        match message {
            Outgoing::Request { method, params, answer } => {
                self.ids += 1;
                self.asked.insert(self.ids, answer);
                Message::Request { id: self.ids.into(), method: method.to_owned(), params }
            }
            Outgoing::Notification { method, params } => {
                Message::Notification { method: method.to_owned(), params }
            }
            Outgoing::Response { id, result } => {
                self.requests = self.requests.saturating_sub(1);
                Message::Response { id, result }
            }
        }
    }

    /// Takes the agent's output. Returns true if it may continue.
    fn arrives(&mut self, bytes: &[u8], lines: &mut Lines) -> bool {
        lines.push(bytes, |line| {
            let line = String::from_utf8_lossy(line);
            match Message::read(&line) {
                Some(message) => {
                    self.messages += 1;
                    self.requests += usize::from(matches!(message, Message::Request { .. }));
                    self.arrived.push_back(message);
                }
                None => self.wonder(&line),
            }
        });
        let cut = self.too_much(lines);
        let goes_on = cut.is_none();
        self.state.with(|inner| inner.cut = inner.cut.take().or(cut));
        goes_on
    }

    /// Handles the next message. Returns what the turn has to know of it.
    fn handle(&mut self) -> Option<Event> {
        match self.arrived.pop_front()? {
            Message::Request { id, method, params } => {
                super::asked(&method, params, Reply::new(id, self.sender.clone()))
            }
            Message::Notification { method, params } => super::told(&method, params),
            Message::Response { id, result } => {
                if let Some(answer) = id.as_u64().and_then(|id| self.asked.remove(&id)) {
                    drop(answer.send(result));
                }
                None
            }
        }
    }

    /// The limit that the agent has broken.
    fn too_much(&self, lines: &Lines) -> Option<Failure> {
        let (kind, message) = if lines.dropped() {
            let message = format!("it wrote a line of more than {} MiB", MESSAGE >> 20);
            (FailureKind::Recoverable, message)
        } else if self.requests > REQUESTS {
            let message = format!("it has more than {REQUESTS} requests open at once");
            (FailureKind::Recoverable, message)
        } else if self.messages == 0 && self.rubbish >= RUBBISH {
            let said = self.state.with(|inner| inner.rubbish.clone()).unwrap_or_default();
            let message = format!("it does not speak the Agent Client Protocol: {said}");
            (FailureKind::Fatal, message)
        } else {
            return None;
        };
        Some(Failure::new(kind, message))
    }

    /// Keeps a line that is not a message: wrappers and loggers write such lines.
    fn wonder(&mut self, raw: &str) {
        if let Some(line) = plain(raw, 200) {
            self.rubbish += 1;
            self.state.with(|inner| inner.rubbish = Some(line));
        }
    }
}

async fn write(
    input: Option<&mut tokio::process::ChildStdin>,
    bytes: &[u8],
) -> std::io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => Err(std::io::ErrorKind::BrokenPipe.into()),
    }
}
