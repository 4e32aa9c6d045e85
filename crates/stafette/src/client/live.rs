//! A terminal at the daemon, as it lives: a WebSocket on the daemon's socket.

use futures_util::{SinkExt, StreamExt};
use stafette_server::terminals::{Told, Wish};
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::{Client, gone, refusal};
use crate::exit::Failure;

/// What comes from a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// Something about it.
    Told(Told),
    /// What its program prints.
    Bytes(Bytes),
}

/// A terminal at the daemon.
#[derive(Debug)]
pub(crate) struct Live(WebSocketStream<UnixStream>);

impl Client {
    /// A terminal as it lives.
    pub(crate) async fn live(&self, path: &str) -> Result<Live, Failure> {
        let stream = self.connect().await?;
        match client_async(format!("ws://localhost{path}"), stream).await {
            Ok((socket, _)) => Ok(Live(socket)),
            Err(Error::Http(response)) => {
                let body = response.into_body().unwrap_or_default();
                Err(serde_json::from_slice(&body).map_or_else(|_| gone(), refusal))
            }
            Err(error) => Err(gone().because(&error)),
        }
    }
}

impl Live {
    /// What comes next. The daemon's end is an error: a terminal's end is told.
    pub(crate) async fn next(&mut self) -> Result<Piece, Failure> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => {
                    // A newer daemon may tell what this version does not know.
                    if let Ok(told) = serde_json::from_str(&text) {
                        return Ok(Piece::Told(told));
                    }
                }
                Some(Ok(Message::Binary(bytes))) => return Ok(Piece::Bytes(bytes)),
                Some(Ok(Message::Close(Some(why)))) if !why.reason.is_empty() => {
                    return Err(Failure::failed("The daemon ended it").why(why.reason.as_str()));
                }
                Some(Ok(Message::Close(_))) | None => return Err(gone()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(gone().because(&error)),
            }
        }
    }

    /// Asks for something.
    pub(crate) async fn wish(&mut self, wish: &Wish) -> Result<(), Failure> {
        let text = serde_json::to_string(wish).expect("our own types are JSON");
        self.0.send(Message::Text(text.into())).await.map_err(|error| gone().because(&error))
    }

    /// Says goodbye, so that the daemon need not find out.
    pub(crate) async fn leave(mut self) {
        // One that is gone needs no goodbye.
        let _ = self.0.close(None).await;
    }
}
