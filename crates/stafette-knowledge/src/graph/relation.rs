//! How nodes belong together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Label, NodeKey, Provenance};

/// How two nodes belong together. The name says it from the first to the second.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Relation {
    /// A discussion, decision or task serves a goal.
    Serves,
    /// A decision came out of a discussion.
    DecidedIn,
    /// A task is part of a decision.
    PartOf,
    /// A task waits for another.
    DependsOn,
    /// An insight was learned from something: its evidence.
    LearnedFrom,
    /// An insight had a part in a discussion or decision.
    Informs,
    /// A handoff brought something about.
    Produced,
    /// A handoff was followed by another.
    FollowedBy,
}

impl Relation {
    /// All of them.
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

    /// The name that is stored.
    #[must_use]
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

    /// Reads the name that is stored.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|relation| relation.as_str() == name)
    }

    /// Whether it can stand between nodes of these labels.
    #[must_use]
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

/// A link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// From where.
    pub from: NodeKey,
    /// How.
    pub relation: Relation,
    /// To where.
    pub to: NodeKey,
    /// Who made it.
    pub made: Provenance,
}
