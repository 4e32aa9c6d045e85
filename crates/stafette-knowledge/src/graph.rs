//! The graph of what was discussed, decided, done and learned: typed nodes and links, each with
//! who wrote it, when, and for which handoff.
//!
//! Invariants:
//! - A batch is there as a whole or not at all, and once, however often it is sent: its key says.
//! - A link stands between two nodes that are there, of labels that it may join.
//! - A node that is written again keeps who made it; who changed it last is beside that.
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
pub use exchange::{ExchangeError, Exchanged, FORMAT, check, export, import};
pub use mirror::Mirror;
pub use queued::{Condition, MOST_WAITING, Queued, SetAside};
pub use relation::{Link, Relation};

/// The most writes in one batch.
pub const BATCH: usize = 1000;

/// The most nodes or links that one answer holds.
pub const PAGE: usize = 1000;

/// The furthest that a neighbourhood reaches.
pub const REACH: u8 = 3;

/// The longest id, in bytes.
pub const LONGEST_ID: usize = 200;

/// The largest node, in bytes of JSON.
pub const LARGEST_NODE: usize = 64 << 10;

/// Which node: its label and its id. Printed as `task:t1`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct NodeKey {
    /// What kind of node.
    pub label: Label,
    /// Its id among those.
    pub id: String,
}

impl NodeKey {
    /// A node of a label.
    #[must_use]
    pub fn new(label: Label, id: &str) -> Self {
        NodeKey { label, id: id.to_owned() }
    }
    /// A task.
    #[must_use]
    pub fn task(id: &str) -> Self {
        Self::new(Label::Task, id)
    }
    /// A decision.
    #[must_use]
    pub fn decision(id: &str) -> Self {
        Self::new(Label::Decision, id)
    }
    /// An insight.
    #[must_use]
    pub fn insight(id: &str) -> Self {
        Self::new(Label::Insight, id)
    }
    /// A goal.
    #[must_use]
    pub fn goal(id: &str) -> Self {
        Self::new(Label::Goal, id)
    }
    /// A discussion.
    #[must_use]
    pub fn discussion(id: &str) -> Self {
        Self::new(Label::Discussion, id)
    }
    /// A handoff as it is mirrored.
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

/// The text names no node.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{text}` is not a node: they look like task:t1 or decision:d7")]
pub struct NotANode {
    /// What was given.
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

/// Where something comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Who wrote it.
    pub by: Party,
    /// When.
    pub at: Time,
    /// In which run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// For which handoff of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
}

/// A node with where it comes from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// What it says.
    #[serde(flatten)]
    pub entity: Entity,
    /// Who made it.
    pub made: Provenance,
    /// Who changed it last; whoever made it, at first.
    pub changed: Provenance,
}

impl Node {
    /// Which node it is.
    #[must_use]
    pub fn key(&self) -> NodeKey {
        self.entity.key()
    }
}

/// One thing to be written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Write {
    /// A node, new or in place of what it said before.
    Put(Entity),
    /// A link; one that is there already stays as it is.
    Link {
        /// From where.
        from: NodeKey,
        /// How.
        relation: Relation,
        /// To where.
        to: NodeKey,
    },
}

/// What is written together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Batch {
    /// Names it for ever: sent again, it does nothing.
    pub key: String,
    /// Where all of it comes from.
    pub provenance: Provenance,
    /// In this order.
    pub writes: Vec<Write>,
}

impl Batch {
    /// What it holds, in one number: the same key with another content is a mistake.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(&self.writes).unwrap_or_default();
        Uuid::new_v5(&Uuid::NAMESPACE_OID, &text).simple().to_string()
    }

    /// Whether it can be written at all, whatever the graph holds.
    ///
    /// # Errors
    /// Says what is wrong with it.
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

/// What became of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    /// It is there now.
    Now,
    /// It was there before.
    Before,
    /// The graph is away; it is kept and will be written in its turn.
    Queued,
}

/// A goal with the decisions that serve it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GoalView {
    /// The goal.
    pub goal: Node,
    /// The decisions, newest first.
    pub decisions: Vec<Node>,
}

/// A part of the graph.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// By key.
    pub nodes: Vec<Node>,
    /// Those between two of these nodes.
    pub links: Vec<Link>,
    /// Whether there was more.
    pub cut: bool,
}

/// How many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Size {
    /// Nodes.
    pub nodes: u64,
    /// Links.
    pub links: u64,
}

/// Something went wrong with the graph.
#[derive(Debug, Error)]
pub enum GraphError {
    /// The batch cannot be meant.
    #[error("the batch `{key}` cannot be written: {why}")]
    Malformed {
        /// Which batch.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// A link leads to a node that is not there.
    #[error("the batch `{key}` links {node}, which is not there")]
    Missing {
        /// Which batch.
        key: String,
        /// Which node.
        node: NodeKey,
    },
    /// The key was used for something else.
    #[error("the key `{key}` was used for another batch before")]
    KeyReused {
        /// Which key.
        key: String,
    },
    /// The graph cannot be reached; the same can be tried again.
    #[error("the graph cannot be reached: {why}")]
    Away {
        /// What was heard last.
        why: String,
    },
    /// So much waits already that no more is taken.
    #[error("{waiting} batches wait for the graph, no more are taken")]
    QueueFull {
        /// How many.
        waiting: u64,
    },
    /// What is stored cannot be read.
    #[error("what is stored of {what} cannot be read: {why}")]
    Corrupt {
        /// Of what.
        what: String,
        /// Why.
        why: String,
    },
    /// Anything else.
    #[error("the graph failed: {why}")]
    Failed {
        /// What it said.
        why: String,
    },
}

impl GraphError {
    /// The code that agents and pages are shown.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            GraphError::Away { .. } | GraphError::QueueFull { .. } => "MCP_CONNECTION_FAILED",
            GraphError::Malformed { .. } => "GRAPH_BATCH_MALFORMED",
            GraphError::Missing { .. } => "GRAPH_NODE_MISSING",
            GraphError::KeyReused { .. } => "GRAPH_KEY_REUSED",
            GraphError::Corrupt { .. } | GraphError::Failed { .. } => "GRAPH_FAILED",
        }
    }

    /// Whether the same can go better another time.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, GraphError::Away { .. } | GraphError::QueueFull { .. })
    }
}

/// An answer that comes later.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, GraphError>> + Send + 'a>>;

/// One record of an export: first all nodes, then all links, each in the order of their keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A node.
    Node(Node),
    /// A link.
    Link(Link),
}

/// All that the stages ask of the graph. Limits above [`PAGE`] are taken for that.
pub trait Graph: fmt::Debug + Send + Sync {
    /// Writes a batch, once.
    fn apply<'a>(&'a self, batch: &'a Batch) -> Reply<'a, Applied>;
    /// One node.
    fn node<'a>(&'a self, key: &'a NodeKey) -> Reply<'a, Option<Node>>;
    /// The nodes of a label that were made last, newest first.
    fn newest(&self, label: Label, limit: usize) -> Reply<'_, Vec<Node>>;
    /// Decisions that nobody has taken up yet, oldest first.
    fn pending_decisions(&self, limit: usize) -> Reply<'_, Vec<Node>>;
    /// The tasks of a decision, oldest first.
    fn tasks_of<'a>(&'a self, decision: &'a str, limit: usize) -> Reply<'a, Vec<Node>>;
    /// Goals by id, each with the newest decisions that serve it, at most `each`.
    fn goals(&self, limit: usize, each: usize) -> Reply<'_, Vec<GoalView>>;
    /// Insights that have all words of a topic, the surest first. No words: all insights.
    fn insights<'a>(&'a self, topic: &'a str, limit: usize) -> Reply<'a, Vec<Node>>;
    /// What is within `reach` links of a node, nearest first until the limit.
    fn around<'a>(&'a self, key: &'a NodeKey, reach: u8, limit: usize) -> Reply<'a, Picture>;
    /// The ways from an insight to what it was learned from, and on to the decision and the
    /// discussion that this belongs to.
    fn evidence_of<'a>(&'a self, insight: &'a str, limit: usize) -> Reply<'a, Vec<Vec<NodeKey>>>;
    /// How much there is.
    fn size(&self) -> Reply<'_, Size>;
    /// The next records of an export.
    fn page<'a>(&'a self, after: &'a Cursor, limit: usize) -> Reply<'a, Vec<Record>>;
    /// Writes records of an export as they are, with who made them.
    fn restore<'a>(&'a self, records: &'a [Record]) -> Reply<'a, ()>;
}

/// The words of a topic, as both backends look for them.
pub(crate) fn words(topic: &str) -> Vec<String> {
    words_of(topic).into_iter().take(16).collect()
}

/// All words of a text in small letters; the same on every backend, whatever its own idea of them.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// What a stored node says, from its properties.
pub(crate) fn corrupt(what: impl fmt::Display, why: impl fmt::Display) -> GraphError {
    GraphError::Corrupt { what: what.to_string(), why: why.to_string() }
}

/// The properties of an entity as a JSON object, without its label.
pub(crate) fn properties(entity: &Entity) -> Fields {
    match serde_json::to_value(entity) {
        Ok(serde_json::Value::Object(mut fields)) => {
            fields.remove("label");
            fields
        }
        _ => Fields::new(),
    }
}
