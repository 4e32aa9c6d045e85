//! Talks to the daemon: HTTP on its socket.

mod live;

use std::path::{Path, PathBuf};

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

use crate::exit::{Exit, Failure};
pub(crate) use live::{Live, Piece};

/// A connection to the daemon of one project.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    socket: PathBuf,
}

impl Client {
    pub(crate) fn new(socket: &Path) -> Self {
        Client { socket: socket.to_owned() }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        parse(self.request(Method::GET, path, None).await?).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).expect("our own types are JSON");
        parse(self.request(Method::POST, path, Some(body)).await?).await
    }

    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        parse(self.request(Method::DELETE, path, None).await?).await
    }

    /// Returns a response that is not JSON, as text.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Failure> {
        let response = self.request(Method::GET, path, None).await?;
        if !response.status().is_success() {
            return Err(parse::<Value>(response).await.err().unwrap_or_else(gone));
        }
        let body = response.into_body().collect().await.map_err(|error| gone().because(&error))?;
        Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
    }

    /// True if a daemon answers.
    pub(crate) async fn is_up(&self) -> bool {
        self.get::<Value>("/healthz").await.is_ok()
    }

    /// Returns the lines of a stream, as they arrive.
    pub(crate) async fn lines(&self, path: &str) -> Result<Lines, Failure> {
        let response = self.request(Method::GET, path, None).await?;
        if !response.status().is_success() {
            return Err(parse::<Value>(response).await.err().unwrap_or_else(gone));
        }
        Ok(Lines { body: response.into_body(), held: Vec::new() })
    }

    /// Opens a stream of bytes in both directions, on which the daemon speaks `protocol`. The
    /// `token` of the session that this process belongs to is sent along, if there is one.
    pub(crate) async fn stream(
        &self,
        path: &str,
        protocol: &str,
        token: Option<&str>,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + use<>, Failure> {
        let stream = self.connect().await?;
        let broken = |error: hyper::Error| gone().because(&error);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::post(path)
            .header(HOST, "localhost")
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, protocol);
        if let Some(token) = token {
            request = request.header("stafette-token", token);
        }
        let request = request
            .body(Full::new(Bytes::new()))
            .map_err(|error| Failure::usage("The daemon cannot be asked that").because(&error))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(parse::<Value>(response).await.err().unwrap_or_else(gone));
        }
        Ok(TokioIo::new(hyper::upgrade::on(response).await.map_err(broken)?))
    }

    async fn connect(&self) -> Result<UnixStream, Failure> {
        UnixStream::connect(&self.socket).await.map_err(|error| {
            Failure::new(Exit::NoDaemon, "No daemon answers")
                .because(&error)
                .fix("start it with `stafette up`; its log is .stafette/daemon.log")
        })
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Response<Incoming>, Failure> {
        let stream = self.connect().await?;
        let broken = |error: hyper::Error| gone().because(&error);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/json");
        // A caller that works within a trace has set this variable.
        let within = std::env::var("TRACEPARENT").ok();
        if let Some(within) = within.and_then(|text| text.parse::<Traceparent>().ok()) {
            request = request.header("traceparent", within.to_string());
        }
        let request = request
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|error| Failure::usage("The daemon cannot be asked that").because(&error))?;
        sender.send_request(request).await.map_err(broken)
    }
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
    let odd = |error: serde_json::Error| {
        Failure::failed("The daemon's answer cannot be read")
            .because(&error)
            .fix("`stafette down` and `stafette up` make both the same version")
    };
    if status.is_success() {
        return serde_json::from_slice(&bytes).map_err(odd);
    }
    Err(refusal(serde_json::from_slice(&bytes).map_err(odd)?))
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
    let failure = Failure::new(code, problem.title).why(problem.detail);
    if problem.fix.is_empty() { failure } else { failure.fix(problem.fix) }
}

/// A stream of JSON lines.
#[derive(Debug)]
pub(crate) struct Lines {
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
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(gone().because(&error)),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.held.extend_from_slice(data);
                    }
                }
            }
        }
    }
}
