//! Talks to the daemon: HTTP on its socket.

mod live;

use std::convert::Infallible;
use std::future::pending;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stafette_core::trace::Traceparent;
use stafette_server::Problem;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::exit::{Exit, Failure};
use crate::output;
pub(crate) use live::{Live, Piece};

/// The header with the token of an agent's turn.
const TURN_TOKEN: &str = "stafette-token";

/// The time that a daemon has for its shortest answer before its caller is told that it waits.
const SOON: Duration = Duration::from_millis(1500);

/// The time limit for that answer. A daemon that lives gives it whatever else it does.
const LIMIT: Duration = Duration::from_secs(20);

/// The first and the longest quiet time after which a daemon is asked whether it lives.
const QUIET: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// True once the user knows that this process waits.
static TOLD: AtomicBool = AtomicBool::new(false);

/// A connection to the daemon of one project.
///
/// Some answers take long, and some streams are quiet for hours. While one waits, the daemon is
/// asked now and then whether it lives, so that no wait is longer than its life.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    socket: PathBuf,
    /// The token of the agent's turn that this process belongs to.
    token: Option<String>,
    limit: Duration,
    /// True if the terminal shows something else than lines.
    muted: bool,
}

impl Client {
    pub(crate) fn new(socket: &Path) -> Self {
        Client { socket: socket.to_owned(), token: None, limit: LIMIT, muted: false }
    }

    /// The same for a process of an agent's turn.
    pub(crate) fn of_turn(self, token: String) -> Self {
        Client { token: Some(token), ..self }
    }

    /// The same with another time limit for a daemon that does not answer.
    pub(crate) fn waiting(self, limit: Duration) -> Self {
        Client { limit, ..self }
    }

    /// The same for a screen on which no message may appear.
    pub(crate) fn muted(self) -> Self {
        Client { muted: true, ..self }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).expect("our own types are JSON");
        self.ask(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::DELETE, path, None).await
    }

    /// Returns a response that is not JSON, as text.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Failure> {
        self.patiently(async {
            let body = self.open(path).await?;
            let body = body.collect().await.map_err(|error| gone().because(&error))?;
            Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
        })
        .await
    }

    /// Returns the lines of a stream, as they arrive.
    pub(crate) async fn lines(&self, path: &str) -> Result<Lines, Failure> {
        let body = self.patiently(self.open(path)).await?;
        Ok(Lines { client: self.clone(), body, held: Vec::new() })
    }

    /// True if a daemon answers, false if there is none. One that is there and does not answer is a
    /// failure.
    pub(crate) async fn is_up(&self) -> Result<bool, Failure> {
        let Ok(stream) = self.connect().await else { return Ok(false) };
        let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let pid = peer.filter(|pid| *pid > 0).map_or("?".to_owned(), |pid| pid.to_string());
        let mut answered = pin!(async {
            let response = send(stream, None, Method::GET, "/healthz", None).await?;
            parse::<Value>(response).await
        });
        if let Ok(answer) = timeout(SOON, &mut answered).await {
            return Ok(answer.is_ok());
        }
        if !self.muted && !TOLD.swap(true, Ordering::Relaxed) {
            let _ = writeln!(std::io::stderr().lock(), "waiting for the daemon (pid {pid})…");
        }
        match timeout(self.limit, answered).await {
            Ok(answer) => Ok(answer.is_ok()),
            Err(_) => Err(silent(&pid)),
        }
    }

    /// Returns once the daemon is there and does not answer any more.
    pub(crate) async fn silence(&self) -> Failure {
        match self.patiently(pending::<Result<Infallible, Failure>>()).await {
            Err(failure) => failure,
            Ok(never) => match never {},
        }
    }

    /// Waits for something of the daemon, for as long as it lives.
    pub(crate) async fn patiently<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        let (mut quiet, longest) = QUIET;
        loop {
            if let Ok(done) = timeout(quiet, &mut work).await {
                return done;
            }
            tokio::select! {
                biased;
                done = &mut work => return done,
                // One that has gone away closes the connection, which ends the wait.
                up = self.is_up() => { up?; }
            }
            quiet = (quiet * 2).min(longest);
        }
    }

    /// Opens a stream of bytes in both directions, on which the daemon speaks `protocol`.
    pub(crate) async fn stream(
        &self,
        path: &str,
        protocol: &str,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + use<>, Failure> {
        let stream = self.connect().await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::post(path)
            .header(HOST, "localhost")
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, protocol);
        if let Some(token) = &self.token {
            request = request.header(TURN_TOKEN, token);
        }
        let request = request.body(Full::new(Bytes::new())).map_err(|error| unsendable(&error))?;
        self.patiently(async {
            let response = sender.send_request(request).await.map_err(broken)?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                return Err(parse::<Value>(response).await.err().unwrap_or_else(gone));
            }
            Ok(TokioIo::new(hyper::upgrade::on(response).await.map_err(broken)?))
        })
        .await
    }

    async fn connect(&self) -> Result<UnixStream, Failure> {
        UnixStream::connect(&self.socket).await.map_err(|error| {
            Failure::new(Exit::NoDaemon, "No daemon answers")
                .because(&error)
                .fix("start it with `stafette up`; `stafette state` says where its log is")
        })
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, Failure> {
        self.patiently(async { parse(self.request(method, path, body).await?).await }).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Response<Incoming>, Failure> {
        let (asked, since) = (format!("{method} {path}"), Instant::now());
        let stream = self.connect().await?;
        let response = send(stream, self.token.as_deref(), method, path, body).await?;
        if !self.muted {
            let (status, time) = (response.status(), since.elapsed().as_millis());
            output::detail(|| format!("{asked}: {status}, {time} ms"));
        }
        Ok(response)
    }

    /// Returns the body of a successful response, as it arrives.
    async fn open(&self, path: &str) -> Result<Incoming, Failure> {
        let response = self.request(Method::GET, path, None).await?;
        match response.status().is_success() {
            true => Ok(response.into_body()),
            false => Err(parse::<Value>(response).await.err().unwrap_or_else(gone)),
        }
    }
}

async fn send(
    stream: UnixStream,
    token: Option<&str>,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<Response<Incoming>, Failure> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "localhost")
        .header(CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(TURN_TOKEN, token);
    }
    // A caller that works within a trace has set this variable.
    let within = std::env::var("TRACEPARENT").ok();
    if let Some(within) = within.and_then(|text| text.parse::<Traceparent>().ok()) {
        request = request.header("traceparent", within.to_string());
    }
    let request = request
        .body(Full::new(Bytes::from(body.unwrap_or_default())))
        .map_err(|error| unsendable(&error))?;
    sender.send_request(request).await.map_err(broken)
}

fn unsendable(error: &hyper::http::Error) -> Failure {
    Failure::usage("Cannot send this request to the daemon")
        .because(error)
        .fix("check the names and ids that you typed for unusual characters")
}

fn broken(error: hyper::Error) -> Failure {
    gone().because(&error)
}

/// The failure for a daemon that is there and does not answer.
fn silent(pid: &str) -> Failure {
    Failure::new(Exit::NoDaemon, format!("The daemon (pid {pid}) does not answer"))
        .why("it is stopped or stuck; what was asked of it may still be done when it continues")
        .fix(format!(
            "continue it with `kill -CONT {pid}`, or end it with `kill -KILL {pid}` and start \
             another with `stafette up`: nothing that it acknowledged is lost"
        ))
}

/// The failure for a daemon that ended during the conversation.
pub(crate) fn gone() -> Failure {
    Failure::new(Exit::NoDaemon, "The daemon went away")
        .fix("start it again with `stafette up`; nothing that it acknowledged is lost")
}

async fn parse<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, Failure> {
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| gone().because(&error))?;
    let bytes = body.to_bytes();
    let odd = |error: serde_json::Error| unreadable(&error);
    if status.is_success() {
        return serde_json::from_slice(&bytes).map_err(odd);
    }
    Err(refusal(serde_json::from_slice(&bytes).map_err(odd)?))
}

/// The failure for an answer that this version does not understand.
pub(crate) fn unreadable(error: &dyn std::error::Error) -> Failure {
    Failure::failed("Cannot read the daemon's answer")
        .because(error)
        .fix("run `stafette down`, then `stafette up`: the daemon may be of another version")
}

/// Turns a problem of the daemon into a failure for people.
fn refusal(problem: Problem) -> Failure {
    let code = if problem.status == 422 || problem.code.starts_with("usage_") {
        Exit::Usage
    } else if problem.code == "stopping" {
        Exit::NoDaemon
    } else if problem.code == "needs_person" {
        Exit::NeedsPerson
    } else if problem.code.starts_with("lock") || problem.code == "deadlock" {
        Exit::Lock
    } else {
        Exit::Failed
    };
    // A detail that says no more than what to do is not the reason.
    let why = if problem.detail == problem.fix { String::new() } else { problem.detail };
    Failure::new(code, problem.title).why(why).fix(problem.fix)
}

/// A stream of JSON lines.
#[derive(Debug)]
pub(crate) struct Lines {
    client: Client,
    body: Incoming,
    held: Vec<u8>,
}

impl Lines {
    /// Returns the next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                if let Ok(value) = serde_json::from_slice(&line) {
                    return Ok(Some(value));
                }
                continue;
            }
            let frame = async { self.body.frame().await.transpose().map_err(broken) };
            let Some(frame) = self.client.patiently(frame).await? else { return Ok(None) };
            if let Some(data) = frame.data_ref() {
                self.held.extend_from_slice(data);
            }
        }
    }
}
