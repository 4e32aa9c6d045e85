//! The state that an orchestrator leaves to its successor: `data/state/orchestrator-context.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::present;
use super::scalar::{Count, Measure, Stamp};
use stafette_model::Fields;

/// The version of the context file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ContextVersion {
    /// Version 1, the only one.
    #[default]
    #[serde(rename = "v1.0")]
    V1,
}

/// The state of a team, for the next orchestrator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestratorContext {
    /// The version of the file.
    pub version: ContextVersion,
    /// The number of the orchestrator's run.
    pub run_number: Count,
    /// The time at which the first orchestrator started.
    pub started_at: Stamp,
    /// The time at which the file was written.
    pub last_updated: Stamp,
    /// The current phase of the team.
    pub current_phase: TeamPhase,
    /// The summary of the discussion.
    pub discussion_summary: DiscussionSummary,
    /// The changes that the team proposes.
    pub code_changes: Vec<CodeChange>,
    /// The state of each member, by name.
    pub agent_states: BTreeMap<String, AgentState>,
    /// The next action of the team.
    pub next_action: NextAction,
    /// The earlier orchestrators of the team.
    pub history: Vec<PastRun>,
    /// The total cost, in dollars.
    pub total_cost: Measure,
    /// People's notes for the team.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub human_notes: Option<Option<String>>,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The phase of a team.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum TeamPhase {
    /// The team discusses a topic.
    Discussion,
    /// The team reviews its changes.
    CodeReview,
    /// The team applies its changes.
    ApplyChanges,
    /// The team tests its changes.
    Testing,
}

/// The summary of a team's discussion.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscussionSummary {
    /// The topic of the discussion.
    pub topic: String,
    /// The decisions that were reached.
    pub key_decisions: Vec<String>,
    /// True if enough members agree.
    pub consensus_reached: bool,
    /// The last signal of each member, by name.
    pub consensus_signals: BTreeMap<String, String>,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A change to one file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeChange {
    /// The path of the file.
    pub file: String,
    /// The effect on the file.
    pub action: ChangeAction,
    /// The new content; none for a deletion.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub content: Option<Option<String>>,
    /// The time at which it was applied.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Stamp>")]
    pub applied_at: Option<Option<Stamp>>,
    /// The time at which it was validated.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Stamp>")]
    pub validated_at: Option<Option<Stamp>>,
    /// The status of the change.
    pub status: ChangeStatus,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The effect on a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ChangeAction {
    /// Creates a new file.
    Create,
    /// Changes an existing file.
    Modify,
    /// Deletes an existing file.
    Delete,
}

/// The status of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ChangeStatus {
    /// Not applied to the project yet.
    Pending,
    /// Applied to the project.
    Applied,
    /// Applied, and the validation succeeded.
    Validated,
    /// Applied, and the validation failed.
    Failed,
}

/// The state of a team member.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// The number of turns that it has had.
    pub times_processed: Count,
    /// The total cost of its turns, in dollars.
    pub total_cost: Measure,
    /// True if it may have another turn.
    pub can_process: bool,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The next action of a team.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextAction {
    /// The kind of action.
    #[serde(rename = "type")]
    pub kind: NextActionType,
    /// The reason for the action.
    pub reason: String,
    /// The agent whose turn is next.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub target_agent: Option<Option<String>>,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The kind of the next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum NextActionType {
    /// Continue with the discussion.
    ContinueDiscussion,
    /// Apply the changes that are ready.
    ApplyChanges,
    /// Restart with the changed code.
    RestartWithNewCode,
    /// Wait for a person.
    ManualReview,
}

/// An earlier orchestrator of the team.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastRun {
    /// The number of the run.
    pub run_number: Count,
    /// The phase in which it ended.
    pub phase: TeamPhase,
    /// A summary of its work.
    pub summary: String,
    /// The cost of the run, in dollars.
    pub cost: Measure,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}
