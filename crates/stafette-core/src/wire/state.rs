//! The state that agents share: `.claude/state.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::WorkflowType;
use super::present;
use super::scalar::{Count, Stamp, Version};
use crate::Fields;

/// Where the shared work stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SharedState {
    /// The version of the file.
    pub schema_version: Version,
    /// The work at hand; null or absent when there is none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<CurrentWorkflow>")]
    pub current_workflow: Option<Option<CurrentWorkflow>>,
    /// Who has it; null or absent when nobody has.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub current_agent: Option<Option<String>>,
    /// The handoff that brought it there.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub last_handoff: Option<Option<String>>,
    /// Who holds what, by resource.
    pub locks: BTreeMap<String, LockEntry>,
    /// Which round it is.
    pub iteration: Count,
    /// How each agent stands, by name.
    pub agents: BTreeMap<String, AgentEntry>,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The work at hand.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CurrentWorkflow {
    /// Its name.
    pub id: String,
    /// Of which kind it is.
    #[serde(rename = "type")]
    pub kind: WorkflowType,
    /// When it began.
    pub started: Stamp,
    /// Where its specification is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub spec: Option<Option<String>>,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A lock on a resource.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LockEntry {
    /// Who holds it.
    pub agent: String,
    /// Since when.
    pub acquired: Stamp,
    /// Until when.
    pub expires: Stamp,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// How an agent stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentEntry {
    /// `idle`, `active`, `completed`, or a word of the agent's own: agents also leave their
    /// verdicts here.
    pub status: String,
    /// When it was last seen at work.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Stamp>")]
    pub last_active: Option<Option<Stamp>>,
    /// Fields of the writer's own.
    #[serde(flatten)]
    pub extra: Fields,
}
