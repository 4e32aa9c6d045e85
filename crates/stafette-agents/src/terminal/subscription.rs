//! Observing a terminal: a slow observer gets a fresh snapshot, so that it costs no memory.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Board, Snapshot};

/// The maximum number of bytes in one piece.
const PIECE_LIMIT: usize = 64 * 1024;

/// A piece of a terminal's output for an observer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// The whole screen: at the start, after a change of size, and when the observer has fallen
    /// behind.
    Snapshot(Snapshot),
    /// The bytes that were printed next.
    Bytes {
        /// The position in the stream at which they end.
        seq: u64,
        bytes: Vec<u8>,
    },
}

/// An observer of a terminal.
#[derive(Debug)]
pub struct Subscription {
    board: Arc<Board>,
    changes: watch::Receiver<u64>,
    at: Option<u64>,
    history: usize,
}

impl Subscription {
    pub(super) fn new(board: Arc<Board>, after: Option<u64>) -> Self {
        Subscription { changes: board.changes.subscribe(), board, at: after, history: 0 }
    }

    /// The same, with at most `limit` bytes of the rows that have left the screen in each snapshot.
    #[must_use]
    pub fn with_history(mut self, limit: usize) -> Self {
        self.history = limit;
        self
    }

    /// Returns the next piece; `None` when the terminal has ended and everything was delivered.
    pub async fn next(&mut self) -> Option<Piece> {
        loop {
            self.changes.borrow_and_update();
            {
                let facts = self.board.facts();
                let Some(bytes) = self.at.and_then(|at| facts.view.since(at, PIECE_LIMIT)) else {
                    let snapshot = facts.view.snapshot(self.history);
                    self.at = Some(snapshot.seq);
                    return Some(Piece::Snapshot(snapshot));
                };
                if !bytes.is_empty() {
                    let seq = self.at.unwrap_or_default() + bytes.len() as u64;
                    self.at = Some(seq);
                    return Some(Piece::Bytes { seq, bytes });
                }
                if facts.status.over {
                    return None;
                }
            }
            self.changes.changed().await.ok()?;
        }
    }
}
