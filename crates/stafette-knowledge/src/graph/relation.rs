//! The relations between nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Label, NodeKey, Provenance};

/// The relation between two nodes. The name reads from the first node to the second.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Relation {
    /// A discussion, decision or task serves a goal.
    Serves,
    /// A decision resulted from a discussion.
    DecidedIn,
    /// A task is part of a decision.
    PartOf,
    /// A task waits for another.
    DependsOn,
    /// An insight was learned from something: its evidence.
    LearnedFrom,
    /// An insight had a part in a discussion or decision.
    Informs,
    /// A handoff produced something.
    Produced,
    /// A handoff was followed by another.
    FollowedBy,
}

impl Relation {
    /// All relations that exist.
    pub const ALL: [Relation; 8] = [
        Relation::Serves,
        Relation::DecidedIn,
        Relation::PartOf,
        Relation::DependsOn,
        Relation::LearnedFrom,
        Relation::Informs,
        Relation::Produced,
        Relation::FollowedBy,
    ];

    /// Returns the name that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Relation::Serves => "SERVES",
            Relation::DecidedIn => "DECIDED_IN",
            Relation::PartOf => "PART_OF",
            Relation::DependsOn => "DEPENDS_ON",
            Relation::LearnedFrom => "LEARNED_FROM",
            Relation::Informs => "INFORMS",
            Relation::Produced => "PRODUCED",
            Relation::FollowedBy => "FOLLOWED_BY",
        }
    }

    /// Parses the stored name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|relation| relation.as_str() == name)
    }

    /// True if the relation may join nodes of these labels.
    pub fn joins(self, from: Label, to: Label) -> bool {
        use Label::{Decision, Discussion, Goal, Handoff, Insight, Task};
        match self {
            Relation::Serves => matches!((from, to), (Discussion | Decision | Task, Goal)),
            Relation::DecidedIn => matches!((from, to), (Decision, Discussion)),
            Relation::PartOf => matches!((from, to), (Task, Decision)),
            Relation::DependsOn => matches!((from, to), (Task, Task)),
            Relation::LearnedFrom => {
                matches!((from, to), (Insight, Discussion | Decision | Task | Handoff))
            }
            Relation::Informs => matches!((from, to), (Insight, Discussion | Decision)),
            Relation::Produced => {
                matches!((from, to), (Handoff, Discussion | Decision | Task | Insight | Goal))
            }
            Relation::FollowedBy => matches!((from, to), (Handoff, Handoff)),
        }
    }
}

/// A link between two nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The node where the link starts.
    pub from: NodeKey,
    /// The relation between the two nodes.
    pub relation: Relation,
    /// The node where the link ends.
    pub to: NodeKey,
    /// The origin of the link.
    pub made: Provenance,
}
