//! The pipes of an agent, with the limits that the protocol's crate does not keep.
//!
//! - A line has a limit.
//! - Only a limited amount may be on its way to the crate: after that, a mark of our own is sent
//!   behind it, and nothing is read before the mark came through.
//! - Only a limited number of requests of the agent may be open.
//! - A line that is not a message is dropped, and kept as a possible reason for a failure.

use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::{
    Agent, Channel, ConnectionTo, Dispatch, Error, HandleDispatchFrom, Handled, RawJsonRpcMessage,
    TransportFrame,
};
use futures_util::StreamExt;
use serde_json::json;
use stafette_core::{Failure, FailureKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};

use crate::exec::CHUNK;
use crate::output::{Lines, Tail, plain};
use crate::process::Pipes;

/// The longest message of an agent, in bytes.
const MESSAGE: usize = 8 * 1024 * 1024;

/// The number of bytes that may be on their way before a mark is awaited.
const ON_THE_WAY: usize = 256 * 1024;

/// The maximum number of open requests of an agent.
const REQUESTS: usize = 64;

/// The maximum number of invalid lines from an agent that has not sent a single message.
const RUBBISH: u64 = 256;

/// The size of standard error that is kept, in bytes.
const ERRORS: usize = 64 * 1024;

/// The method of the marks.
const MARK: &str = "_stafette/mark";

/// The crate's end of the pipes.
#[derive(Debug)]
pub(in crate::acp) struct Line {
    pub(super) channel: Channel,
    pub(super) marks: Marks,
}

/// Counts the marks that come through.
#[derive(Debug)]
pub(in crate::acp) struct Marks(watch::Sender<u64>);

impl HandleDispatchFrom<Agent> for Marks {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        _: ConnectionTo<Agent>,
    ) -> Result<Handled<Dispatch>, Error> {
        match message {
            Dispatch::Notification(notification) if notification.method == MARK => {
                self.0.send_replace(notification.params["at"].as_u64().unwrap_or_default());
                Ok(Handled::Yes)
            }
            message => Ok(Handled::No { message, retry: false }),
        }
    }

    fn describe_chain(&self) -> impl std::fmt::Debug {
        "marks"
    }
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

/// Our end of the pipes.
#[derive(Debug)]
pub(in crate::acp) struct Pump {
    channel: Channel,
    state: State,
    seen: watch::Receiver<u64>,
    mark: u64,
    on_the_way: usize,
    requests: usize,
    messages: u64,
    rubbish: u64,
}

/// Makes a line and the pump behind it.
pub(in crate::acp) fn lay(state: State) -> (Line, Pump) {
    let (ours, theirs) = Channel::duplex();
    let (seeing, seen) = watch::channel(0);
    let pump = Pump {
        channel: ours,
        state,
        seen,
        mark: 0,
        on_the_way: 0,
        requests: 0,
        messages: 0,
        rubbish: 0,
    };
    (Line { channel: theirs, marks: Marks(seeing) }, pump)
}

impl Pump {
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
        loop {
            let passed = *self.seen.borrow_and_update() == self.mark;
            if output_ended && passed {
                return;
            }
            tokio::select! {
                frame = self.channel.rx.next(), if writing.is_empty() && input.is_some() => {
                    match frame.as_ref().map(|frame| (frame, frame.to_json())) {
                        Some((frame, Ok(text))) => {
                            task_in = self.leaves(frame);
                            writing = text.into_bytes();
                            writing.push(b'\n');
                            written = 0;
                        }
                        // Neither side has anything left to send.
                        Some((_, Err(_))) | None => input = None,
                    }
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
                read = output.read(&mut output_chunk), if passed && !output_ended => {
                    let count = read.unwrap_or_default();
                    output_ended = count == 0 || !self.arrives(&output_chunk[..count], &mut lines);
                    if output_ended || self.on_the_way >= ON_THE_WAY {
                        self.send_mark();
                    }
                }
                read = errors.read(&mut errors_chunk), if !errors_ended => match read {
                    Ok(count @ 1..) => {
                        self.state.with(|inner| inner.errors.push(&errors_chunk[..count]));
                    }
                    Ok(0) | Err(_) => errors_ended = true,
                },
                changed = self.seen.changed(), if !passed => if changed.is_err() {
                    return;
                },
            }
        }
    }

    /// Inspects a message on its way to the agent. Returns true if it is the task.
    fn leaves(&mut self, frame: &TransportFrame) -> bool {
        match frame {
            TransportFrame::Single(RawJsonRpcMessage::Response(_)) => {
                self.requests = self.requests.saturating_sub(1);
                false
            }
            TransportFrame::Single(RawJsonRpcMessage::Request(request)) => {
                &*request.method == "session/prompt"
            }
            _ => false,
        }
    }

    /// Takes the agent's output. Returns true if it may continue.
    fn arrives(&mut self, bytes: &[u8], lines: &mut Lines) -> bool {
        let mut whole = Vec::new();
        lines.push(bytes, |line| whole.push(TransportFrame::parse_json(&text(line))));
        // Bytes of an overlong line count as well, so that a mark is not put off.
        self.on_the_way += bytes.len();
        for frame in whole {
            let message = match frame {
                TransportFrame::Single(message) => message,
                TransportFrame::Malformed { raw, .. } => {
                    self.wonder(&raw);
                    continue;
                }
                _ => continue,
            };
            match &message {
                RawJsonRpcMessage::Request(_) => self.requests += 1,
                // Only our own marks count.
                RawJsonRpcMessage::Notification(note) if &*note.method == MARK => continue,
                RawJsonRpcMessage::Notification(_) | RawJsonRpcMessage::Response(_) => {}
            }
            self.messages += 1;
            drop(self.channel.tx.unbounded_send(TransportFrame::Single(message)));
        }
        let cut = self.too_much(lines);
        let goes_on = cut.is_none();
        self.state.with(|inner| inner.cut = inner.cut.take().or(cut));
        goes_on
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

    fn send_mark(&mut self) {
        self.on_the_way = 0;
        let params = json!({ "at": self.mark + 1 });
        if let Ok(mark) = RawJsonRpcMessage::notification(MARK.to_owned(), params) {
            self.mark += 1;
            drop(self.channel.tx.unbounded_send(TransportFrame::Single(mark)));
        }
    }
}

fn text(line: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(line)
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
