//! The kinds of nodes, with the properties that the stages share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Priority};

use super::NodeKey;
use crate::constitution::Recommendation;

/// The kind of a node.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub enum Label {
    /// A decision between options.
    Decision,
    /// The summary of a discussion.
    Discussion,
    /// A goal of the user.
    Goal,
    /// A handoff, mirrored for analysis.
    Handoff,
    /// A pattern that was learned from past work.
    Insight,
    /// A piece of work.
    Task,
}

impl Label {
    /// All labels, in sorting order.
    pub const ALL: [Label; 6] = [
        Label::Decision,
        Label::Discussion,
        Label::Goal,
        Label::Handoff,
        Label::Insight,
        Label::Task,
    ];

    /// Returns the name that is stored.
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

    /// Parses the stored name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|label| label.as_str() == name)
    }
}

/// The summary of a discussion; the messages themselves are in the history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Discussion {
    /// The id of the discussion.
    pub id: String,
    /// The subject of the discussion.
    pub topic: String,
    /// The alignment of the proposal with the goals, from 0 to 1.
    pub alignment: f64,
    /// The recommendation that the discussion ended with.
    pub recommendation: Recommendation,
    /// The id of the history thread with the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// The state of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    /// Approved, without any tasks yet.
    #[default]
    Pending,
    /// It is split into tasks.
    Planned,
    /// All its tasks are done.
    Done,
    /// It was given up.
    Dropped,
}

/// A decision that a person approved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The id of the decision.
    pub id: String,
    /// The option that was chosen.
    pub option: String,
    /// The computed return on investment.
    pub roi: f64,
    /// The reasons for this option.
    pub reasoning: String,
    /// The horizon or kind of goal that it serves.
    #[serde(rename = "servesGoalType", default, skip_serializing_if = "Option::is_none")]
    pub serves_goal_type: Option<String>,
    /// The state of the decision.
    #[serde(default)]
    pub status: DecisionStatus,
    /// The actual return, in money; `None` while it is not known.
    #[serde(rename = "actualReturn", default, skip_serializing_if = "Option::is_none")]
    pub actual_return: Option<f64>,
    /// The terms that add up to the return.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub breakdown: Fields,
}

/// The state of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It still has to be done.
    #[default]
    Open,
    /// It has a time in the calendar.
    Scheduled,
    /// It has been done.
    Done,
    /// It cannot continue at the moment.
    Blocked,
    /// It was given up.
    Dropped,
}

/// A piece of work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// The id of the task.
    pub id: String,
    /// The work to do, in a few words.
    pub title: String,
    /// The expected effort in hours, corrected by learned estimates.
    #[serde(rename = "effortHours")]
    pub effort_hours: f64,
    /// The urgency of the task.
    #[serde(default)]
    pub priority: Priority,
    /// The state of the task.
    #[serde(default)]
    pub status: TaskStatus,
    /// The kind of work; estimates are learned per kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The agent's own estimate in hours, before the learned correction for its kind.
    #[serde(rename = "estimatedHours", default, skip_serializing_if = "Option::is_none")]
    pub estimated_hours: Option<f64>,
    /// The actual effort in hours; `None` until it is done.
    #[serde(rename = "actualHours", default, skip_serializing_if = "Option::is_none")]
    pub actual_hours: Option<f64>,
    /// The calendar event of the task; `None` while it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
}

/// A pattern that was learned from past work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InsightNode {
    /// The id of the insight.
    pub id: String,
    /// The pattern, in a sentence.
    pub pattern: String,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The evidence, in a sentence; the links lead to its sources.
    pub evidence: String,
    /// The subject of the insight.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// The complete finding: samples, effect, interval, and the change that it suggests.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub finding: Fields,
}

/// A goal of the user.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// The id of the goal.
    pub id: String,
    /// The goal, in a few words.
    pub title: String,
    /// The time frame in the user's words: `week`, `quarter`, `life`.
    pub horizon: String,
    /// The sign by which the goal counts as reached.
    pub target: String,
}

/// A handoff, mirrored for analysis.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// The run and the number of the handoff: `RUN/h7`.
    pub id: String,
    /// The agent or person who handed over.
    pub from: String,
    /// The agent or person who took over.
    pub to: String,
    /// The reason for the handoff, as its word on the wire.
    pub reason: String,
    /// The state of the handoff, as the word of its enum.
    pub state: String,
    /// A short summary of its content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The time that it was open, in seconds; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The cost in US dollars; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
}

/// The content of a node.
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
    /// Returns the key of the node.
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

    /// Returns a message about the first number that is not finite or out of range.
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

    /// Returns the text that is searched for words; only insights have one.
    pub(crate) fn searched(&self) -> Option<String> {
        match self {
            Entity::Insight(node) => {
                Some(super::words_of(&format!("{} {}", node.topic, node.pattern)).join(" "))
            }
            _ => None,
        }
    }
}
