//! The handoff contract, version 1.0.0: request, response and decision, in camelCase.
//!
//! The contract names the agents of a workflow in its schemas. Here any name is well-formed, and a
//! name that the workflow does not know is refused by its rules (`Unknown target`).

mod translation;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::present;
use super::scalar::{Count, False, Id, Measure, Share, Stamp, Version};
use crate::{Fields, Outcome, Party, Priority};

/// The name of this dialect in [`Foreign`](crate::handoff::Foreign).
pub const DIALECT: &str = "contract";

/// An agent cannot go on alone and says who should help, with what, and why.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffRequest {
    /// The version of the contract.
    pub schema_version: Version,
    /// Names the request; the response carries the same.
    pub trace_id: Id,
    /// When it was made.
    pub timestamp: Stamp,
    /// Who asks.
    #[schemars(extend("minLength" = 1))]
    pub source_agent: Party,
    /// Where the asker stands.
    pub source_context: SourceContext,
    /// Always false.
    pub can_handle: False,
    /// Who should help: an agent, `human` or `orchestrator`.
    #[schemars(extend("minLength" = 1))]
    pub handoff_to: Party,
    /// Why.
    pub reason: RequestReason,
    /// Why, in a sentence.
    pub reason_detail: String,
    /// What the asker wants back.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<RequestedInput>")]
    pub missing_inputs: Option<Vec<RequestedInput>>,
    /// What the helper should know.
    pub context_for_target: TargetContext,
    /// How urgent it is.
    pub priority: Priority,
    /// How long the helper has, in milliseconds.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Measure")]
    pub timeout_ms: Option<Measure>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// Where an asking agent stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceContext {
    /// The work item.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub document_type: Option<String>,
    /// The step that it is in.
    pub current_step: Count,
    /// Which try it is.
    pub attempt_number: Count,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// An input that is asked for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedInput {
    /// Its name.
    pub key: String,
    /// What it should look like.
    pub expected_type: String,
    /// What it is.
    pub description: String,
    /// The document or phase that should provide it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub source: Option<String>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What a helper should know.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetContext {
    /// In a few sentences.
    pub summary: String,
    /// What there is already.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fields")]
    pub relevant_outputs: Option<Fields>,
    /// What was tried before.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<EarlierAttempt>")]
    pub prior_attempts: Option<Vec<EarlierAttempt>>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// Something that was tried before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierAttempt {
    /// Which try it was.
    pub attempt: Count,
    /// What was done.
    pub action: String,
    /// What came of it.
    pub result: String,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// Why an agent asks: the contract's five words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RequestReason {
    /// Something that it needs is not there.
    MissingRequiredInput,
    /// A check did not hold.
    ValidationFailure,
    /// Someone else is better at it.
    ExpertiseMismatch,
    /// It ran out of something.
    ResourceExhausted,
    /// A person must choose.
    RequiresHumanDecision,
}

/// The answer to a request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffResponse {
    /// The version of the contract.
    pub schema_version: Version,
    /// That of the request.
    pub trace_id: Id,
    /// When it was made.
    pub timestamp: Stamp,
    /// Who answers: an agent, `human` or `orchestrator`.
    #[schemars(extend("minLength" = 1))]
    pub responding_agent: Party,
    /// How it came out.
    pub status: Outcome,
    /// What is provided.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fields")]
    pub provided_inputs: Option<Fields>,
    /// What could not be provided.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub unresolved: Option<Vec<String>>,
    /// Why not.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub failure_reason: Option<String>,
    /// What the asker could do next.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub recommendations: Option<Vec<String>>,
    /// How long it took, in milliseconds.
    pub execution_time_ms: Measure,
    /// How many tokens it took.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub tokens_used: Option<Count>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// Whether an agent can do its work with what it has, or who should be asked first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffDecision {
    /// Whether it can.
    pub can_handle: bool,
    /// How sure that is.
    pub confidence: Share,
    /// Who should be asked.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Party", extend("minLength" = 1))]
    pub handoff_to: Option<Party>,
    /// Why, in a sentence.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub reason: Option<String>,
    /// What is missing, by name.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub missing_inputs: Option<Vec<String>>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

impl HandoffDecision {
    /// It can go on by itself.
    #[must_use]
    pub fn proceed(confidence: f64) -> Self {
        HandoffDecision {
            can_handle: true,
            confidence: Share::new(confidence),
            handoff_to: None,
            reason: None,
            missing_inputs: None,
            extra: Fields::new(),
        }
    }

    /// Someone else must provide what is missing first.
    #[must_use]
    pub fn ask(to: Party, confidence: f64, reason: &str, missing: Vec<String>) -> Self {
        HandoffDecision {
            can_handle: false,
            handoff_to: Some(to),
            reason: Some(reason.to_owned()),
            missing_inputs: Some(missing),
            ..Self::proceed(confidence)
        }
    }
}
