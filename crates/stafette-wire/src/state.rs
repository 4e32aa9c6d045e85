//! The state that agents share: `.claude/state.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::WorkflowType;
use super::present;
use super::scalar::{Count, Stamp, Version};
use stafette_model::Fields;

/// The state of the shared work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SharedState {
    /// The version of the file.
    pub schema_version: Version,
    /// The current work; null or absent if there is none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<CurrentWorkflow>")]
    pub current_workflow: Option<Option<CurrentWorkflow>>,
    /// The agent that has the work; null or absent if none has.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub current_agent: Option<Option<String>>,
    /// The handoff that passed the work to it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub last_handoff: Option<Option<String>>,
    /// The locks, by resource.
    pub locks: BTreeMap<String, LockEntry>,
    /// The number of the round.
    pub iteration: Count,
    /// The state of each agent, by name.
    pub agents: BTreeMap<String, AgentEntry>,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The work that agents share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CurrentWorkflow {
    /// The id of the work.
    pub id: String,
    /// The kind of work.
    #[serde(rename = "type")]
    pub kind: WorkflowType,
    /// The time at which it began.
    pub started: Stamp,
    /// The path of its specification.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub spec: Option<Option<String>>,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A lock on a resource.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LockEntry {
    /// The agent that holds it.
    pub agent: String,
    /// The time at which it was acquired.
    pub acquired: Stamp,
    /// The time at which it expires.
    pub expires: Stamp,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The state of an agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentEntry {
    /// `idle`, `active`, `completed`, or a word of the agent's own: agents also record their
    /// verdicts here.
    pub status: String,
    /// The time of its last activity.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Stamp>")]
    pub last_active: Option<Option<Stamp>>,
    /// Additional fields of the writer.
    #[serde(flatten)]
    pub extra: Fields,
}
