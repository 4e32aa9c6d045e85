//! A remote agent: its card, and what can be asked of it over JSON-RPC.

use std::time::Duration;

use a2a_types::{AgentCard, JsonRpcId, JsonRpcRequest, JsonRpcResponse, StreamResponse};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stafette_http::{Address, HttpError, HttpRequest, HttpResponse};
use thiserror::Error;

use crate::output;

/// Where a card is found.
const CARD: &str = "/.well-known/agent-card.json";

/// The largest card, answer and event that is read.
const LARGEST: usize = 8 * 1024 * 1024;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(60);

/// The version that is spoken here.
const VERSION: (&str, &str) = (a2a_types::SVC_PARAM_VERSION, a2a_types::VERSION);

/// Why a remote agent did not do what was asked of it.
#[derive(Debug, Error)]
pub(super) enum RemoteError {
    /// It could not be reached.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// It does not know the task.
    #[error("it does not know the task any more")]
    NoTask,
    /// It says no.
    #[error("it answers: {message} ({code})")]
    Refused {
        /// Its code for that.
        code: i32,
        /// In its words.
        message: String,
    },
    /// It is not let in.
    #[error("it does not let us in (HTTP {status}): {hint}")]
    Closed {
        /// The status.
        status: u16,
        /// What to do.
        hint: String,
    },
    /// What it answers cannot be understood.
    #[error("what it answers cannot be understood: {why}")]
    Odd {
        /// Why.
        why: String,
    },
    /// It cannot be worked with.
    #[error("{why}")]
    Unfit {
        /// Why.
        why: String,
    },
}

impl RemoteError {
    /// Whether another try can go better.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            RemoteError::Http(error) => error.may_pass(),
            RemoteError::NoTask | RemoteError::Odd { .. } => true,
            // Internal errors pass; what is wrong with our request stays wrong.
            RemoteError::Refused { code, .. } => *code == a2a_types::error_code::INTERNAL_ERROR,
            RemoteError::Closed { status, .. } => *status >= 500 || *status == 429,
            RemoteError::Unfit { .. } => false,
        }
    }

    /// Whether the other side may be back in a moment.
    pub(super) fn is_away(&self) -> bool {
        match self {
            RemoteError::Http(error) => error.may_pass(),
            RemoteError::Closed { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}

/// A remote agent.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    rpc: Address,
    authorization: Option<String>,
    /// The turn in its trace, when that is sent.
    traceparent: Option<String>,
    /// Whether it tells by itself what happens.
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
        // A card must not lead our words and our token elsewhere.
        let named = Address::parse(&way.url)?;
        if !named.is_beside(&base) {
            let why = format!("the card at {place} leads to {named}; name that server as `url`");
            return Err(RemoteError::Unfit { why });
        }
        let streams = card.capabilities.streaming.unwrap_or_default();
        Ok(Remote { rpc: named.on(&base), authorization, traceparent: None, streams })
    }

    /// The same for a turn, so that what the other side does becomes a part of its trace.
    pub(super) fn within(self, traceparent: Option<String>) -> Remote {
        Remote { traceparent, ..self }
    }

    /// Asks for something and waits for the answer.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, RemoteError> {
        let answer: JsonRpcResponse = document(self.post(method, params).await?).await?;
        result(answer)
    }

    /// Asks for a stream of events.
    pub(super) async fn stream(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Events, RemoteError> {
        let answer = self.post(method, params).await?;
        if answer.is_stream() && answer.status == 200 {
            return Ok(Events { answer, held: Vec::new(), data: Vec::new() });
        }
        // It says at once that it will not.
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

/// Asks in the version that is spoken here. Wherever else it leads, nobody goes there.
async fn ask(asked: HttpRequest, authorization: Option<&str>) -> Result<HttpResponse, HttpError> {
    let (name, version) = VERSION;
    let asked = asked.header("accept", "application/json, text/event-stream");
    asked.header(name, version).authorization(authorization).within(WITHIN).send().await
}

/// What a remote agent tells by itself.
#[derive(Debug)]
pub(super) struct Events {
    answer: HttpResponse,
    /// Bytes of a line that is not whole yet.
    held: Vec<u8>,
    /// The lines of an event that is not whole yet.
    data: Vec<u8>,
}

impl Events {
    /// The next event; nothing at the end. May be dropped and called again.
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
