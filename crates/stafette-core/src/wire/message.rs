//! Messages between agents: one envelope, version 1.0.0, six types.

mod translation;

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::present;
use super::scalar::{Count, Id, Stamp, Version};
use super::schema::Violation;
use crate::{Fields, Party, Priority};

/// The name of this dialect in [`Foreign`](crate::handoff::Foreign).
pub const DIALECT: &str = "message";

/// One agent writes to another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = escalations_say_what_they_ask)]
pub struct Message {
    /// The version of the envelope.
    pub schema_version: Version,
    /// Names the message.
    pub message_id: Id,
    /// When it was written.
    pub timestamp: Stamp,
    /// Who writes.
    #[schemars(extend("minLength" = 1))]
    pub from: Party,
    /// To whom.
    #[schemars(extend("minLength" = 1))]
    pub to: Party,
    /// What about.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// How urgent it is.
    pub priority: Priority,
    /// What is passed on; the question, when it is an escalation.
    pub payload: Fields,
    /// Which work it belongs to.
    pub context: MessageContext,
    /// What has become of it.
    pub status: MessageStatus,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The work that a message belongs to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageContext {
    /// Of which kind it is.
    pub workflow: WorkflowType,
    /// Where its specification is; a small repair has none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub spec: Option<String>,
    /// Which round it is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub iteration: Option<Count>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// Of which kind the work is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum WorkflowType {
    /// Something new.
    Feature,
    /// A repair.
    Bugfix,
    /// The same in better order.
    Refactor,
}

/// What has become of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MessageStatus {
    /// It waits to be taken.
    Pending,
    /// Somebody has taken it.
    Accepted,
    /// It is done.
    Completed,
    /// It was turned down.
    Rejected,
}

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MessageType {
    /// Here is a specification: build it.
    TaskHandoff,
    /// Here is code: review it.
    ReviewRequest,
    /// Here are issues: fix them.
    FixRequest,
    /// They are fixed: review again.
    RereviewRequest,
    /// A phase is done.
    Completion,
    /// A person is needed.
    Escalation,
}

/// Who may stand at one end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Everyone.
    Any,
    /// Only the party of this name.
    Only(&'static str),
}

impl Role {
    /// Whether the party has this role.
    #[must_use]
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
    /// All of them.
    pub const ALL: [MessageType; 6] = [
        MessageType::TaskHandoff,
        MessageType::ReviewRequest,
        MessageType::FixRequest,
        MessageType::RereviewRequest,
        MessageType::Completion,
        MessageType::Escalation,
    ];

    /// The word on the wire.
    #[must_use]
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

    /// Who may send it, and to whom.
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

    /// Whether `from` may send it to `to`.
    #[must_use]
    pub fn allows(self, from: &Party, to: &Party) -> bool {
        let (sender, receiver) = self.ends();
        sender.includes(from) && receiver.includes(to)
    }
}

/// What stands in the payload of an escalation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Escalation {
    /// One word for why.
    pub reason: String,
    /// The question itself.
    pub details: String,
    /// Answers to choose from.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub options: Option<Vec<String>>,
    /// Where it came up.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub context: Option<String>,
    /// Whether the asker waits; one that does not say so waits.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub blocking: Option<bool>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

impl Message {
    /// The question, when the message is an escalation that asks one.
    #[must_use]
    pub fn escalation(&self) -> Option<Escalation> {
        let payload = (self.kind == MessageType::Escalation).then(|| self.payload.clone())?;
        serde_json::from_value(Value::Object(payload)).ok()
    }
}

/// What is wrong with the ends of a message: its type allows only certain ones.
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
    // It refers to nothing else, so that it can stand where it is used.
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
