//! The nodes that there are, with the properties that the stages share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Priority};

use super::NodeKey;
use crate::constitution::Recommendation;

/// What kind of node.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub enum Label {
    /// A choice that was made.
    Decision,
    /// The summary of a talk.
    Discussion,
    /// Something to reach.
    Goal,
    /// A handoff, mirrored.
    Handoff,
    /// A pattern that was learned.
    Insight,
    /// A piece of work.
    Task,
}

impl Label {
    /// All of them, in the order in which they sort.
    pub const ALL: [Label; 6] = [
        Label::Decision,
        Label::Discussion,
        Label::Goal,
        Label::Handoff,
        Label::Insight,
        Label::Task,
    ];

    /// The name that is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Label::Decision => "Decision",
            Label::Discussion => "Discussion",
            Label::Goal => "Goal",
            Label::Handoff => "Handoff",
            Label::Insight => "Insight",
            Label::Task => "Task",
        }
    }

    /// Reads the name that is stored.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|label| label.as_str() == name)
    }
}

/// The summary of a talk; the talk itself is in the history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Discussion {
    /// Its id.
    pub id: String,
    /// What it was about.
    pub topic: String,
    /// How well the proposal goes with the goals, from 0 to 1.
    pub alignment: f64,
    /// What it came to.
    pub recommendation: Recommendation,
    /// The thread with the talk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// How far a decision has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    /// Approved, and nobody works on it.
    #[default]
    Pending,
    /// Split into tasks.
    Planned,
    /// All done.
    Done,
    /// Given up.
    Dropped,
}

/// A choice that was approved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Its id.
    pub id: String,
    /// What was chosen.
    pub option: String,
    /// The return that was reckoned.
    pub roi: f64,
    /// Why this one.
    pub reasoning: String,
    /// The horizon or kind of goal that it serves.
    #[serde(rename = "servesGoalType", default, skip_serializing_if = "Option::is_none")]
    pub serves_goal_type: Option<String>,
    /// How far it has come.
    #[serde(default)]
    pub status: DecisionStatus,
    /// What came of it in the end, in money.
    #[serde(rename = "actualReturn", default, skip_serializing_if = "Option::is_none")]
    pub actual_return: Option<f64>,
    /// What the return is made of.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub breakdown: Fields,
}

/// How far a task has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// To be done.
    #[default]
    Open,
    /// Has a place in the calendar.
    Scheduled,
    /// Done.
    Done,
    /// Cannot go on.
    Blocked,
    /// Given up.
    Dropped,
}

/// A piece of work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// How long it should take.
    #[serde(rename = "effortHours")]
    pub effort_hours: f64,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// How far it has come.
    #[serde(default)]
    pub status: TaskStatus,
    /// The kind of work, by which estimates are learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What its agent thought it would take, before what was learned about its kind.
    #[serde(rename = "estimatedHours", default, skip_serializing_if = "Option::is_none")]
    pub estimated_hours: Option<f64>,
    /// How long it took.
    #[serde(rename = "actualHours", default, skip_serializing_if = "Option::is_none")]
    pub actual_hours: Option<f64>,
    /// Its event in the calendar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
}

/// A pattern that was learned.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InsightNode {
    /// Its id.
    pub id: String,
    /// The pattern in a sentence.
    pub pattern: String,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// What shows it, in a sentence; the links lead to it.
    pub evidence: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// The whole finding: samples, effect, interval, what it would change.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub finding: Fields,
}

/// Something to reach.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// Its id.
    pub id: String,
    /// What it is.
    pub title: String,
    /// By when, in the user's words: `week`, `quarter`, `life`.
    pub horizon: String,
    /// How to see that it is reached.
    pub target: String,
}

/// A handoff, mirrored for analysis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// `RUN/h7`.
    pub id: String,
    /// Who gave.
    pub from: String,
    /// Who took.
    pub to: String,
    /// Why.
    pub reason: String,
    /// How far it has come, by the word of the state.
    pub state: String,
    /// What it says in short.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// How long it was open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
}

/// What a node says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "label")]
#[expect(missing_docs, reason = "each is documented where it is defined")]
pub enum Entity {
    Decision(Decision),
    Discussion(Discussion),
    Goal(Goal),
    Handoff(Handoff),
    Insight(InsightNode),
    Task(Task),
}

impl Entity {
    /// Which node it is.
    #[must_use]
    pub fn key(&self) -> NodeKey {
        let (label, id) = match self {
            Entity::Decision(node) => (Label::Decision, &node.id),
            Entity::Discussion(node) => (Label::Discussion, &node.id),
            Entity::Goal(node) => (Label::Goal, &node.id),
            Entity::Handoff(node) => (Label::Handoff, &node.id),
            Entity::Insight(node) => (Label::Insight, &node.id),
            Entity::Task(node) => (Label::Task, &node.id),
        };
        NodeKey::new(label, id)
    }

    /// A number that no backend could give back, if there is one.
    pub(super) fn bad_number(&self) -> Option<String> {
        let share = |name, value: f64| {
            let bad = !(0.0..=1.0).contains(&value);
            bad.then(|| format!("{name} is {value}, it must be from 0 to 1"))
        };
        let finite =
            |name, value: f64| (!value.is_finite()).then(|| format!("{name} is not a number"));
        let hours = |name, value: f64| {
            (!(0.0..=1e6).contains(&value)).then(|| format!("{name} is {value}"))
        };
        match self {
            Entity::Decision(node) => finite("roi", node.roi)
                .or_else(|| node.actual_return.and_then(|came| finite("actualReturn", came))),
            Entity::Discussion(node) => share("alignment", node.alignment),
            Entity::Insight(node) => share("confidence", node.confidence),
            Entity::Task(node) => hours("effortHours", node.effort_hours)
                .or_else(|| node.estimated_hours.and_then(|said| hours("estimatedHours", said)))
                .or_else(|| node.actual_hours.and_then(|actual| hours("actualHours", actual))),
            Entity::Handoff(node) => [("seconds", node.seconds), ("dollars", node.dollars)]
                .into_iter()
                .find_map(|(name, value)| value.and_then(|value| finite(name, value))),
            Entity::Goal(_) => None,
        }
    }

    /// What is searched for words, when it is an insight.
    pub(crate) fn searched(&self) -> Option<String> {
        match self {
            Entity::Insight(node) => {
                Some(super::words_of(&format!("{} {}", node.topic, node.pattern)).join(" "))
            }
            _ => None,
        }
    }
}
