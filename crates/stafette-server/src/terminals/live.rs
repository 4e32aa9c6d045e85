//! A live terminal over a WebSocket: first its screen, then its output.
//!
//! A slow reader gets the screen again instead of all output since, so that no reader costs memory
//! or holds up an agent.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_engine::{Piece, Right, Snapshot};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{Glance, Place, TheTerminal};
use crate::guard::Credential;
use crate::principal::Principal;
use crate::request::{Asked, Named};
use crate::stream::{PROTOCOL, expired};
use crate::{Edge, Problem};

/// Maximum size of a client message, in bytes.
const MESSAGE_LIMIT: usize = 128 * 1024;

/// Maximum scrollback sent with a snapshot, in bytes.
const HISTORY_LIMIT: usize = 8 * 1024 * 1024;

/// Maximum number of messages that wait to be typed.
const QUEUE: usize = 64;

/// Interval of pings to the client.
const PING: Duration = Duration::from_secs(20);

/// Time that a client may be silent, or not read, before it is disconnected.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit for a program to read typed input before the next is tried.
const READ: Duration = Duration::from_secs(10);

/// Messages to the client, in addition to the output of the program (binary messages).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Told {
    /// The whole screen: at first, after a change of size, and again after a lag.
    Snapshot {
        /// Width in columns.
        cols: u16,
        /// Height in rows.
        rows: u16,
        /// State of the session.
        state: String,
        /// Title that the program has set.
        title: Option<String>,
        /// Escape sequences that show this screen on an empty terminal of this size.
        data: String,
    },
    /// The state of the session has changed.
    State {
        /// New state of the session.
        state: String,
        /// Note for people, such as the cause of a crash.
        note: Option<String>,
        /// Title that the program has set.
        title: Option<String>,
    },
    /// The terminal has a new size; a snapshot follows.
    Resize {
        /// Width in columns.
        cols: u16,
        /// Height in rows.
        rows: u16,
    },
    /// The terminal is gone; no more messages follow.
    End {
        /// Note for people, such as the cause of a crash.
        note: Option<String>,
    },
}

/// Messages of a client that asked to write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wish {
    /// The client presses keys.
    Input {
        /// Characters that the keys send.
        data: String,
    },
    /// The terminal gets another size, for as long as the client is connected.
    Resize {
        /// Width in columns.
        cols: u16,
        /// Height in rows.
        rows: u16,
    },
}

/// Options of a client.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manner {
    /// True to allow typing; needs the scope `act`.
    #[serde(default)]
    write: bool,
    /// Maximum scrollback to send, in bytes.
    #[serde(default = "some")]
    history: usize,
}

fn some() -> usize {
    256 * 1024
}

pub(super) async fn live(
    State(edge): State<Edge>,
    principal: Principal,
    credential: Credential,
    Named(place): Named<TheTerminal>,
    Asked(manner): Asked<Manner>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    // Watching alone needs less.
    if manner.write {
        principal.may(Right::Decide)?;
    }
    let place = Place::find(&edge, &place).await?;
    let upgrade = upgrade.map_err(|rejection| {
        Problem::new(426, "not_a_websocket", "A terminal is watched over a WebSocket")
            .because(rejection.body_text())
    })?;
    let upgrade =
        upgrade.protocols([PROTOCOL]).max_message_size(MESSAGE_LIMIT).max_frame_size(MESSAGE_LIMIT);
    Ok(upgrade.on_upgrade(move |socket| Viewer::new(place, manner).attend(socket, credential)))
}

/// One client and the terminal that it watches.
struct Viewer {
    place: Place,
    manner: Manner,
    /// State of the session as last sent to the client.
    known: Option<Glance>,
    /// Size before this client changed it, and the size that it set.
    resized: Option<((u16, u16), (u16, u16))>,
    keys: mpsc::Sender<String>,
    queue: Option<mpsc::Receiver<String>>,
}

/// Reaction to a client message.
enum Heard {
    Nothing,
    Leave(Option<CloseFrame>),
}

impl Viewer {
    fn new(place: Place, manner: Manner) -> Self {
        let (keys, queue) = mpsc::channel(QUEUE);
        Viewer { place, manner, known: None, resized: None, keys, queue: Some(queue) }
    }

    async fn attend(mut self, mut socket: WebSocket, credential: Credential) {
        let typist = self
            .queue
            .take()
            .map(|queue| tokio::spawn(type_in(self.place.terminal.clone(), queue)));
        let last = tokio::select! {
            last = self.show(&mut socket) => last,
            () = credential.ended() => {
                // What still waits to be typed came with a right that is gone.
                typist.iter().for_each(|typist| typist.abort());
                Some(expired())
            }
        };
        // Fails if the client is gone, which does not matter.
        let _ = timeout(PATIENCE, socket.send(Message::Close(last))).await;
        self.give_size_back().await;
        drop(self.keys);
        if let Some(typist) = typist {
            // Input that arrived before the end is still typed.
            let _ = timeout(READ, typist).await;
        }
    }

    /// Sends output and changes until either side closes.
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
                // Once the terminal is gone, its last output can still be read.
                Ok(()) = changes.changed() => self.news(),
                _ = clock.tick() => {
                    if heard_at.elapsed() > PATIENCE {
                        return None;
                    }
                    vec![Message::Ping(Vec::new().into())]
                }
                // While the input queue is full, no more messages are read.
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
            // The newlines scroll the history off the screen, as it was before.
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

    /// Returns the changes of state that the client does not know yet.
    fn news(&mut self) -> Vec<Message> {
        let now = self.place.glance();
        // The snapshot must come first.
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
                // The queue has room, or the message would not have been read.
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

    /// Restores the size from before this client, unless another client has changed it since.
    async fn give_size_back(&self) {
        if let Some(((cols, rows), ours)) = self.resized
            && self.size() == ours
        {
            // Fails if the terminal is gone, which does not matter.
            let _ = self.place.terminal.resize(cols, rows).await;
        }
    }
}

/// Types the input of a client, one message after the other.
async fn type_in(terminal: stafette_engine::Terminal, mut queue: mpsc::Receiver<String>) {
    let mut noted = false;
    while let Some(keys) = queue.recv().await {
        if !std::mem::replace(&mut noted, true) {
            terminal.note("a person types").await;
        }
        // A program that is gone, or does not read, misses this input.
        let _ = timeout(READ, terminal.press(keys.into_bytes())).await;
    }
}

/// Sends a message; `None` if the client is gone, or does not read in time.
async fn tell(socket: &mut WebSocket, message: Message) -> Option<()> {
    timeout(PATIENCE, socket.send(message)).await.ok()?.ok()
}

fn text(told: &Told) -> Message {
    Message::Text(serde_json::to_string(told).expect("our own types are JSON").into())
}

fn leave(code: u16, why: &str) -> Heard {
    // A close reason has at most 123 bytes.
    let reason = Utf8Bytes::from(&why[..why.floor_char_boundary(120)]);
    Heard::Leave(Some(CloseFrame { code, reason }))
}
