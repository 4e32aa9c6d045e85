//! A terminal as it lives, over a WebSocket: what it shows first, and then what is printed.
//!
//! Whoever reads slowly gets the screen anew instead of all that was printed meanwhile, so nobody
//! costs memory, and nobody holds an agent up.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_engine::{Piece, Snapshot};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{Glance, Place, TheTerminal};
use crate::principal::{Principal, Scope};
use crate::request::{Asked, Named};
use crate::{Edge, Problem};

/// The longest message of a client, in bytes.
const MESSAGE_LIMIT: usize = 128 * 1024;

/// The most of what has left the screen that comes with a snapshot, in bytes.
const HISTORY_LIMIT: usize = 8 * 1024 * 1024;

/// Messages that may wait to be typed.
const QUEUE: usize = 64;

/// How often a client is asked for a sign of life.
const PING: Duration = Duration::from_secs(20);

/// How long a client may be silent, or not read, before it is left.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a program may take to read what is typed before the next is tried.
const READ: Duration = Duration::from_secs(10);

/// What a client is told, besides the bytes that the program prints (which are binary messages).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Told {
    /// The whole screen: first, after a change of size, and again after a lag.
    Snapshot {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
        /// How the session stands.
        state: String,
        /// The title that the program has given the terminal.
        title: Option<String>,
        /// What must be written to an empty terminal of this size so that it shows the same.
        data: String,
    },
    /// The session stands differently.
    State {
        /// How.
        state: String,
        /// What people should know of it.
        note: Option<String>,
        /// The title that the program has given the terminal.
        title: Option<String>,
    },
    /// The terminal has another size; a snapshot follows.
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// The terminal is gone, and nothing more comes.
    End {
        /// What people should know of it.
        note: Option<String>,
    },
}

/// What a client may want, when it asked to write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wish {
    /// These keys are pressed.
    Input {
        /// What the keys send.
        data: String,
    },
    /// The terminal gets another size, for as long as the client stays.
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
}

/// How a client looks.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) struct Manner {
    /// Whether it may type.
    #[serde(default)]
    write: bool,
    /// How many bytes of what has left the screen it wants.
    #[serde(default = "some")]
    history: usize,
}

fn some() -> usize {
    256 * 1024
}

pub(super) async fn live(
    State(edge): State<Edge>,
    principal: Principal,
    Named(place): Named<TheTerminal>,
    Asked(manner): Asked<Manner>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    // A request that only gets needs no more than the scope to observe.
    if manner.write {
        principal.may(Scope::Act)?;
    }
    let place = Place::find(&edge, &principal, &place).await?;
    let upgrade = upgrade.map_err(|rejection| {
        Problem::new(426, "not_a_websocket", "A terminal is watched over a WebSocket")
            .because(rejection.body_text())
    })?;
    let upgrade = upgrade.max_message_size(MESSAGE_LIMIT).max_frame_size(MESSAGE_LIMIT);
    Ok(upgrade.on_upgrade(move |socket| Viewer::new(place, manner).attend(socket)))
}

/// One client and the terminal that it looks at.
struct Viewer {
    place: Place,
    manner: Manner,
    /// What the client knows of how the session stands.
    known: Option<Glance>,
    /// The size before this client changed it, and what it made of it.
    resized: Option<((u16, u16), (u16, u16))>,
    keys: mpsc::Sender<String>,
    queue: Option<mpsc::Receiver<String>>,
}

/// What is to be done about what a client said.
enum Heard {
    Nothing,
    Leave(Option<CloseFrame>),
}

impl Viewer {
    fn new(place: Place, manner: Manner) -> Self {
        let (keys, queue) = mpsc::channel(QUEUE);
        Viewer { place, manner, known: None, resized: None, keys, queue: Some(queue) }
    }

    async fn attend(mut self, mut socket: WebSocket) {
        let typist = self
            .queue
            .take()
            .map(|queue| tokio::spawn(type_in(self.place.terminal.clone(), queue)));
        let last = self.show(&mut socket).await;
        // A client that is gone does not hear it.
        let _ = timeout(PATIENCE, socket.send(Message::Close(last))).await;
        self.give_size_back().await;
        drop(self.keys);
        if let Some(typist) = typist {
            // What was typed before the end still counts.
            let _ = timeout(READ, typist).await;
        }
    }

    /// Shows what happens until either side has gone.
    async fn show(&mut self, socket: &mut WebSocket) -> Option<CloseFrame> {
        let history = self.manner.history.min(HISTORY_LIMIT);
        let mut pieces = self.place.terminal.subscribe(None).with_history(history);
        let mut changes = self.place.terminal.changes();
        let mut clock = interval(PING);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard_at = Instant::now();
        loop {
            let messages = tokio::select! {
                piece = pieces.next() => match piece {
                    Some(Piece::Snapshot(snapshot)) => self.snapshot(snapshot),
                    Some(Piece::Bytes { bytes, .. }) => vec![Message::Binary(bytes.into())],
                    None => {
                        let note = self.place.glance().note;
                        tell(socket, text(&Told::End { note })).await?;
                        return None;
                    }
                },
                // Once the terminal is gone, its last bytes are still to be had.
                Ok(()) = changes.changed() => self.news(),
                _ = clock.tick() => {
                    if heard_at.elapsed() > PATIENCE {
                        return None;
                    }
                    vec![Message::Ping(Vec::new().into())]
                }
                // While nothing more can be typed, nothing more is read.
                message = socket.recv(), if self.keys.capacity() > 0 => {
                    heard_at = Instant::now();
                    match self.hear(message?.ok()?).await {
                        Heard::Nothing => continue,
                        Heard::Leave(why) => return why,
                    }
                }
            };
            for message in messages {
                tell(socket, message).await?;
            }
        }
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Vec<Message> {
        let Snapshot { cols, rows, dump, history, .. } = snapshot;
        let mut messages = Vec::new();
        if self.known.as_ref().is_some_and(|known| (known.cols, known.rows) != (cols, rows)) {
            messages.push(text(&Told::Resize { cols, rows }));
        }
        let mut glance = self.place.glance();
        (glance.cols, glance.rows) = (cols, rows);
        let data = match history.is_empty() {
            true => dump,
            // What is on the screen then leaves it, as it did before.
            false => format!("{history}{}\x1b[H{dump}", "\r\n".repeat(rows.into())),
        };
        let (state, title) = (glance.state.clone(), glance.title.clone());
        messages.push(text(&Told::Snapshot { cols, rows, state, title, data }));
        if glance.note.is_some() {
            let Glance { state, note, title, .. } = glance.clone();
            messages.push(text(&Told::State { state, note, title }));
        }
        self.known = Some(glance);
        messages
    }

    /// What the client does not know yet of how the session stands.
    fn news(&mut self) -> Vec<Message> {
        let now = self.place.glance();
        // The snapshot comes first.
        let Some(known) = &mut self.known else { return Vec::new() };
        if (&known.state, &known.note, &known.title) == (&now.state, &now.note, &now.title) {
            return Vec::new();
        }
        (known.state, known.note, known.title) =
            (now.state.clone(), now.note.clone(), now.title.clone());
        vec![text(&Told::State { state: now.state, note: now.note, title: now.title })]
    }

    async fn hear(&mut self, message: Message) -> Heard {
        let wish = match message {
            Message::Text(wish) => wish,
            Message::Ping(_) | Message::Pong(_) => return Heard::Nothing,
            Message::Close(_) => return Heard::Leave(None),
            Message::Binary(_) => return leave(close_code::UNSUPPORTED, "wishes are text"),
        };
        if !self.manner.write {
            return leave(close_code::POLICY, "this client only reads; ask for write=true");
        }
        match serde_json::from_str(&wish) {
            Ok(Wish::Input { data }) => {
                // There is room, or nothing would have been read.
                let _ = self.keys.try_send(data);
                Heard::Nothing
            }
            Ok(Wish::Resize { cols, rows }) => {
                let before = self.size();
                if before != (cols, rows) && self.place.terminal.resize(cols, rows).await.is_ok() {
                    let first = self.resized.map_or(before, |(first, _)| first);
                    self.resized = Some((first, (cols, rows)));
                }
                Heard::Nothing
            }
            Err(error) => leave(close_code::INVALID, &format!("this is no wish: {error}")),
        }
    }

    fn size(&self) -> (u16, u16) {
        let glance = self.place.glance();
        (glance.cols, glance.rows)
    }

    /// The size belonged to the client's window; nobody else has changed it since, or it is theirs.
    async fn give_size_back(&self) {
        if let Some(((cols, rows), ours)) = self.resized
            && self.size() == ours
        {
            // A terminal that is gone has no size.
            let _ = self.place.terminal.resize(cols, rows).await;
        }
    }
}

/// Types what a client wants typed, one after the other.
async fn type_in(terminal: stafette_engine::Terminal, mut queue: mpsc::Receiver<String>) {
    let mut noted = false;
    while let Some(keys) = queue.recv().await {
        if !std::mem::replace(&mut noted, true) {
            terminal.note("a person types").await;
        }
        // A program that is gone, or does not read, does not get them.
        let _ = timeout(READ, terminal.press(keys.into_bytes())).await;
    }
}

/// Sends a message; nothing when the client is gone, or does not read for too long.
async fn tell(socket: &mut WebSocket, message: Message) -> Option<()> {
    timeout(PATIENCE, socket.send(message)).await.ok()?.ok()
}

fn text(told: &Told) -> Message {
    Message::Text(serde_json::to_string(told).expect("our own types are JSON").into())
}

fn leave(code: u16, why: &str) -> Heard {
    // A reason has at most 123 bytes.
    let end = (0..=why.len().min(120)).rev().find(|at| why.is_char_boundary(*at)).unwrap_or(0);
    Heard::Leave(Some(CloseFrame { code, reason: Utf8Bytes::from(&why[..end]) }))
}
