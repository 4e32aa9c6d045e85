//! The handoff contract, version 1.0.0: request, response and decision, in camelCase.
//!
//! The contract lists the agents of a workflow in its schemas. Here any name is well-formed, and a
//! name that the workflow does not have is refused by its rules (`Unknown target`).

mod translation;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::present;
use super::scalar::{Count, False, Id, Measure, Share, Stamp, Version};
use stafette_model::{Fields, Outcome, Party, Priority};

/// The name of this dialect in [`Foreign`](stafette_model::Foreign).
pub const DIALECT: &str = "contract";

/// A request for help: an agent cannot continue alone and names the helper, the need and the
/// reason.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffRequest {
    /// The version of the contract.
    pub schema_version: Version,
    /// The id of the request; the response carries the same.
    pub trace_id: Id,
    /// The time at which it was made.
    pub timestamp: Stamp,
    /// The agent that asks.
    #[schemars(extend("minLength" = 1))]
    pub source_agent: Party,
    /// The state of the asker's work.
    pub source_context: SourceContext,
    /// Always false: the asker cannot handle the work.
    pub can_handle: False,
    /// The party that should help: an agent, `human` or `orchestrator`.
    #[schemars(extend("minLength" = 1))]
    pub handoff_to: Party,
    /// The reason, as a code.
    pub reason: RequestReason,
    /// The reason, in a sentence.
    pub reason_detail: String,
    /// The inputs that the asker wants back.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<RequestedInput>")]
    pub missing_inputs: Option<Vec<RequestedInput>>,
    /// The context for the helper.
    pub context_for_target: TargetContext,
    /// The urgency of the request.
    pub priority: Priority,
    /// The time limit for the helper, in milliseconds.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Measure")]
    pub timeout_ms: Option<Measure>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The state of the asker's work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceContext {
    /// The work item, such as a document type.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub document_type: Option<String>,
    /// The number of the current step.
    pub current_step: Count,
    /// The number of the attempt.
    pub attempt_number: Count,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// An input that is requested.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedInput {
    /// The name of the input.
    pub key: String,
    /// The expected type of the value, such as `string`, `number` or `string[]`.
    pub expected_type: String,
    /// A description of the input for the helper.
    pub description: String,
    /// The document or phase that should provide it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub source: Option<String>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The context for a helper.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetContext {
    /// A summary in a few sentences.
    pub summary: String,
    /// Values that exist already.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fields")]
    pub relevant_outputs: Option<Fields>,
    /// Earlier attempts at the same work.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<EarlierAttempt>")]
    pub prior_attempts: Option<Vec<EarlierAttempt>>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// An earlier attempt at the same work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierAttempt {
    /// The number of the attempt.
    pub attempt: Count,
    /// The action that was taken.
    pub action: String,
    /// The outcome of the attempt.
    pub result: String,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The reason for a request: the contract's five codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RequestReason {
    /// The asker lacks a required input.
    MissingRequiredInput,
    /// A check of the work failed.
    ValidationFailure,
    /// Another agent is better suited to the work.
    ExpertiseMismatch,
    /// The asker ran out of a resource.
    ResourceExhausted,
    /// A person must choose.
    RequiresHumanDecision,
}

/// The answer to a handoff request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffResponse {
    /// The version of the contract.
    pub schema_version: Version,
    /// The id of the request.
    pub trace_id: Id,
    /// The time at which it was made.
    pub timestamp: Stamp,
    /// The party that answers: an agent, `human` or `orchestrator`.
    #[schemars(extend("minLength" = 1))]
    pub responding_agent: Party,
    /// The result of the work.
    pub status: Outcome,
    /// The values that are provided.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fields")]
    pub provided_inputs: Option<Fields>,
    /// The names of the inputs that could not be provided.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub unresolved: Option<Vec<String>>,
    /// The cause, if the work failed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub failure_reason: Option<String>,
    /// Suggested next steps for the asker.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub recommendations: Option<Vec<String>>,
    /// The duration of the work, in milliseconds.
    pub execution_time_ms: Measure,
    /// The number of tokens used.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub tokens_used: Option<Count>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The decision whether an agent can do its work with its inputs, or which party to ask first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffDecision {
    /// True if the agent can do it.
    pub can_handle: bool,
    /// The confidence in the decision, from 0 to 1.
    pub confidence: Share,
    /// The party to ask first, if any.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Party", extend("minLength" = 1))]
    pub handoff_to: Option<Party>,
    /// The reason, in a sentence.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub reason: Option<String>,
    /// The names of the missing inputs.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub missing_inputs: Option<Vec<String>>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}
