//! The protocol itself: the only place that knows the types of the crate that describes it.
//!
//! Only version 1 is supported. The limits are kept by the [`line`].

pub(super) mod line;
mod message;
mod translate;

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    CancelNotification, ClientCapabilities, ContentBlock, CreateTerminalRequest,
    CreateTerminalResponse, EnvVariable, Error, ErrorCode, FileSystemCapabilities, Implementation,
    InitializeRequest, InitializeResponse, KillTerminalRequest, KillTerminalResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, McpServerStdio, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, ReadTextFileRequest, ReadTextFileResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, RequestPermissionOutcome,
    RequestPermissionResponse, ResumeSessionRequest, ResumeSessionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, StopReason, TerminalExitStatus,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stafette_core::{FailureKind, Usage};
use tokio::sync::{mpsc, oneshot};

use super::commands::{Exit, Shown};
use crate::permission::Deed;
use crate::profile;
use line::{AcpAnswer, Outgoing, Pump, State, TASK};

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

/// The way back for the answer to a request of the agent. Dropped, it responds with an error.
struct Reply {
    id: Option<Value>,
    to: mpsc::UnboundedSender<Outgoing>,
}

impl Reply {
    fn new(id: Value, to: mpsc::UnboundedSender<Outgoing>) -> Self {
        Reply { id: Some(id), to }
    }

    fn give(mut self, result: AcpAnswer) {
        self.send(result);
    }

    fn send(&mut self, result: AcpAnswer) {
        if let Some(id) = self.id.take() {
            drop(self.to.send(Outgoing::Response { id, result }));
        }
    }

    /// Makes a responder of it, whose values are put into a response.
    fn with<T: 'static, R: Serialize>(
        self,
        wrap: impl FnOnce(T) -> R + Send + 'static,
    ) -> Responder<T> {
        Responder(Box::new(move |given: Result<T, String>| {
            self.give(match given {
                Ok(value) => serde_json::to_value(wrap(value)).map_err(Error::into_internal_error),
                Err(why) => Err(Error::invalid_params().data(why)),
            });
        }))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.send(Err(Error::internal_error()));
    }
}

/// The reason why a request to the agent failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AcpError {
    pub(super) kind: FailureKind,
    pub(super) message: String,
    pub(super) gone: bool,
}

/// What came in place of an answer.
enum Refusal {
    /// The agent has left.
    Gone,
    Error(Error),
}

impl AcpError {
    fn new(doing: &str, refusal: &Refusal) -> Self {
        let Refusal::Error(error) = refusal else {
            let message = format!("{doing}: it left");
            return AcpError { kind: FailureKind::Recoverable, message, gone: true };
        };
        let data = match &error.data {
            Some(Value::String(text)) => format!(": {text}"),
            Some(value) => format!(": {value}"),
            None => String::new(),
        };
        if error.code == ErrorCode::AuthRequired {
            let message = format!("it wants a login first ({}{data})", error.message);
            return AcpError { kind: FailureKind::Fatal, message, gone: false };
        }
        let message = format!("{doing}: {}{data}", error.message);
        AcpError { kind: FailureKind::Recoverable, message, gone: false }
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
    to: mpsc::UnboundedSender<Outgoing>,
    servers: Vec<McpServer>,
}

/// Makes the peer behind an agent's pipes, and the pump that moves its messages. What the agent
/// sends unasked goes to `events`.
pub(super) fn lay(state: State, events: mpsc::Sender<Event>) -> (Peer, Pump) {
    let (to, pump) = Pump::new(state, events);
    (Peer { to, servers: Vec::new() }, pump)
}

impl Peer {
    async fn request<A: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<A, Refusal> {
        let params = serde_json::to_value(params);
        let params = params.map_err(|error| Refusal::Error(Error::into_internal_error(error)))?;
        let (answer, answered) = oneshot::channel();
        drop(self.to.send(Outgoing::Request { method, params, answer }));
        let value = answered.await.map_err(|_| Refusal::Gone)?.map_err(Refusal::Error)?;
        // Some leave out a result that has nothing in it.
        let value = if value.is_null() { json!({}) } else { value };
        serde_json::from_value(value).map_err(|error| {
            let why = format!("its answer is not one of the protocol: {error}");
            Refusal::Error(Error::internal_error().data(why))
        })
    }

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
        let told = self.request("initialize", &request).await;
        let told: InitializeResponse = told.map_err(|refusal| {
            let trouble = AcpError::new("it does not say hello", &refusal);
            // By no other answer to a hello an agent says that it is not for this protocol.
            match refusal {
                Refusal::Error(Error {
                    code: ErrorCode::InvalidRequest | ErrorCode::InvalidParams,
                    ..
                }) => other_version(trouble.message),
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
            self.request::<ResumeSessionResponse>("session/resume", &request).await.is_ok()
        } else if hello.loads {
            let request =
                LoadSessionRequest::new(session, folder).mcp_servers(self.servers.clone());
            self.request::<LoadSessionResponse>("session/load", &request).await.is_ok()
        } else {
            false
        }
    }

    /// Opens a new session.
    pub(super) async fn open(&self, folder: &Path) -> Result<String, AcpError> {
        let request = NewSessionRequest::new(folder).mcp_servers(self.servers.clone());
        match self.request::<NewSessionResponse>("session/new", &request).await {
            Ok(opened) => Ok(opened.session_id.to_string()),
            Err(refusal) => Err(AcpError::new("it opens no session", &refusal)),
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
        let done = self.request::<PromptResponse>(TASK, &request).await;
        let done = done.map_err(|refusal| AcpError::new("the turn broke", &refusal))?;
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
        let params = json!(CancelNotification::new(session));
        drop(self.to.send(Outgoing::Notification { method: "session/cancel", params }));
    }
}

/// Translates a notification of the agent; `None` when it means nothing to us.
fn told(method: &str, params: Value) -> Option<Event> {
    match method {
        "session/update" => {
            let told: SessionNotification = serde_json::from_value(params).ok()?;
            translate::update(told.update)
        }
        _ => None,
    }
}

/// Translates a request of the agent. What cannot be read is answered here.
fn asked(method: &str, params: Value, reply: Reply) -> Option<Event> {
    Some(match method {
        "session/request_permission" => {
            let (asked, reply) = read(params, reply)?;
            let answer = reply.with(|decision| {
                RequestPermissionResponse::new(match decision {
                    PermissionDecision::Chosen(id) => {
                        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id))
                    }
                    PermissionDecision::Dropped => RequestPermissionOutcome::Cancelled,
                })
            });
            translate::ask(asked, answer)
        }
        "fs/read_text_file" => {
            let (asked, reply) = read::<ReadTextFileRequest>(params, reply)?;
            let ReadTextFileRequest { path, line, limit, .. } = asked;
            let answer = reply.with(|text: String| ReadTextFileResponse::new(text));
            Event::Read { path, line, limit, answer }
        }
        "fs/write_text_file" => {
            let (asked, reply) = read::<WriteTextFileRequest>(params, reply)?;
            let answer = reply.with(|()| WriteTextFileResponse::new());
            Event::Write { path: asked.path, text: asked.content, answer }
        }
        "terminal/create" => {
            let (asked, reply) = read::<CreateTerminalRequest>(params, reply)?;
            let run = Run {
                command: asked.command,
                arguments: asked.args,
                variables: asked.env.into_iter().map(|v| (v.name, v.value)).collect(),
                folder: asked.cwd,
                limit: asked.output_byte_limit,
            };
            Event::Run(run, reply.with(|id: String| CreateTerminalResponse::new(id)))
        }
        "terminal/output" => {
            let (asked, reply) = read::<TerminalOutputRequest>(params, reply)?;
            let answer = reply.with(|shown: Shown| {
                TerminalOutputResponse::new(shown.text, shown.truncated)
                    .exit_status(shown.exit.map(exit_status))
            });
            Event::Show(asked.terminal_id.to_string(), answer)
        }
        "terminal/wait_for_exit" => {
            let (asked, reply) = read::<WaitForTerminalExitRequest>(params, reply)?;
            let answer = reply.with(|exit| WaitForTerminalExitResponse::new(exit_status(exit)));
            Event::Wait(asked.terminal_id.to_string(), answer)
        }
        "terminal/kill" => {
            let (asked, reply) = read::<KillTerminalRequest>(params, reply)?;
            let answer = reply.with(|()| KillTerminalResponse::new());
            Event::Kill(asked.terminal_id.to_string(), answer)
        }
        "terminal/release" => {
            let (asked, reply) = read::<ReleaseTerminalRequest>(params, reply)?;
            let answer = reply.with(|()| ReleaseTerminalResponse::new());
            Event::Release(asked.terminal_id.to_string(), answer)
        }
        _ => {
            reply.give(Err(Error::method_not_found()));
            return None;
        }
    })
}

/// Reads the parameters of a request, or answers that they cannot be read.
fn read<Q: DeserializeOwned>(params: Value, reply: Reply) -> Option<(Q, Reply)> {
    match serde_json::from_value(params) {
        Ok(asked) => Some((asked, reply)),
        Err(error) => {
            reply.give(Err(Error::invalid_params().data(error.to_string())));
            None
        }
    }
}

fn exit_status(exit: Exit) -> TerminalExitStatus {
    TerminalExitStatus::new().exit_code(exit.code).signal(exit.signal.map(|n| n.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_02_every_request_is_answered_once() {
        let (to, mut sent) = mpsc::unbounded_channel();
        let mut answer = |act: &dyn Fn(Reply)| {
            act(Reply::new(json!("a"), to.clone()));
            let Ok(Outgoing::Response { id, result }) = sent.try_recv() else {
                panic!("no answer")
            };
            assert_eq!(id, "a");
            assert!(sent.try_recv().is_err(), "a second answer");
            result.map_err(|error| error.code)
        };
        let ask = |method: &'static str, params: Value| {
            move |reply| drop(asked(method, params.clone(), reply))
        };
        let release = json!({"sessionId": "s", "terminalId": "t"});
        assert_eq!(answer(&ask("fs/dance", json!({}))), Err(ErrorCode::MethodNotFound));
        assert_eq!(answer(&ask("terminal/release", json!(1))), Err(ErrorCode::InvalidParams));
        let dropped = ask("terminal/release", release.clone());
        assert_eq!(answer(&dropped), Err(ErrorCode::InternalError), "nobody answered");
        let given = |reply| match asked("terminal/release", release.clone(), reply) {
            Some(Event::Release(_, answer)) => answer.give(Ok(())),
            event => panic!("{event:?}"),
        };
        assert_eq!(answer(&given), Ok(json!({})));
    }
}
