//! A remote agent: its card, and the JSON-RPC calls to it.

use std::time::Duration;

use a2a_types::{AgentCard, JsonRpcId, JsonRpcRequest, JsonRpcResponse, StreamResponse};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stafette_http::{Address, HttpError, HttpRequest, HttpResponse};
use thiserror::Error;

use crate::output;

/// The path of a card on its server.
const CARD: &str = "/.well-known/agent-card.json";

/// The largest card, answer or event that is read, in bytes.
const LARGEST: usize = 8 * 1024 * 1024;

/// The time limit for an answer.
const WITHIN: Duration = Duration::from_secs(60);

/// The header that names the protocol version in use.
const VERSION: (&str, &str) = (a2a_types::SVC_PARAM_VERSION, a2a_types::VERSION);

/// The reason why a request to a remote agent failed.
#[derive(Debug, Error)]
pub(super) enum RemoteError {
    /// The remote agent could not be reached.
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("it does not know the task any more")]
    NoTask,
    #[error("it answers: {message} ({code})")]
    Refused { code: i32, message: String },
    #[error("it does not let us in (HTTP {status}): {hint}")]
    Closed { status: u16, hint: String },
    #[error("what it answers cannot be understood: {why}")]
    Odd { why: String },
    /// The remote agent cannot be used.
    #[error("{why}")]
    Unfit { why: String },
}

impl RemoteError {
    /// True if another attempt may succeed.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            RemoteError::Http(error) => error.may_pass(),
            RemoteError::NoTask | RemoteError::Odd { .. } => true,
            // Internal errors pass; an error in our request stays.
            RemoteError::Refused { code, .. } => *code == a2a_types::error_code::INTERNAL_ERROR,
            RemoteError::Closed { status, .. } => *status >= 500 || *status == 429,
            RemoteError::Unfit { .. } => false,
        }
    }

    /// True if the remote agent may be back shortly.
    pub(super) fn is_away(&self) -> bool {
        match self {
            RemoteError::Http(error) => error.may_pass(),
            RemoteError::Closed { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}

/// A remote agent with the settings for calls to it.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    rpc: Address,
    authorization: Option<String>,
    /// The trace context of the turn, sent as a header; `None` when it is not sent.
    traceparent: Option<String>,
    pub(super) streams: bool,
}

impl Remote {
    /// Reads the card of the agent at `url`.
    pub(super) async fn find(url: &str, bearer: Option<&str>) -> Result<Remote, RemoteError> {
        let base = Address::parse(url)?;
        let place = match base.path().ends_with(".json") {
            true => base.clone(),
            false => base.below(CARD),
        };
        let authorization = match bearer {
            Some(name) => match std::env::var(name) {
                Ok(token) => Some(format!("Bearer {token}")),
                Err(_) => {
                    let why = format!("the environment variable {name} with its token is not set");
                    return Err(RemoteError::Unfit { why });
                }
            },
            None => None,
        };
        let card: AgentCard =
            document(ask(HttpRequest::get(&place), authorization.as_deref()).await?).await?;
        let speaks = |binding: &str, version: &str| {
            binding.eq_ignore_ascii_case("JSONRPC") && version.split('.').next() == Some("1")
        };
        let spoken = card.supported_interfaces.iter();
        let mut spoken = spoken.filter(|way| speaks(&way.protocol_binding, &way.protocol_version));
        let Some(way) = spoken.next() else {
            let why = format!("the agent at {place} does not speak A2A 1 over JSON-RPC");
            return Err(RemoteError::Unfit { why });
        };
        // A card must not redirect our messages and our token elsewhere.
        let named = Address::parse(&way.url)?;
        if !named.is_beside(&base) {
            let why = format!("the card at {place} leads to {named}; name that server as `url`");
            return Err(RemoteError::Unfit { why });
        }
        let streams = card.capabilities.streaming.unwrap_or_default();
        Ok(Remote { rpc: named.on(&base), authorization, traceparent: None, streams })
    }

    /// The same agent for a turn, so that the remote work becomes part of the turn's trace.
    pub(super) fn within(self, traceparent: Option<String>) -> Remote {
        Remote { traceparent, ..self }
    }

    /// Makes a call and waits for the answer.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, RemoteError> {
        let answer: JsonRpcResponse = document(self.post(method, params).await?).await?;
        result(answer)
    }

    /// Makes a call that is answered with a stream of events.
    pub(super) async fn stream(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Events, RemoteError> {
        let answer = self.post(method, params).await?;
        if answer.is_stream() && answer.status == 200 {
            return Ok(Events { answer, held: Vec::new(), data: Vec::new() });
        }
        // The remote agent refuses immediately.
        let answer: JsonRpcResponse = document(answer).await?;
        let value: Value = result(answer)?;
        Err(RemoteError::Odd { why: format!("not a stream but {}", short(&value.to_string())) })
    }

    async fn post(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<HttpResponse, RemoteError> {
        let odd = |error: serde_json::Error| RemoteError::Odd { why: error.to_string() };
        let params = serde_json::to_value(params).map_err(odd)?;
        let request = JsonRpcRequest::new(JsonRpcId::Number(1), method, Some(params));
        let body = serde_json::to_vec(&request).map_err(odd)?;
        let mut asked = HttpRequest::post(&self.rpc, "application/json", body);
        if let Some(traceparent) = &self.traceparent {
            asked = asked.header("traceparent", traceparent);
        }
        Ok(ask(asked, self.authorization.as_deref()).await?)
    }
}

/// Sends a request in this protocol version. Redirects are not followed.
async fn ask(asked: HttpRequest, authorization: Option<&str>) -> Result<HttpResponse, HttpError> {
    let (name, version) = VERSION;
    let asked = asked.header("accept", "application/json, text/event-stream");
    asked.header(name, version).authorization(authorization).within(WITHIN).send().await
}

/// The stream of events of a remote agent.
#[derive(Debug)]
pub(super) struct Events {
    answer: HttpResponse,
    /// The bytes of an incomplete line.
    held: Vec<u8>,
    /// The lines of an incomplete event.
    data: Vec<u8>,
}

impl Events {
    /// Returns the next event; `None` at the end. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<Option<StreamResponse>, RemoteError> {
        loop {
            while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                let line = line.trim_ascii_end();
                if let Some(data) = line.strip_prefix(b"data:") {
                    self.data.extend_from_slice(data.trim_ascii_start());
                    self.data.push(b'\n');
                } else if line.is_empty() && !self.data.is_empty() {
                    let data = std::mem::take(&mut self.data);
                    let odd =
                        |error: serde_json::Error| RemoteError::Odd { why: error.to_string() };
                    let answer: JsonRpcResponse = serde_json::from_slice(&data).map_err(odd)?;
                    return result(answer).map(Some);
                }
            }
            if self.held.len() + self.data.len() > LARGEST {
                return Err(RemoteError::Odd { why: "an event without an end".into() });
            }
            match self.answer.chunk().await? {
                Some(chunk) => self.held.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

fn result<T: DeserializeOwned>(answer: JsonRpcResponse) -> Result<T, RemoteError> {
    if let Some(error) = answer.error {
        return Err(match error.code {
            a2a_types::error_code::TASK_NOT_FOUND => RemoteError::NoTask,
            code => RemoteError::Refused { code, message: short(&error.message) },
        });
    }
    let value = answer.result.unwrap_or_default();
    serde_json::from_value(value).map_err(|error| RemoteError::Odd { why: error.to_string() })
}

async fn document<T: DeserializeOwned>(mut answer: HttpResponse) -> Result<T, RemoteError> {
    let status = answer.status;
    let bytes = answer.whole(LARGEST, WITHIN).await?;
    if let Ok(value) = serde_json::from_slice(&bytes) {
        return Ok(value);
    }
    let text = short(&String::from_utf8_lossy(&bytes));
    Err(match status {
        200 => RemoteError::Odd { why: text },
        401 | 403 => {
            let hint = "give it `bearer`, the name of the variable with its token".to_owned();
            RemoteError::Closed { status, hint }
        }
        300..=399 => RemoteError::Unfit { why: "it sends us elsewhere; name that address".into() },
        404 => RemoteError::Unfit { why: "there is no A2A agent at this address".into() },
        _ => RemoteError::Closed { status, hint: text },
    })
}

fn short(text: &str) -> String {
    output::plain(text, 500).unwrap_or_default()
}
