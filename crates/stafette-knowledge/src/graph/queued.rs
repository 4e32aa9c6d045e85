//! A graph that may be unreachable: batches that cannot be written wait in a file, in order.
//!
//! A batch that is answered with [`Applied::Queued`] is on disk. It is written in its turn, once:
//! if a broken connection had already written it, its key shows that.

use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Applied, Batch, Cursor, GoalView, Graph, GraphError, Label, Node, NodeKey, Picture, Record,
    Reply, Size,
};
use crate::sqlite::{Base, Queue};

/// The most batches that may wait.
pub const MOST_WAITING: u64 = 100_000;

/// The health of the graph connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// `MCP_CONNECTION_FAILED` while the graph is unreachable, otherwise `None`.
    pub code: Option<String>,
    /// The last error while the graph is unreachable.
    pub why: Option<String>,
    /// The number of waiting batches.
    pub waiting: u64,
    /// The number of batches that were refused when their turn came; they are kept with the reason.
    pub set_aside: u64,
}

/// A batch that was refused when its turn came.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// The batch as it was sent.
    pub batch: Batch,
    /// The reason for the refusal.
    pub why: String,
}

/// A graph with a queue in front of it.
#[derive(Debug)]
pub struct Queued {
    graph: Arc<dyn Graph>,
    queue: Queue,
    /// Held while a batch is written, so that batches keep their order.
    turn: tokio::sync::Mutex<()>,
    trouble: Mutex<Option<String>>,
}

impl Queued {
    /// Puts a queue in this file in front of a graph.
    #[must_use]
    pub fn new(graph: Arc<dyn Graph>, base: Base) -> Self {
        let turn = tokio::sync::Mutex::new(());
        Queued { graph, queue: Queue::new(base), turn, trouble: Mutex::new(None) }
    }

    fn heard(&self, trouble: Option<&GraphError>) {
        let mut last = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*last, trouble) {
            (None, Some(error)) => {
                tracing::warn!(code = error.code(), %error, "the graph is away: writes wait");
            }
            (Some(_), None) => tracing::info!("the graph is back"),
            _ => {}
        }
        *last = trouble.map(ToString::to_string);
    }

    /// Returns the health of the connection.
    pub async fn condition(&self) -> Result<Condition, GraphError> {
        let (waiting, set_aside) = self.queue.count().await?;
        let why = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let away = why.is_some() || waiting > 0;
        let code = away.then(|| "MCP_CONNECTION_FAILED".to_owned());
        Ok(Condition { code, why, waiting, set_aside })
    }

    /// Returns the batches that were refused when their turn came, oldest first.
    pub async fn set_aside(&self) -> Result<Vec<SetAside>, GraphError> {
        self.queue.set_aside_ones().await
    }

    /// Checks that the graph is reachable, even while no call is pending.
    pub async fn probe(&self) {
        match self.graph.node(&NodeKey::goal("there?")).await {
            Err(error) if error.may_pass() => self.heard(Some(&error)),
            // While batches wait, only writing them proves that the graph works.
            _ => {
                if matches!(self.queue.count().await, Ok((0, _))) {
                    self.heard(None);
                }
            }
        }
    }

    /// Writes waiting batches in order until none is left or the graph becomes unreachable. Returns
    /// how many were written.
    ///
    /// # Errors
    /// If the queue itself fails.
    pub async fn drain(&self) -> Result<u64, GraphError> {
        let _turn = self.turn.lock().await;
        self.drain_in_turn().await
    }

    async fn drain_in_turn(&self) -> Result<u64, GraphError> {
        let mut written = 0;
        while let Some((place, batch)) = self.queue.first().await? {
            match self.graph.apply(&batch).await {
                Ok(_) => {
                    self.heard(None);
                    self.queue.done(place).await?;
                    written += 1;
                }
                Err(error) if error.may_pass() => {
                    self.heard(Some(&error));
                    return Ok(written);
                }
                // It would be refused forever; the batches after it must not wait for that.
                Err(error) => {
                    tracing::error!(key = batch.key, %error, "a batch was refused and set aside");
                    self.queue.set_aside(place, error.to_string()).await?;
                }
            }
        }
        Ok(written)
    }

    async fn write(&self, batch: &Batch) -> Result<Applied, GraphError> {
        batch.check()?;
        let _turn = self.turn.lock().await;
        if self.queue.count().await?.0 == 0 {
            match self.graph.apply(batch).await {
                Err(error) if error.may_pass() => self.heard(Some(&error)),
                answer => {
                    if answer.is_ok() {
                        self.heard(None);
                    }
                    return answer;
                }
            }
        }
        self.queue.add(batch.clone(), MOST_WAITING).await?;
        Ok(Applied::Queued)
    }
}

impl Graph for Queued {
    fn apply<'a>(&'a self, batch: &'a Batch) -> Reply<'a, Applied> {
        Box::pin(self.write(batch))
    }
    fn node<'a>(&'a self, key: &'a NodeKey) -> Reply<'a, Option<Node>> {
        self.graph.node(key)
    }
    fn newest(&self, label: Label, limit: usize) -> Reply<'_, Vec<Node>> {
        self.graph.newest(label, limit)
    }
    fn pending_decisions(&self, limit: usize) -> Reply<'_, Vec<Node>> {
        self.graph.pending_decisions(limit)
    }
    fn tasks_of<'a>(&'a self, decision: &'a str, limit: usize) -> Reply<'a, Vec<Node>> {
        self.graph.tasks_of(decision, limit)
    }
    fn goals(&self, limit: usize, each: usize) -> Reply<'_, Vec<GoalView>> {
        self.graph.goals(limit, each)
    }
    fn insights<'a>(&'a self, topic: &'a str, limit: usize) -> Reply<'a, Vec<Node>> {
        self.graph.insights(topic, limit)
    }
    fn around<'a>(&'a self, key: &'a NodeKey, reach: u8, limit: usize) -> Reply<'a, Picture> {
        self.graph.around(key, reach, limit)
    }
    fn evidence_of<'a>(&'a self, insight: &'a str, limit: usize) -> Reply<'a, Vec<Vec<NodeKey>>> {
        self.graph.evidence_of(insight, limit)
    }
    fn size(&self) -> Reply<'_, Size> {
        self.graph.size()
    }
    fn page<'a>(&'a self, after: &'a Cursor, limit: usize) -> Reply<'a, Vec<Record>> {
        self.graph.page(after, limit)
    }
    fn restore<'a>(&'a self, records: &'a [Record]) -> Reply<'a, ()> {
        self.graph.restore(records)
    }
}
