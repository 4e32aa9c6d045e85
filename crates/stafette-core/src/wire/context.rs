//! What an orchestrator leaves to its next self: `data/state/orchestrator-context.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::present;
use super::scalar::{Count, Measure, Stamp};
use crate::Fields;

/// The version of the context file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ContextVersion {
    /// The only one there is.
    #[default]
    #[serde(rename = "v1.0")]
    V1,
}

/// Where a team stands, for the orchestrator that comes next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestratorContext {
    /// The version of the file.
    pub version: ContextVersion,
    /// Counts the orchestrators.
    pub run_number: Count,
    /// When the first of them started.
    pub started_at: Stamp,
    /// When the file was written.
    pub last_updated: Stamp,
    /// What the team is doing.
    pub current_phase: TeamPhase,
    /// What it has talked about.
    pub discussion_summary: DiscussionSummary,
    /// What it wants to change.
    pub code_changes: Vec<CodeChange>,
    /// How each member stands, by name.
    pub agent_states: BTreeMap<String, AgentState>,
    /// What comes next.
    pub next_action: NextAction,
    /// What came before.
    pub history: Vec<PastRun>,
    /// What all of it has cost, in dollars.
    pub total_cost: Measure,
    /// What people want the team to know.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub human_notes: Option<Option<String>>,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What a team is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum TeamPhase {
    /// It talks.
    Discussion,
    /// It reads its changes again.
    CodeReview,
    /// It puts them in place.
    ApplyChanges,
    /// It tries them.
    Testing,
}

/// What a team has talked about.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscussionSummary {
    /// What about.
    pub topic: String,
    /// What it has settled.
    pub key_decisions: Vec<String>,
    /// Whether enough of them agree.
    pub consensus_reached: bool,
    /// The last signal of each member, by name.
    pub consensus_signals: BTreeMap<String, String>,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A change to one file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeChange {
    /// Which file.
    pub file: String,
    /// What becomes of it.
    pub action: ChangeAction,
    /// What it then holds; a deletion has none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub content: Option<Option<String>>,
    /// When it was put in place.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Stamp>")]
    pub applied_at: Option<Option<Stamp>>,
    /// When it was found to hold.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Stamp>")]
    pub validated_at: Option<Option<Stamp>>,
    /// How far it is.
    pub status: ChangeStatus,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What becomes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ChangeAction {
    /// It is new.
    Create,
    /// It changes.
    Modify,
    /// It goes.
    Delete,
}

/// How far a change is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ChangeStatus {
    /// Not begun.
    Pending,
    /// In place.
    Applied,
    /// In place, and it holds.
    Validated,
    /// It does not hold.
    Failed,
}

/// How a member of the team stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// How many turns it has had.
    pub times_processed: Count,
    /// What they have cost, in dollars.
    pub total_cost: Measure,
    /// Whether it may have another.
    pub can_process: bool,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What comes next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextAction {
    /// What to do.
    #[serde(rename = "type")]
    pub kind: NextActionType,
    /// Why.
    pub reason: String,
    /// Whose turn it is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub target_agent: Option<Option<String>>,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum NextActionType {
    /// Talk on.
    ContinueDiscussion,
    /// Put the changes in place.
    ApplyChanges,
    /// Start again on the changed code.
    RestartWithNewCode,
    /// Wait for a person.
    ManualReview,
}

/// An orchestrator that was before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastRun {
    /// Which one.
    pub run_number: Count,
    /// What it ended in.
    pub phase: TeamPhase,
    /// What it did.
    pub summary: String,
    /// What it cost, in dollars.
    pub cost: Measure,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}
