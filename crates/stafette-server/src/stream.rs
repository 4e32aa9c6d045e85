//! Events as they happen: JSON lines, server-sent events, or a WebSocket. All three send the same
//! events, each with a number from which a client can continue.

use std::convert::Infallible;
use std::time::Duration;

use aide::generate::GenContext;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, SplitSink, SplitStream};
use futures_util::{SinkExt, Stream, StreamExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stafette_core::RunId;
use stafette_engine::{Engine, EngineError, Feed, StateFeed, Stored};
use stafette_store::{Damage, ReadError};

use crate::answer::{Form, Raw};
use crate::guard::Credential;
use crate::openapi::operations;
use crate::request::{Asked, LastEvent, Named};
use crate::runs::TheRun;
use crate::{Edge, Problem};

/// Interval of the heartbeat on an idle stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time limit for the last message of a WebSocket.
const FAREWELL: Duration = Duration::from_secs(5);
/// Number of events read in one query.
const PAGE: usize = 256;
/// Maximum size of a client message, in bytes; clients have nothing to send.
const SAID: usize = 4096;
/// Maximum number of sealed events that are sent again once they are open.
const CLOSED: usize = 1024;

/// Name of the line in the place of an event that is damaged.
const DAMAGED: &str = "event_damaged";

/// Name of the last line of a stream that cannot be read on.
const UNREADABLE: &str = "store_unreadable";

operations! {
    pub(crate) fn routes() in "events";
    GET "/v1/events" => all, Read, "listEvents", "Read or follow the events of all runs";
    GET "/v1/runs/{run}/events" => of_run, Read, "listRunEvents",
        "Read or follow the events of one run";
    GET "/v1/events/live" => all_live, Read, "followEvents", "Follow all events by a WebSocket";
    GET "/v1/runs/{run}/events/live" => run_live, Read, "followRunEvents",
        "Follow one run by a WebSocket";
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct From {
    /// Only events after this one: a position, or a sequence number within a run.
    #[serde(default)]
    after: u64,
    /// True to keep the stream open for new events. Server-sent events and WebSockets always do.
    #[serde(default)]
    follow: bool,
    /// True to add the fields of the run that each event changed, as `changed`.
    #[serde(default)]
    state: bool,
}

/// An event as the streams send it.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "it describes what `Line` puts together from stored text")]
pub(crate) struct EventLine {
    /// Number over all runs.
    position: u64,
    /// Run that the event belongs to.
    run: RunId,
    /// Sequence number within the run.
    seq: u64,
    /// Time of the event (RFC 3339).
    at: String,
    /// The fields of `RunDetail` that the event changed, if `state` was requested: relative to the
    /// run after the event before it, `GET /v1/runs/{run}?at=N`. A removed field is null.
    /// `handoffs` and `changes` list only those that changed, each with the fields that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<serde_json::Map<String, Value>>,
    /// The event with all its fields.
    #[serde(flatten)]
    event: stafette_core::Event,
}

/// Description of an event stream.
#[derive(Debug)]
pub(crate) struct Events;

impl Form for Events {
    const MEANS: (u16, &'static str) = (
        200,
        "One JSON object an event: `position` over all runs, `run`, `seq` within it, `at`, \
         `event`, and what that event tells (`EventLine`). Who accepts `text/event-stream` gets the same as \
         server-sent events, numbered for `Last-Event-ID`.",
    );
    const TYPES: &'static [&'static str] = &["application/x-ndjson", "text/event-stream"];

    fn parts(context: &mut GenContext) {
        let _ = context.schema.subschema_for::<EventLine>();
    }
}

/// Description of a WebSocket.
#[derive(Debug)]
pub(crate) struct Switched;

impl Form for Switched {
    const MEANS: (u16, &'static str) =
        (101, "A WebSocket that sends each event as a text message with one JSON object.");
    const TYPES: &'static [&'static str] = &[];
}

async fn all(
    State(edge): State<Edge>,
    Asked(from): Asked<From>,
    LastEvent(last): LastEvent,
    headers: HeaderMap,
) -> Result<Raw<Events>, Problem> {
    let (follow, sse) = (from.follow, wants_sse(&headers));
    let after = last.unwrap_or(from.after);
    let tail = Tail::of_all(&edge.engine, after, follow || sse).await?;
    let tail = tail.with_state(from.state);
    Ok(answer(tail, sse).into())
}

async fn of_run(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
    Asked(from): Asked<From>,
    LastEvent(last): LastEvent,
    headers: HeaderMap,
) -> Result<Raw<Events>, Problem> {
    let run = crate::runs::find(&edge, &run).await?;
    let (follow, sse) = (from.follow, wants_sse(&headers));
    let tail = Tail::of_run(&edge.engine, run, last.unwrap_or(from.after), follow || sse).await?;
    let tail = tail.with_state(from.state);
    Ok(answer(tail, sse).into())
}

/// Name of the WebSocket protocol; the page names its session beside it, and one has to be chosen.
pub(crate) const PROTOCOL: &str = "stafette";

async fn all_live(
    State(edge): State<Edge>,
    credential: Credential,
    Asked(from): Asked<From>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Raw<Switched>, Problem> {
    let upgrade = upgrade?;
    let tail = Tail::of_all(&edge.engine, from.after, true).await?.with_state(from.state);
    Ok(upgrade
        .protocols([PROTOCOL])
        .max_message_size(SAID)
        .on_upgrade(|socket| pour(socket, stream::unfold(tail, Tail::next), credential))
        .into())
}

async fn run_live(
    State(edge): State<Edge>,
    credential: Credential,
    Named(TheRun { run }): Named<TheRun>,
    Asked(from): Asked<From>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Raw<Switched>, Problem> {
    let upgrade = upgrade?;
    let run = crate::runs::find(&edge, &run).await?;
    let tail = Tail::of_run(&edge.engine, run, from.after, true).await?.with_state(from.state);
    Ok(upgrade
        .protocols([PROTOCOL])
        .max_message_size(SAID)
        .on_upgrade(|socket| pour(socket, stream::unfold(tail, Tail::next), credential))
        .into())
}

impl std::convert::From<WebSocketUpgradeRejection> for Problem {
    fn from(rejection: WebSocketUpgradeRejection) -> Self {
        Problem::new(426, "not_a_websocket", "This address speaks WebSocket only")
            .because(rejection.body_text())
    }
}

fn wants_sse(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|line| line.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream")
    })
}

fn answer(tail: Tail, sse: bool) -> Response {
    let pages = stream::unfold(tail, Tail::next);
    if sse {
        let events = pages.flat_map(|page| stream::iter(page.into_iter().map(sse_event)));
        let beat = KeepAlive::new().interval(HEARTBEAT).text("alive");
        return Sse::new(events).keep_alive(beat).into_response();
    }
    let lines = pages.map(|page| {
        let text = page.iter().map(|line| format!("{}\n", line.body)).collect::<String>();
        Ok::<_, Infallible>(text)
    });
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

fn sse_event(line: Line) -> Result<Event, Infallible> {
    Ok(Event::default().id(line.number.to_string()).event(line.name).data(line.body))
}

/// The last message to a client whose token was revoked or has expired.
pub(crate) fn expired() -> CloseFrame {
    let reason = "the token was revoked or has expired".into();
    CloseFrame { code: close_code::POLICY, reason }
}

/// Sends events until either side closes, or the credential ends.
pub(crate) async fn pour(
    socket: WebSocket,
    pages: impl Stream<Item = Vec<Line>>,
    credential: Credential,
) {
    let (mut out, heard) = socket.split();
    let last = tokio::select! {
        poured = pour_all(&mut out, heard, pages) => match poured {
            Some(()) => None,
            None => return,
        },
        () = credential.ended() => Some(expired()),
    };
    // A client that does not read is not waited for.
    let _ = tokio::time::timeout(FAREWELL, out.send(Message::Close(last))).await;
}

/// Sends all events; `None` if the client is gone. Client messages are read only to notice the end.
async fn pour_all(
    out: &mut SplitSink<WebSocket, Message>,
    mut heard: SplitStream<WebSocket>,
    pages: impl Stream<Item = Vec<Line>>,
) -> Option<()> {
    let mut pages = Box::pin(pages);
    let mut beat = tokio::time::interval(HEARTBEAT);
    loop {
        tokio::select! {
            page = pages.next() => {
                let Some(page) = page else { return Some(()) };
                for line in page {
                    out.send(Message::text(line.body)).await.ok()?;
                }
            }
            said = heard.next() => match said {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            },
            _ = beat.tick() => out.send(Message::Ping(axum::body::Bytes::new())).await.ok()?,
        }
    }
}

/// Fields of a run that an event changed.
type Changed = serde_json::Map<String, Value>;

/// An event ready to be sent.
#[derive(Debug)]
pub(crate) struct Line {
    /// Number from which a client continues after this event.
    number: u64,
    name: String,
    body: String,
}

impl Line {
    /// An event that was sent before without its sealed part.
    fn again(stored: &Stored) -> Self {
        let mut line = Line::of(stored, None, true);
        if let Ok(Value::Object(mut fields)) = serde_json::from_str(&line.body) {
            fields.insert("again".to_owned(), true.into());
            line.body = Value::Object(fields).to_string();
        }
        line
    }

    fn of(stored: &Stored, changed: Option<Changed>, within_run: bool) -> Self {
        let mut line = json!({
            "position": stored.position,
            "run": stored.run,
            "seq": stored.entry.seq,
            "at": stored.entry.at.rfc3339(),
        });
        if let (Some(fields), Ok(Value::Object(event))) =
            (line.as_object_mut(), serde_json::from_str(&stored.entry.body))
        {
            fields.extend(event);
            fields.extend(changed.map(|changed| ("changed".to_owned(), changed.into())));
        }
        let number = if within_run { stored.entry.seq } else { stored.position };
        Line { number, name: stored.entry.name.clone(), body: line.to_string() }
    }
}

/// Position of a reader.
#[derive(Debug)]
struct Tail {
    engine: Engine,
    run: Option<RunId>,
    /// Last sequence number sent, of the one run.
    seq: u64,
    /// Last position that was sent or skipped.
    position: u64,
    /// Last position to read, for streams that do not follow.
    until: Option<u64>,
    place: Place,
    /// Events that were sent without their sealed part; sent again once they are open.
    closed: Vec<Stored>,
    /// Computes the changes of each event, if requested.
    states: Option<StateFeed>,
}

#[derive(Debug)]
enum Place {
    /// Reads events from the store.
    Past,
    /// Follows new events as they happen.
    Now(Feed),
    /// At the end: no more events come.
    End,
}

impl Tail {
    async fn of_all(engine: &Engine, after: u64, follow: bool) -> Result<Self, Problem> {
        let until = if follow { None } else { Some(head(engine).await?) };
        let place = if follow { Place::Now(engine.feed(after)) } else { Place::Past };
        let (engine, closed) = (engine.clone(), Vec::new());
        let (run, seq, states) = (None, 0, None);
        Ok(Tail { engine, run, seq, position: after, until, place, closed, states })
    }

    async fn of_run(
        engine: &Engine,
        run: RunId,
        after: u64,
        follow: bool,
    ) -> Result<Self, Problem> {
        // Read before the stored events: an event that is not among them comes after this position.
        let position = head(engine).await?;
        let until = (!follow).then_some(position);
        let (engine, run) = (engine.clone(), Some(run));
        let (place, closed) = (Place::Past, Vec::new());
        Ok(Tail { engine, run, seq: after, position, until, place, closed, states: None })
    }

    /// Adds the fields that each event changed.
    fn with_state(self, wanted: bool) -> Self {
        Tail { states: wanted.then(StateFeed::default), ..self }
    }

    /// Returns the next events; `None` at the end, or if the store fails.
    async fn next(mut self) -> Option<(Vec<Line>, Self)> {
        loop {
            let mut page = match (&mut self.place, self.run) {
                (Place::End, _) => return None,
                (Place::Past, run) => {
                    let read = match run {
                        Some(run) => self.past(run).await,
                        None => self.engine.store().feed(self.position, PAGE).await,
                    };
                    match read {
                        Err(ReadError::Damaged { source }) => return Some(self.damaged(source)),
                        Err(error) => return Some(self.unreadable(&error)),
                        Ok(page) => Some(page).filter(|page| run.is_some() || !page.is_empty())?,
                    }
                }
                (Place::Now(feed), _) => feed.next().await.ok()??,
            };
            // Computed before the sealed parts are removed.
            let changed = self.changed(&page).await?;
            let closed = self.engine.log().veil(&mut page).await.ok()?;
            let mut lines = self.opened().await?;
            lines.extend(self.take(&page, changed));
            let stays = self.until.is_none();
            let is_ours = |it: &Stored| stays && self.run.is_none_or(|run| run == it.run);
            self.closed.extend(closed.into_iter().filter(is_ours));
            self.closed.truncate(CLOSED);
            if !lines.is_empty() {
                return Some((lines, self));
            }
        }
    }

    /// Returns the changed fields of each event of a page; nothing if not requested. `None` if the
    /// store fails: the stream ends, and the client continues from its last event.
    async fn changed(&mut self, page: &[Stored]) -> Option<Vec<Option<Changed>>> {
        let Some(states) = &mut self.states else { return Some(vec![None; page.len()]) };
        let mut all = Vec::with_capacity(page.len());
        for stored in page {
            let ours = self.run.is_none_or(|run| run == stored.run);
            let changed = match ours {
                true => states.change(&self.engine, stored).await,
                false => Ok(None),
            };
            all.push(match changed {
                Ok(changed) => changed,
                Err(EngineError::Read { .. }) => return None,
                // One unreadable run must not end the stream of the others.
                Err(error) => {
                    tracing::warn!(run = %stored.run, %error, "what an event changed is not known");
                    None
                }
            });
        }
        Some(all)
    }

    /// Returns the events that were sealed when sent and are open by now.
    async fn opened(&mut self) -> Option<Vec<Line>> {
        let mut lines = Vec::new();
        for stored in std::mem::take(&mut self.closed) {
            match self.engine.log().is_sealed(stored.run).await.ok()? {
                true => self.closed.push(stored),
                false => {
                    let number = if self.run.is_some() { self.seq } else { self.position };
                    lines.push(Line { number, ..Line::again(&stored) });
                }
            }
        }
        Some(lines)
    }

    /// Names a damaged event at its place, and goes on after it, if anything more can be read.
    fn damaged(mut self, damage: Damage) -> (Vec<Line>, Self) {
        let Damage::Event { run, seq, position } = damage else {
            return self.unreadable(&damage);
        };
        let why = damage.to_string();
        let body = json!({ "position": position, "run": run, "seq": seq, "why": why,
                           "event": DAMAGED, "fix": "restore the store from a backup" });
        (self.seq, self.position) = (seq, position.unwrap_or(self.position));
        if position.is_none() {
            self.place = Place::End;
        }
        let number = if self.run.is_some() { self.seq } else { self.position };
        (vec![Line { number, name: DAMAGED.to_owned(), body: body.to_string() }], self)
    }

    /// Ends the stream with a line that says why: one that just ended would look complete.
    fn unreadable(mut self, error: &dyn std::error::Error) -> (Vec<Line>, Self) {
        self.place = Place::End;
        let number = if self.run.is_some() { self.seq } else { self.position };
        let body = json!({ "event": UNREADABLE, "run": self.run, "why": error.to_string(),
                           "fix": "see `stafette doctor`, and restore the store from a backup" });
        (vec![Line { number, name: UNREADABLE.to_owned(), body: body.to_string() }], self)
    }

    async fn past(&mut self, run: RunId) -> Result<Vec<Stored>, ReadError> {
        // Read before the page: a run that had ended when the page is empty has no more events. One
        // that is damaged gets no more either.
        let view = self.engine.view(run).await;
        let over =
            view.map_or(true, |(view, _)| view.is_over()) || self.engine.stopped().is_left(run);
        let page = self.engine.store().entries(run, self.seq, PAGE).await?;
        if page.is_empty() {
            self.place = match over || self.until.is_some() {
                true => Place::End,
                false => Place::Now(self.engine.feed(self.position)),
            };
        }
        Ok(page)
    }

    fn take(&mut self, page: &[Stored], changed: Vec<Option<Changed>>) -> Vec<Line> {
        let mut lines = Vec::new();
        for (stored, changed) in page.iter().zip(changed) {
            let new = match self.run {
                Some(run) => stored.run == run && stored.entry.seq > self.seq,
                None => self.until.is_none_or(|until| stored.position <= until),
            };
            self.position = self.position.max(stored.position);
            if new {
                self.seq = stored.entry.seq;
                lines.push(Line::of(stored, changed, self.run.is_some()));
            }
            if self.run.is_some() && new && stored.entry.name == "run_finished" {
                self.place = Place::End;
            }
        }
        if self.run.is_none() && self.until.is_some_and(|until| self.position >= until) {
            self.place = Place::End;
        }
        lines
    }
}

async fn head(engine: &Engine) -> Result<u64, Problem> {
    let head = engine.store().head().await;
    Ok(head.map_err(|source| EngineError::Read { source })?)
}
