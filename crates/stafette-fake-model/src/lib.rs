//! A model server on loopback that answers by a script, in the dialects of the agents' vendors.
//!
//! Invariants: it listens on loopback only. It answers only by its script, and records every request.
//! An agent that runs in circles comes to an end.

mod ask;
mod completions;
mod generation;
mod journal;
mod messages;
mod responses;
mod script;
mod toolbox;
mod wire;

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub use ask::{Ask, Dialect};
pub use journal::{Exchange, Outcome};
pub use script::{Reply, Rule, Script, Usage};

use journal::Journal;
use wire::HttpAnswer;

/// The most requests that are answered and recorded; later ones are refused.
const REQUESTS: usize = 500;

/// The largest request body, in bytes.
const BODY: usize = 16 * 1024 * 1024;

/// The longest time that a stalled answer stays open.
const STALL: Duration = Duration::from_secs(300);

/// Headers that contain keys.
const KEYS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "cookie"];

/// Headers in which agents name their conversation.
const SESSIONS: [&str; 2] = ["x-claude-code-session-id", "session-id"];

/// A model server. It listens until it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    mind: Arc<Mind>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the server.
#[derive(Debug, Default)]
struct Mind {
    journal: Journal,
    count: AtomicUsize,
    memory: Mutex<Memory>,
}

/// The state that the server keeps between two requests.
#[derive(Debug, Default)]
struct Memory {
    script: Script,
    /// The rule that has begun to answer a prompt of a conversation.
    begun: HashMap<(Option<String>, String), usize>,
}

impl ModelServer {
    /// Starts a server on a free port of loopback.
    ///
    /// # Errors
    ///
    /// If no port or thread is available.
    pub fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mind = Arc::new(Mind {
            memory: Mutex::new(Memory { script, ..Memory::default() }),
            ..Mind::default()
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let router = Router::new().fallback(handle).with_state(mind.clone());
        let thread = std::thread::Builder::new().name("model".into()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    _ = axum::serve(listener, router) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(ModelServer { address, mind, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address without a path: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far, in order.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.mind.journal.all()
    }

    /// Waits until the requests are as `wanted`; returns false if the time is up.
    #[must_use]
    pub fn wait(&self, limit: Duration, wanted: impl Fn(&[Exchange]) -> bool) -> bool {
        self.mind.journal.wait(limit, wanted)
    }

    /// Returns the number of turns that began with a prompt containing this text.
    #[must_use]
    pub fn turns(&self, prompt: &str) -> usize {
        turns(&self.exchanges(), prompt)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A broken server has already failed its requests.
            let _ = thread.join();
        }
    }
}

/// Counts the turns among these that began with a prompt containing this text.
#[must_use]
pub fn turns(exchanges: &[Exchange], prompt: &str) -> usize {
    let begins = |ask: &&Ask| ask.step == 0 && !ask.aside && ask.prompt.contains(prompt);
    exchanges.iter().filter_map(|exchange| exchange.ask.as_ref()).filter(begins).count()
}

async fn handle(State(mind): State<Arc<Mind>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, BODY).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    // A request to lead on to another server names that instead of a path.
    let path = match parts.uri.authority() {
        Some(server) if parts.method == Method::CONNECT => server.as_str(),
        _ => parts.uri.path(),
    };
    let session =
        SESSIONS.iter().find_map(|name| Some(parts.headers.get(*name)?.to_str().ok()?.to_owned()));
    let ask = match (&parts.method, path) {
        (&Method::POST, "/v1/messages") => Some(messages::ask(&body, session)),
        (&Method::POST, "/v1/responses") => Some(responses::ask(&body, session)),
        (&Method::POST, "/v1/chat/completions") => Some(completions::ask(&body)),
        (&Method::POST, path) => generation_target(path).map(|at| generation::ask(&body, at)),
        _ => None,
    };
    let number = mind.count.fetch_add(1, Ordering::Relaxed);
    if number >= REQUESTS {
        return send(refuse(ask.as_ref(), "This conversation runs in circles."), Duration::ZERO);
    }
    let (outcome, answer, pause) = match &ask {
        Some(_) if number + 1 == REQUESTS => {
            let answer = refuse(ask.as_ref(), "This conversation runs in circles.");
            (Outcome::Runaway, answer, Duration::ZERO)
        }
        Some(ask) => mind.answer(ask, number, &body),
        None => {
            let (outcome, answer) = service(&parts.method, path, bytes.len());
            (outcome, answer, Duration::ZERO)
        }
    };
    mind.journal.add(Exchange {
        method: parts.method.to_string(),
        path: path.to_owned(),
        headers: readable(&parts.headers),
        body,
        ask,
        outcome,
    });
    send(answer, pause)
}

impl Mind {
    fn answer(&self, ask: &Ask, number: usize, body: &Value) -> (Outcome, HttpAnswer, Duration) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if ask.aside || memory.script.is_aside(ask) {
            return (Outcome::Aside, say(ask, &Reply::text("Work"), number), Duration::ZERO);
        }
        let reply = memory
            .choose(ask)
            .and_then(|rule| Some((rule, memory.script.rules.get(rule)?.reply(ask)?.clone())));
        match reply {
            Some((rule, reply)) => {
                let reply = reply.with_tools(ask).in_folder(|| printed_folder(body));
                (Outcome::Rule(rule), say(ask, &reply, number), reply.pause)
            }
            None => {
                let answer = refuse(Some(ask), "The script has no rule for this prompt.");
                (Outcome::Silent, answer, Duration::ZERO)
            }
        }
    }
}

impl Memory {
    /// Returns the rule that answers: the one that began the turn, or else the first that matches.
    fn choose(&mut self, ask: &Ask) -> Option<usize> {
        let turn = (ask.session.clone(), ask.prompt.clone());
        if ask.step > 0
            && let Some(rule) = self.begun.get(&turn)
        {
            return Some(*rule);
        }
        let fresh = |rule: &Rule| rule.left != Some(0) && rule.fits(ask);
        let place = self.script.rules.iter().position(fresh)?;
        let left = &mut self.script.rules[place].left;
        *left = left.map(|left| left - 1);
        self.begun.insert(turn, place);
        Some(place)
    }
}

/// Returns the folder that a command of the agent printed last as `FOLDER=PATH`. If none did, it is the
/// first working tree that the agent speaks of.
fn printed_folder(body: &Value) -> String {
    let text = body.to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let path = |rest: &str| rest.chars().take_while(|c| is_plain(*c)).collect::<String>();
    // The command itself is in the request as well.
    let mut printed = text.rsplit("FOLDER=").map(path).filter(|path| path.starts_with('/'));
    let mut spoken = text
        .split(|c| !is_plain(c))
        .filter(|path| path.starts_with('/') && Path::new(path).join(".git").exists())
        .map(|path| path.trim_end_matches('/').to_owned());
    printed.next().or_else(|| spoken.next()).unwrap_or_else(|| ".".to_owned())
}

/// Returns `NAME:METHOD` of a path that asks a model of the Gemini API for an answer.
fn generation_target(path: &str) -> Option<&str> {
    let target = path.strip_prefix("/v1beta/models/")?;
    let answers = [":generateContent", ":streamGenerateContent"];
    answers.iter().any(|method| target.ends_with(method)).then_some(target)
}

fn say(ask: &Ask, reply: &Reply, number: usize) -> HttpAnswer {
    match ask.dialect {
        Dialect::Messages => messages::answer(ask, reply, number),
        Dialect::Responses => responses::answer(ask, reply, number),
        Dialect::Completions => completions::answer(ask, reply, number),
        Dialect::Generation => generation::answer(ask, reply),
    }
}

/// Refuses in a way that no agent retries.
fn refuse(ask: Option<&Ask>, message: &str) -> HttpAnswer {
    let kind = "invalid_request_error";
    match ask.map(|ask| ask.dialect) {
        Some(Dialect::Messages) => messages::failure(400, kind, message),
        Some(Dialect::Responses) => responses::failure(400, kind, message),
        Some(Dialect::Generation) => generation::failure(400, "INVALID_ARGUMENT", message),
        Some(Dialect::Completions) | None => completions::failure(400, kind, message),
    }
}

/// Handles requests other than prompts.
fn service(method: &Method, path: &str, length: usize) -> (Outcome, HttpAnswer) {
    let answer = match (method, path) {
        (&Method::POST, "/v1/messages/count_tokens") => json!({ "input_tokens": length / 4 }),
        (&Method::POST, path) if path.ends_with(":countTokens") => {
            json!({ "totalTokens": length / 4 })
        }
        (&Method::GET, "/v1/models") => {
            let model = json!({ "id": "scripted", "type": "model", "object": "model" });
            json!({ "object": "list", "data": [model], "models": [], "has_more": false })
        }
        // Some agents check that the server is there before they begin.
        (&Method::GET | &Method::HEAD, "/") => json!({}),
        _ => {
            let error = json!({ "type": "not_found_error", "message": "There is no such path." });
            let body = json!({ "type": "error", "error": error });
            return (Outcome::Unknown, HttpAnswer::error(404, body));
        }
    };
    (Outcome::Service, HttpAnswer::ok(answer))
}

fn readable(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| !KEYS.contains(&name.as_str()))
        .map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect()
}

fn send(answer: HttpAnswer, pause: Duration) -> Response<Body> {
    let (builder, body) = match answer {
        HttpAnswer::Whole { status, headers, body } => {
            let mut builder =
                Response::builder().status(status).header("content-type", "application/json");
            for (name, value) in headers {
                builder = builder.header(name, value);
            }
            (builder, Body::from(body.to_string()))
        }
        HttpAnswer::Stream { events, open } => {
            let builder = Response::builder().header("content-type", "text/event-stream");
            (builder, flow(events.into(), open, pause))
        }
    };
    builder.body(body).unwrap_or_default()
}

/// Sends one event after another.
fn flow(events: VecDeque<String>, open: bool, pause: Duration) -> Body {
    Body::from_stream(stream::unfold((events, false), move |(mut events, begun)| async move {
        let Some(event) = events.pop_front() else {
            if open {
                tokio::time::sleep(STALL).await;
            }
            return None;
        };
        if begun && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Some((Ok::<_, Infallible>(event), (events, true)))
    }))
}

#[cfg(test)]
mod tests;
