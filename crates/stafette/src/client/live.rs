//! A live terminal at the daemon: a WebSocket on the daemon's socket.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use stafette_server::terminals::{Told, Wish};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::{Client, gone, refusal};
use crate::exit::Failure;

/// The time limit for an answer of the daemon.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time limit for closing the connection.
const GOODBYE: Duration = Duration::from_secs(1);

/// The number of requests that may wait to be sent.
const QUEUE: usize = 64;

type Socket = WebSocketStream<UnixStream>;

/// A message from a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// A change of the terminal's state.
    Told(Told),
    /// Output of its program.
    Bytes(Bytes),
}

/// A live terminal at the daemon. Requests never block: incoming messages are read all the time.
#[derive(Debug)]
pub(crate) struct Live {
    pieces: SplitStream<Socket>,
    wishes: mpsc::Sender<Message>,
    sender: JoinHandle<()>,
}

impl Client {
    /// Opens a live terminal.
    pub(crate) async fn live(&self, path: &str) -> Result<Live, Failure> {
        let stream = self.connect().await?;
        let opening = client_async(format!("ws://localhost{path}"), stream);
        match timeout(PATIENCE, opening).await {
            Ok(Ok((socket, _))) => Ok(Live::new(socket)),
            Ok(Err(Error::Http(response))) => {
                let body = response.into_body().unwrap_or_default();
                Err(serde_json::from_slice(&body).map_or_else(|_| gone(), refusal))
            }
            Ok(Err(error)) => Err(gone().because(&error)),
            Err(late) => Err(gone().because(&late)),
        }
    }
}

impl Live {
    fn new(socket: Socket) -> Self {
        let (sink, pieces) = socket.split();
        let (wishes, queue) = mpsc::channel(QUEUE);
        Live { pieces, wishes, sender: tokio::spawn(send(sink, queue)) }
    }

    /// Returns the next message. The daemon's end is an error; a terminal's end is a message.
    pub(crate) async fn next(&mut self) -> Result<Piece, Failure> {
        loop {
            match self.pieces.next().await {
                Some(Ok(Message::Text(text))) => {
                    // A newer daemon may send messages that this version does not know.
                    if let Ok(told) = serde_json::from_str(&text) {
                        return Ok(Piece::Told(told));
                    }
                }
                Some(Ok(Message::Binary(bytes))) => return Ok(Piece::Bytes(bytes)),
                Some(Ok(Message::Close(Some(why)))) if !why.reason.is_empty() => {
                    return Err(Failure::failed("The daemon closed the terminal's connection")
                        .why(why.reason.as_str())
                        .fix("run `stafette status`, then attach again"));
                }
                Some(Ok(Message::Close(_))) | None => return Err(gone()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(gone().because(&error)),
            }
        }
    }

    /// Sends a request. Returns true if there was room for it in the queue.
    pub(crate) fn wish(&self, wish: &Wish) -> bool {
        let text = serde_json::to_string(wish).expect("our own types are JSON");
        self.wishes.try_send(Message::Text(text.into())).is_ok()
    }

    /// Closes the connection once every request is sent, so that the daemon notices immediately.
    pub(crate) async fn leave(self) {
        let Live { wishes, mut sender, .. } = self;
        drop(wishes);
        if timeout(GOODBYE, &mut sender).await.is_err() {
            sender.abort();
        }
    }
}

/// Sends requests, and a close message at the end.
async fn send(mut sink: SplitSink<Socket, Message>, mut queue: mpsc::Receiver<Message>) {
    while let Some(message) = queue.recv().await {
        // The reader notices that the daemon is gone.
        if sink.send(message).await.is_err() {
            return;
        }
    }
    let _ = sink.close().await;
}
