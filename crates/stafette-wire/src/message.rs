//! Messages between agents: one envelope, version 1.0.0, six types.

mod translation;

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::present;
use super::scalar::{Count, Id, Stamp, Version};
use super::schema::Violation;
use stafette_model::{Fields, Party, Priority};

/// The name of this dialect in [`Foreign`](stafette_model::Foreign).
pub const DIALECT: &str = "message";

/// A message from one agent to another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = escalations_say_what_they_ask)]
pub struct Message {
    /// The version of the envelope.
    pub schema_version: Version,
    /// The id of the message.
    pub message_id: Id,
    /// The time at which it was written.
    pub timestamp: Stamp,
    /// The sender of the message.
    #[schemars(extend("minLength" = 1))]
    pub from: Party,
    /// The recipient of the message.
    #[schemars(extend("minLength" = 1))]
    pub to: Party,
    /// The type of the message.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// The urgency of the message.
    pub priority: Priority,
    /// The content; for an escalation, the question.
    pub payload: Fields,
    /// The work that it belongs to.
    pub context: MessageContext,
    /// The current status of the message.
    pub status: MessageStatus,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The work that a message belongs to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageContext {
    /// The kind of work.
    pub workflow: WorkflowType,
    /// The path of the specification; a small fix has none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub spec: Option<String>,
    /// The number of the round.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub iteration: Option<Count>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum WorkflowType {
    /// A new feature is built.
    Feature,
    /// A bug is fixed.
    Bugfix,
    /// Code is restructured without new behaviour.
    Refactor,
}

/// The status of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MessageStatus {
    /// Waits to be accepted.
    Pending,
    /// Accepted by its recipient.
    Accepted,
    /// The work is done.
    Completed,
    /// Rejected by its recipient.
    Rejected,
}

/// The type of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MessageType {
    /// Hands over a specification to implement.
    TaskHandoff,
    /// Asks for a code review.
    ReviewRequest,
    /// Asks for fixes of the listed issues.
    FixRequest,
    /// Asks for another review after the fixes.
    RereviewRequest,
    /// Reports that a phase is done.
    Completion,
    /// Asks for a person.
    Escalation,
}

/// The parties that may send or receive a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Any party of the workflow.
    Any,
    Only(&'static str),
}

impl Role {
    /// True if the party has this role.
    pub fn includes(self, party: &Party) -> bool {
        match self {
            Role::Any => true,
            Role::Only(name) => party.as_str() == name,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Any => f.write_str("any agent"),
            Role::Only(name) => write!(f, "`{name}`"),
        }
    }
}

impl MessageType {
    /// All message types, in order.
    pub const ALL: [MessageType; 6] = [
        MessageType::TaskHandoff,
        MessageType::ReviewRequest,
        MessageType::FixRequest,
        MessageType::RereviewRequest,
        MessageType::Completion,
        MessageType::Escalation,
    ];

    /// Returns the type as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageType::TaskHandoff => "task_handoff",
            MessageType::ReviewRequest => "review_request",
            MessageType::FixRequest => "fix_request",
            MessageType::RereviewRequest => "rereview_request",
            MessageType::Completion => "completion",
            MessageType::Escalation => "escalation",
        }
    }

    /// Returns the roles that may send and receive it.
    #[must_use]
    pub fn ends(self) -> (Role, Role) {
        match self {
            MessageType::TaskHandoff => (Role::Only("planner"), Role::Only("builder")),
            MessageType::ReviewRequest => (Role::Only("builder"), Role::Only("reviewer")),
            MessageType::FixRequest => (Role::Only("reviewer"), Role::Only("fixer")),
            MessageType::RereviewRequest => (Role::Only("fixer"), Role::Only("reviewer")),
            MessageType::Completion | MessageType::Escalation => {
                (Role::Any, Role::Only("orchestrator"))
            }
        }
    }
}

/// The payload of an escalation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Escalation {
    /// The reason for asking, as one word.
    pub reason: String,
    /// The question as the person reads it.
    pub details: String,
    /// Suggested answers; free text is always possible.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub options: Option<Vec<String>>,
    /// The situation in which the question arose.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub context: Option<String>,
    /// True if the asker waits for the answer, which is also the default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub blocking: Option<bool>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

impl Message {
    /// Returns the question, if the message is an escalation with one.
    pub fn escalation(&self) -> Option<Escalation> {
        let payload = (self.kind == MessageType::Escalation).then(|| self.payload.clone())?;
        serde_json::from_value(Value::Object(payload)).ok()
    }
}

/// Returns violations of the rules for sender and recipient: a type allows only certain ones.
pub(super) fn misdirected(value: &Value) -> Vec<Violation> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let kind = MessageType::ALL.into_iter().find(|kind| text("type") == Some(kind.as_str()));
    let Some(kind) = kind else { return Vec::new() };
    let (sender, receiver) = kind.ends();
    let wrong = |end: &str, role: Role, verb: &str| {
        let party = text(end).filter(|name| !role.includes(&Party::from(*name)))?;
        let message = format!("a {} is {verb} {role}, not `{party}`", kind.as_str());
        Some(Violation { path: format!("/{end}"), message })
    };
    wrong("from", sender, "sent by").into_iter().chain(wrong("to", receiver, "sent to")).collect()
}

/// Adds the shape of an escalation's payload to the schema of messages.
fn escalations_say_what_they_ask(schema: &mut Schema) {
    // It refers to nothing else, so it can be inlined here.
    let payload = Escalation::json_schema(&mut SchemaGenerator::default());
    let kind = json!({ "const": MessageType::Escalation });
    schema.insert(
        "allOf".into(),
        json!([{
            "if": { "properties": { "type": kind }, "required": ["type"] },
            "then": { "properties": { "payload": payload } },
        }]),
    );
}
