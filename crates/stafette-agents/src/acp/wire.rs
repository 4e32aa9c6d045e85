//! The protocol itself: the only place that knows the types of the crate that implements it.
//!
//! Only version 1 is supported. The crate queues without a limit, so the limits are kept by the
//! [`line`] in front of it.

pub(super) mod line;
mod translate;

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, CreateTerminalRequest,
    CreateTerminalResponse, EnvVariable, FileSystemCapabilities, Implementation, InitializeRequest,
    KillTerminalRequest, KillTerminalResponse, LoadSessionRequest, McpServer, McpServerStdio,
    NewSessionRequest, PromptRequest, ReadTextFileRequest, ReadTextFileResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest,
    SelectedPermissionOutcome, SessionId, SessionNotification, StopReason, TerminalExitStatus,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use agent_client_protocol::{
    Agent, Client, Error, ErrorCode, Responder as SdkResponder, V1, is_connection_terminated,
    is_incoming_transport_closed, on_receive_notification, on_receive_request,
};
use stafette_core::{FailureKind, Usage};
use tokio::sync::mpsc;

use super::commands::{Exit, Shown};
use crate::permission::Deed;
use crate::profile;
use line::Line;

/// The number of events that may wait to be read before the agent is slowed down.
pub(super) const EVENTS: usize = 64;

/// The time limit for an agent to initialise. Some are fetched from a registry first.
pub(super) const HELLO: Duration = Duration::from_secs(120);

/// The time limit for an agent to open a session, or to load one with all of its history.
pub(super) const OPENING: Duration = Duration::from_secs(120);

/// An update or a request of an agent.
#[derive(Debug)]
pub(super) enum Event {
    Text {
        message: Option<String>,
        text: String,
    },
    /// A tool call, a plan or a notice.
    Note(Option<String>),
    /// The cost of the whole session so far.
    Cost(Usage),
    /// The agent asks for permission.
    Ask {
        title: String,
        detail: String,
        deed: Deed,
        choices: Vec<Choice>,
        answer: Responder<PermissionDecision>,
    },
    /// The agent reads a file.
    Read {
        path: PathBuf,
        line: Option<u32>,
        limit: Option<u32>,
        answer: Responder<String>,
    },
    /// The agent writes a file.
    Write {
        path: PathBuf,
        text: String,
        answer: Responder<()>,
    },
    /// The agent runs a command.
    Run(Run, Responder<String>),
    /// The agent asks for the output of a command.
    Show(String, Responder<Shown>),
    /// The agent waits for the end of a command.
    Wait(String, Responder<Exit>),
    /// The agent ends a command.
    Kill(String, Responder<()>),
    /// The agent no longer needs a command.
    Release(String, Responder<()>),
}

/// A command that an agent wants to run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Run {
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) folder: Option<PathBuf>,
    pub(super) limit: Option<u64>,
}

/// A possible answer to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    /// The id that the agent uses.
    pub(super) id: String,
    /// The name that people see.
    pub(super) name: String,
    /// True if it allows the action.
    pub(super) yes: bool,
    /// True if it holds for later questions too.
    pub(super) always: bool,
}

/// The decision on a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PermissionDecision {
    Chosen(String),
    /// No choice: the turn has ended, or there is no choice that denies.
    Dropped,
}

/// Sends the response to a request. Dropping it responds with an error.
pub(super) struct Responder<T>(Box<dyn FnOnce(Result<T, String>) + Send>);

impl<T> Responder<T> {
    /// Sends the response; an error says why. Ignored if the peer is gone.
    pub(super) fn give(self, answer: Result<T, String>) {
        (self.0)(answer);
    }
}

impl<T> std::fmt::Debug for Responder<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Responder")
    }
}

fn answer<T, R>(responder: SdkResponder<R, V1>, wrap: fn(T) -> R) -> Responder<T>
where
    R: agent_client_protocol::JsonRpcResponse + 'static,
    T: 'static,
{
    Responder(Box::new(move |given| {
        let sent = match given {
            Ok(value) => responder.respond(wrap(value)),
            Err(why) => responder.respond_with_error(Error::invalid_params().data(why)),
        };
        drop(sent);
    }))
}

/// The reason why a request to the agent failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AcpError {
    pub(super) kind: FailureKind,
    pub(super) message: String,
    pub(super) gone: bool,
}

impl AcpError {
    fn new(doing: &str, error: &Error) -> Self {
        let data = match &error.data {
            Some(serde_json::Value::String(text)) => format!(": {text}"),
            Some(value) => format!(": {value}"),
            None => String::new(),
        };
        let gone = is_incoming_transport_closed(error) || is_connection_terminated(error);
        if error.code == ErrorCode::AUTH_REQUIRED {
            let message = format!("it wants a login first ({}{data})", error.message);
            return AcpError { kind: FailureKind::Fatal, message, gone };
        }
        let message = format!("{doing}: {}{data}", error.message);
        AcpError { kind: FailureKind::Recoverable, message, gone }
    }
}

/// The error for another protocol version, which no further attempt would change.
fn other_version(said: String) -> AcpError {
    let message = format!("it speaks another version of the protocol than 1: {said}");
    AcpError { kind: FailureKind::Fatal, message, gone: false }
}

/// The abilities of an agent regarding earlier sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    resumes: bool,
    loads: bool,
}

/// The reason why a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Done,
    OutOfTokens,
    OutOfRequests,
    Refused,
    Cancelled,
}

/// The agent on the other side.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    to: ConnectionTo<Agent>,
    servers: Vec<McpServer>,
}

impl Peer {
    /// The same agent, whose sessions are given an MCP server with its environment.
    pub(super) fn told_of(
        self,
        server: Option<profile::McpServer>,
        env: &[(String, String)],
    ) -> Self {
        let told = |server: profile::McpServer| {
            let seen = env.iter().map(|(name, value)| EnvVariable::new(name, value)).collect();
            let stdio = McpServerStdio::new("stafette", server.command);
            McpServer::Stdio(stdio.args(server.arguments).env(seen))
        };
        Peer { servers: server.map(told).into_iter().collect(), ..self }
    }

    /// Initialises the protocol and returns the agent's abilities. With `files`, it may leave files
    /// to us.
    pub(super) async fn hello(&self, files: bool) -> Result<Hello, AcpError> {
        let files = FileSystemCapabilities::new().read_text_file(files).write_text_file(files);
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new().fs(files).terminal(true))
            .client_info(Implementation::new("stafette", env!("CARGO_PKG_VERSION")));
        let told = self.to.send_request(request).block_task().await.map_err(|error| {
            let trouble = AcpError::new("it does not say hello", &error);
            // By no other answer to a hello an agent says that it is not for this protocol.
            match error.code {
                ErrorCode::INVALID_REQUEST | ErrorCode::INVALID_PARAMS => {
                    other_version(trouble.message)
                }
                _ => trouble,
            }
        })?;
        if told.protocol_version != ProtocolVersion::V1 {
            return Err(other_version(told.protocol_version.to_string()));
        }
        let can = told.agent_capabilities;
        Ok(Hello { resumes: can.session_capabilities.resume.is_some(), loads: can.load_session })
    }

    /// Opens an earlier session. Returns true if that worked.
    pub(super) async fn reopen(&self, hello: Hello, session: &str, folder: &Path) -> bool {
        let session = SessionId::from(session.to_owned());
        if hello.resumes {
            let request =
                ResumeSessionRequest::new(session, folder).mcp_servers(self.servers.clone());
            self.to.send_request(request).block_task().await.is_ok()
        } else if hello.loads {
            let request =
                LoadSessionRequest::new(session, folder).mcp_servers(self.servers.clone());
            self.to.send_request(request).block_task().await.is_ok()
        } else {
            false
        }
    }

    /// Opens a new session.
    pub(super) async fn open(&self, folder: &Path) -> Result<String, AcpError> {
        let request = NewSessionRequest::new(folder).mcp_servers(self.servers.clone());
        let opened = self.to.send_request(request).block_task().await;
        match opened {
            Ok(opened) => Ok(opened.session_id.to_string()),
            Err(error) => Err(AcpError::new("it opens no session", &error)),
        }
    }

    /// Sends the agent its task and waits for the end of the turn. Returns the tokens that the
    /// session has used by then, if it reports them.
    pub(super) async fn prompt(
        &self,
        session: &str,
        text: String,
    ) -> Result<(End, Option<u64>), AcpError> {
        let session = SessionId::from(session.to_owned());
        let request = PromptRequest::new(session, vec![ContentBlock::from(text)]);
        let done = self.to.send_request(request).block_task().await;
        let done = done.map_err(|error| AcpError::new("the turn broke", &error))?;
        let end = match done.stop_reason {
            StopReason::EndTurn => End::Done,
            StopReason::MaxTokens => End::OutOfTokens,
            StopReason::MaxTurnRequests => End::OutOfRequests,
            StopReason::Refusal => End::Refused,
            StopReason::Cancelled => End::Cancelled,
            // The crate may know more some day; it is pinned.
            _ => End::Cancelled,
        };
        // Tokens from a cache do not count.
        let tokens = done.usage.map(|usage| {
            usage.total_tokens.saturating_sub(usage.cached_read_tokens.unwrap_or_default())
        });
        Ok((end, tokens))
    }

    /// Asks the agent to cancel its turn.
    pub(super) fn cancel(&self, session: &str) {
        let session = SessionId::from(session.to_owned());
        drop(self.to.send_notification(CancelNotification::new(session)));
    }
}

/// Talks to an agent over a line for as long as `talk` takes. Updates and requests of the agent go
/// to `events`. `None` when the protocol itself broke; `talk` was dropped then.
pub(super) async fn speak<R>(
    line: Line,
    events: mpsc::Sender<Event>,
    talk: impl AsyncFnOnce(Peer) -> R,
) -> Option<R> {
    let to = || events.clone();
    let (updates, asks, reads, writes) = (to(), to(), to(), to());
    let (runs, shows, waits, kills, releases) = (to(), to(), to(), to(), to());
    let talking = Client
        .v1()
        .with_handler(line.marks)
        .on_receive_notification(
            async move |told: SessionNotification, _| match translate::update(told.update) {
                Some(event) => pass(&updates, event).await,
                None => Ok(()),
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |asked: RequestPermissionRequest, responder, _| {
                let answer = answer(responder, |verdict| {
                    RequestPermissionResponse::new(match verdict {
                        PermissionDecision::Chosen(id) => {
                            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id))
                        }
                        PermissionDecision::Dropped => RequestPermissionOutcome::Cancelled,
                    })
                });
                pass(&asks, translate::ask(asked, answer)).await
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: ReadTextFileRequest, responder, _| {
                let answer = answer(responder, ReadTextFileResponse::new);
                let ReadTextFileRequest { path, line, limit, .. } = asked;
                pass(&reads, Event::Read { path, line, limit, answer }).await
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: WriteTextFileRequest, responder, _| {
                let answer = answer(responder, |()| WriteTextFileResponse::new());
                let event = Event::Write { path: asked.path, text: asked.content, answer };
                pass(&writes, event).await
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: CreateTerminalRequest, responder, _| {
                let run = Run {
                    command: asked.command,
                    arguments: asked.args,
                    variables: asked.env.into_iter().map(|v| (v.name, v.value)).collect(),
                    folder: asked.cwd,
                    limit: asked.output_byte_limit,
                };
                let answer = answer(responder, |id: String| CreateTerminalResponse::new(id));
                pass(&runs, Event::Run(run, answer)).await
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: TerminalOutputRequest, responder, _| {
                let answer = answer(responder, |shown: Shown| {
                    TerminalOutputResponse::new(shown.text, shown.truncated)
                        .exit_status(shown.exit.map(exit_status))
                });
                pass(&shows, Event::Show(asked.terminal_id.to_string(), answer)).await
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: WaitForTerminalExitRequest, responder, _| {
                let answer =
                    answer(responder, |exit| WaitForTerminalExitResponse::new(exit_status(exit)));
                pass(&waits, Event::Wait(asked.terminal_id.to_string(), answer)).await
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: KillTerminalRequest, responder, _| {
                let answer = answer(responder, |()| KillTerminalResponse::new());
                pass(&kills, Event::Kill(asked.terminal_id.to_string(), answer)).await
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: ReleaseTerminalRequest, responder, _| {
                let answer = answer(responder, |()| ReleaseTerminalResponse::new());
                pass(&releases, Event::Release(asked.terminal_id.to_string(), answer)).await
            },
            on_receive_request!(),
        )
        .connect_with(line.channel, async |to| Ok(talk(Peer { to, servers: Vec::new() }).await));
    talking.await.ok()
}

/// Passes an event on; this slows down an agent that is faster than its reader.
async fn pass(events: &mpsc::Sender<Event>, event: Event) -> Result<(), Error> {
    events.send(event).await.map_err(|_| Error::request_cancelled())
}

fn exit_status(exit: Exit) -> TerminalExitStatus {
    TerminalExitStatus::new().exit_code(exit.code).signal(exit.signal.map(|n| n.to_string()))
}
