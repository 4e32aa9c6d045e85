//! The knowledge graph of discussions, decisions, work and insights: typed nodes and links, each
//! with its author, its time and the handoff that it was written for.
//!
//! Invariants:
//! - A batch is written as a whole or not at all, and once, however often it is sent: its key
//!   identifies it.
//! - A link joins two existing nodes, of labels that it may join.
//! - A node that is written again keeps its first author; the author of the last change is stored
//!   beside that.
//! - Every answer is bounded and in an order that both backends share.

use std::fmt;
use std::pin::Pin;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, HandoffId, Party, RunId, Time};
use thiserror::Error;
use uuid::Uuid;

mod cursor;
mod entity;
mod exchange;
mod mirror;
mod queued;
mod relation;
pub(crate) mod walk;

pub use cursor::{Cursor, NotACursor};
pub use entity::{
    Decision, DecisionStatus, Discussion, Entity, Goal, Handoff, InsightNode, Label, Task,
    TaskStatus,
};
pub use exchange::{Exchanged, FORMAT, check};
pub use mirror::Mirror;
pub use queued::{Condition, MOST_WAITING, Queued, SetAside};
pub use relation::{Link, Relation};

/// The most writes in one batch.
pub const BATCH: usize = 1000;

/// The most nodes or links that one answer holds.
pub const PAGE: usize = 1000;

/// The largest distance of a neighbourhood, in links.
pub const REACH: u8 = 3;

/// The longest id, in bytes.
pub const LONGEST_ID: usize = 200;

/// The largest node, in bytes of JSON.
pub const LARGEST_NODE: usize = 64 << 10;

/// The key of a node: its label and its id. Printed as `task:t1`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct NodeKey {
    /// The kind of node.
    pub label: Label,
    /// The id, unique among nodes of this label.
    pub id: String,
}

impl NodeKey {
    /// Makes the key of a node with this label.
    #[must_use]
    pub fn new(label: Label, id: &str) -> Self {
        NodeKey { label, id: id.to_owned() }
    }
    /// Makes the key of a task.
    #[must_use]
    pub fn task(id: &str) -> Self {
        Self::new(Label::Task, id)
    }
    /// Makes the key of a decision.
    #[must_use]
    pub fn decision(id: &str) -> Self {
        Self::new(Label::Decision, id)
    }
    /// Makes the key of an insight.
    #[must_use]
    pub fn insight(id: &str) -> Self {
        Self::new(Label::Insight, id)
    }
    /// Makes the key of a goal.
    #[must_use]
    pub fn goal(id: &str) -> Self {
        Self::new(Label::Goal, id)
    }
    /// Makes the key of a discussion.
    #[must_use]
    pub fn discussion(id: &str) -> Self {
        Self::new(Label::Discussion, id)
    }
    /// Makes the key of a mirrored handoff.
    #[must_use]
    pub fn handoff(run: RunId, handoff: HandoffId) -> Self {
        Self::new(Label::Handoff, &format!("{run}/{handoff}"))
    }
}

impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.label.as_str().to_ascii_lowercase(), self.id)
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a node key.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{text}` is not a node: they look like task:t1 or decision:d7")]
pub struct NotANode {
    pub text: String,
}

impl FromStr for NodeKey {
    type Err = NotANode;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (label, id) = text.split_once(':')?;
            let known = |known: &&Label| known.as_str().eq_ignore_ascii_case(label);
            let label = Label::ALL.iter().find(known)?;
            (!id.is_empty()).then(|| NodeKey::new(*label, id))
        };
        parse().ok_or_else(|| NotANode { text: text.to_owned() })
    }
}

impl TryFrom<String> for NodeKey {
    type Error = NotANode;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<NodeKey> for String {
    fn from(key: NodeKey) -> Self {
        key.to_string()
    }
}

/// The origin of a node or link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The author of the write.
    pub by: Party,
    /// The time of the write.
    pub at: Time,
    /// The run in which it was written; `None` outside of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The handoff of that run that it was written for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
}

/// A node with its origin.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The content of the node.
    #[serde(flatten)]
    pub entity: Entity,
    /// The origin of its first version.
    pub made: Provenance,
    /// The origin of its last change; equal to `made` until the node is written again.
    pub changed: Provenance,
}

impl Node {
    /// Returns the key of the node.
    pub fn key(&self) -> NodeKey {
        self.entity.key()
    }
}

/// One write of a batch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Write {
    /// Writes a node, new or in place of its earlier content.
    Put(Entity),
    /// Writes a link; an existing one stays as it is.
    Link {
        /// The node where the link starts.
        from: NodeKey,
        /// The relation between the two nodes.
        relation: Relation,
        /// The node where the link ends.
        to: NodeKey,
    },
}

/// A set of writes that are applied together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Batch {
    /// Identifies the batch permanently: sent again, it has no effect.
    pub key: String,
    /// The origin of all its writes.
    pub provenance: Provenance,
    /// The writes, applied in this order.
    pub writes: Vec<Write>,
}

impl Batch {
    /// Returns a digest of the content: the same key with another digest is an error.
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(&self.writes).unwrap_or_default();
        Uuid::new_v5(&Uuid::NAMESPACE_OID, &text).simple().to_string()
    }

    /// Checks that the batch is valid on its own, regardless of what the graph holds.
    ///
    /// # Errors
    /// Names the first problem.
    pub fn check(&self) -> Result<(), GraphError> {
        let wrong = |why: String| Err(GraphError::Malformed { key: self.key.clone(), why });
        if self.key.is_empty() || self.key.len() > LONGEST_ID {
            return wrong(format!("its key must have 1 to {LONGEST_ID} bytes"));
        }
        if self.writes.len() > BATCH {
            return wrong(format!("it has {} writes, the limit is {BATCH}", self.writes.len()));
        }
        for write in &self.writes {
            match write {
                Write::Put(entity) => {
                    let id = &entity.key().id;
                    if id.is_empty() || id.len() > LONGEST_ID {
                        return wrong(format!("an id must have 1 to {LONGEST_ID} bytes"));
                    }
                    let bytes = serde_json::to_vec(entity).map_or(usize::MAX, |text| text.len());
                    if bytes > LARGEST_NODE {
                        return wrong(format!("{} is too large", entity.key()));
                    }
                    if let Some(number) = entity.bad_number() {
                        return wrong(format!("{}: {number}", entity.key()));
                    }
                }
                Write::Link { from, relation, to } => {
                    if !relation.joins(from.label, to.label) {
                        return wrong(format!("{} cannot join {from} and {to}", relation.as_str()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The outcome of sending a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    /// The batch was written now.
    Now,
    /// The batch had been written before.
    Before,
    /// The graph is unreachable; the batch is stored and will be written in its turn.
    Queued,
}

/// A goal with the decisions that serve it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GoalView {
    /// The node of the goal.
    pub goal: Node,
    /// The decisions, newest first.
    pub decisions: Vec<Node>,
}

/// A part of the graph.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// The nodes, ordered by key.
    pub nodes: Vec<Node>,
    /// The links between two of these nodes.
    pub links: Vec<Link>,
    /// True if the limit left something out.
    pub cut: bool,
}

/// The size of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Size {
    /// The number of nodes.
    pub nodes: u64,
    /// The number of links.
    pub links: u64,
}

/// An operation on the graph failed.
#[derive(Debug, Error)]
pub enum GraphError {
    #[error("the batch `{key}` cannot be written: {why}")]
    Malformed { key: String, why: String },
    #[error("the batch `{key}` links {node}, which is not there")]
    Missing { key: String, node: NodeKey },
    #[error("the key `{key}` was used for another batch before")]
    KeyReused { key: String },
    /// The graph cannot be reached; the call can be retried.
    #[error("the graph cannot be reached: {why}")]
    Away { why: String },
    #[error("{waiting} batches wait for the graph, no more are taken")]
    QueueFull { waiting: u64 },
    #[error("what is stored of {what} cannot be read: {why}")]
    Corrupt { what: String, why: String },
    #[error("the graph failed: {why}")]
    Failed { why: String },
}

impl GraphError {
    /// Returns the error code for agents and for the page.
    pub fn code(&self) -> &'static str {
        match self {
            GraphError::Away { .. } | GraphError::QueueFull { .. } => "MCP_CONNECTION_FAILED",
            GraphError::Malformed { .. } => "GRAPH_BATCH_MALFORMED",
            GraphError::Missing { .. } => "GRAPH_NODE_MISSING",
            GraphError::KeyReused { .. } => "GRAPH_KEY_REUSED",
            GraphError::Corrupt { .. } | GraphError::Failed { .. } => "GRAPH_FAILED",
        }
    }

    /// True if a retry may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, GraphError::Away { .. } | GraphError::QueueFull { .. })
    }
}

/// A result that is ready later.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, GraphError>> + Send + 'a>>;

/// One record of an export: first all nodes, then all links, each in the order of their keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A node with its origin.
    Node(Node),
    /// A link with its origin.
    Link(Link),
}

/// The operations that the stages need from a graph backend. Limits above [`PAGE`] count as
/// [`PAGE`].
pub trait Graph: fmt::Debug + Send + Sync {
    /// Writes a batch, exactly once.
    fn apply<'a>(&'a self, batch: &'a Batch) -> Reply<'a, Applied>;
    /// Returns one node, or `None` if it does not exist.
    fn node<'a>(&'a self, key: &'a NodeKey) -> Reply<'a, Option<Node>>;
    /// Returns the newest nodes of a label, newest first.
    fn newest(&self, label: Label, limit: usize) -> Reply<'_, Vec<Node>>;
    /// Returns approved decisions that have no tasks yet, oldest first.
    fn pending_decisions(&self, limit: usize) -> Reply<'_, Vec<Node>>;
    /// Returns the tasks of a decision, oldest first.
    fn tasks_of<'a>(&'a self, decision: &'a str, limit: usize) -> Reply<'a, Vec<Node>>;
    /// Returns goals by id, each with at most `each` of the newest decisions that serve it.
    fn goals(&self, limit: usize, each: usize) -> Reply<'_, Vec<GoalView>>;
    /// Returns insights that contain all words of a topic, the most certain first. Without words:
    /// all insights.
    fn insights<'a>(&'a self, topic: &'a str, limit: usize) -> Reply<'a, Vec<Node>>;
    /// Returns the nodes within `reach` links of a node, nearest first up to the limit.
    fn around<'a>(&'a self, key: &'a NodeKey, reach: u8, limit: usize) -> Reply<'a, Picture>;
    /// Returns the paths from an insight to its evidence, and on to the decision and the discussion
    /// that the evidence belongs to.
    fn evidence_of<'a>(&'a self, insight: &'a str, limit: usize) -> Reply<'a, Vec<Vec<NodeKey>>>;
    /// Returns the number of nodes and links.
    fn size(&self) -> Reply<'_, Size>;
    /// Returns the next records of an export.
    fn page<'a>(&'a self, after: &'a Cursor, limit: usize) -> Reply<'a, Vec<Record>>;
    /// Writes the records of an export as they are, with their origins.
    fn restore<'a>(&'a self, records: &'a [Record]) -> Reply<'a, ()>;
}

/// Splits a topic into the words that both backends search for.
pub(crate) fn words(topic: &str) -> Vec<String> {
    words_of(topic).into_iter().take(16).collect()
}

/// Returns all words of a text in lower case. Both backends use this, so that they agree on what a
/// word is.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Makes the error for stored data that cannot be read.
pub(crate) fn corrupt(what: impl fmt::Display, why: impl fmt::Display) -> GraphError {
    GraphError::Corrupt { what: what.to_string(), why: why.to_string() }
}

/// Returns the properties of an entity as a JSON object, without its label.
pub(crate) fn properties(entity: &Entity) -> Fields {
    match serde_json::to_value(entity) {
        Ok(serde_json::Value::Object(mut fields)) => {
            fields.remove("label");
            fields
        }
        _ => Fields::new(),
    }
}
