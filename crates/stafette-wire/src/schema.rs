//! The registry of the dialects' documents: their schemas, and validation against them.

mod check;

use std::cmp::Ordering;
use std::fmt;
use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

pub use self::check::Checker;
use super::contract::{HandoffDecision, HandoffRequest, HandoffResponse};
use super::message::{self, Message};
use super::phase::{PhaseRequest, PhaseResponse};
use super::{context, state};
use stafette_model::Fields;

/// The maximum length of a text that is parsed as a document, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The maximum nesting depth of lists and objects.
pub const MAX_DEPTH: usize = 64;
/// The maximum length of a violation's message, in characters: it may quote a whole document.
const MAX_MESSAGE: usize = 400;
/// The maximum length of a quotation within a longer message, in characters.
const MAX_QUOTE: usize = 80;

/// A type of document that has a schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// A [`HandoffRequest`] of the contract.
    HandoffRequest,
    /// A [`HandoffResponse`] of the contract.
    HandoffResponse,
    /// A [`HandoffDecision`] of the contract.
    HandoffDecision,
    /// A [`PhaseRequest`] of the orchestrator.
    PhaseRequest,
    /// A [`PhaseResponse`] of a sub-agent.
    PhaseResponse,
    /// The context file of an orchestrator: [`OrchestratorContext`](context::OrchestratorContext).
    Context,
    /// A [`Message`] between agents.
    Message,
    /// The shared state file: [`SharedState`](state::SharedState).
    State,
}

const NAMES: [Name; 8] = [
    Name::HandoffRequest,
    Name::HandoffResponse,
    Name::HandoffDecision,
    Name::PhaseRequest,
    Name::PhaseResponse,
    Name::Context,
    Name::Message,
    Name::State,
];

impl Name {
    /// Returns the name as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Name::HandoffRequest => "handoff-request",
            Name::HandoffResponse => "handoff-response",
            Name::HandoffDecision => "handoff-decision",
            Name::PhaseRequest => "phase-request",
            Name::PhaseResponse => "phase-response",
            Name::Context => "context",
            Name::Message => "message",
            Name::State => "state",
        }
    }

    /// Returns the top-level fields that identify the document.
    pub fn marks(self) -> &'static [&'static str] {
        match self {
            Name::HandoffRequest => &[
                "sourceAgent",
                "sourceContext",
                "canHandle",
                "handoffTo",
                "reason",
                "reasonDetail",
                "missingInputs",
                "contextForTarget",
                "timeoutMs",
            ],
            Name::HandoffResponse => &[
                "traceId",
                "respondingAgent",
                "status",
                "providedInputs",
                "unresolved",
                "failureReason",
                "executionTimeMs",
                "tokensUsed",
            ],
            Name::HandoffDecision => {
                &["canHandle", "confidence", "handoffTo", "reason", "missingInputs"]
            }
            Name::PhaseRequest => {
                &["task_id", "phase", "context", "instructions", "expected_output"]
            }
            Name::PhaseResponse => {
                &["task_id", "phase", "status", "decision", "findings", "context_summary", "issues"]
            }
            Name::Context => &[
                "runNumber",
                "currentPhase",
                "discussionSummary",
                "codeChanges",
                "agentStates",
                "nextAction",
                "totalCost",
                "humanNotes",
            ],
            Name::Message => &["message_id", "from", "to", "type", "payload"],
            Name::State => {
                &["current_workflow", "current_agent", "last_handoff", "locks", "agents"]
            }
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An error in a document.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Violation {
    /// The place: a JSON pointer, empty for the document as a whole.
    pub path: String,
    /// The description of the error.
    pub message: String,
}

impl Violation {
    pub(super) fn at_root(message: impl Into<String>) -> Self {
        Violation { path: String::new(), message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "document" } else { &self.path };
        write!(f, "{path}: {}", self.message)
    }
}

/// Returns all document types that have a schema.
pub fn list() -> &'static [Name] {
    &NAMES
}

/// Returns the JSON Schema (2020-12) of a document.
pub fn schema(name: Name) -> Value {
    match name {
        Name::HandoffRequest => publish::<HandoffRequest>(name.as_str()),
        Name::HandoffResponse => publish::<HandoffResponse>(name.as_str()),
        Name::HandoffDecision => publish::<HandoffDecision>(name.as_str()),
        Name::PhaseRequest => publish::<PhaseRequest>(name.as_str()),
        Name::PhaseResponse => publish::<PhaseResponse>(name.as_str()),
        Name::Context => publish::<context::OrchestratorContext>(name.as_str()),
        Name::Message => publish::<Message>(name.as_str()),
        Name::State => publish::<state::SharedState>(name.as_str()),
    }
}

/// Returns the JSON Schema (2020-12) of a type, to be published under a name.
pub fn publish<T: JsonSchema>(name: &str) -> Value {
    let plain = RecursiveTransform(plain_choices);
    let settings = SchemaSettings::draft2020_12().with_transform(plain);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let id = format!("urn:stafette:schema:{name}:1.0.0");
    let mut sorted = Fields::from_iter([("$id".to_owned(), id.into())]);
    // The kind of document comes first, for people who open the file.
    for key in ["$schema", "title", "description"] {
        sorted.extend(schema.remove(key).map(|value| (key.to_owned(), value)));
    }
    sorted.append(schema.ensure_object());
    Value::Object(sorted)
}

/// Rewrites schema parts that cause poor error messages: a choice between words becomes a list of
/// them, and a choice between something and null becomes a condition.
fn plain_choices(schema: &mut Schema) {
    if let Some(Value::Array(choices)) = schema.get("oneOf") {
        let words: Option<Vec<Value>> =
            choices.iter().map(|choice| choice.get("const").cloned()).collect();
        if let Some(words) = words.filter(|words| words.iter().all(Value::is_string)) {
            schema.remove("oneOf");
            schema.insert("type".into(), "string".into());
            match <[Value; 1]>::try_from(words) {
                Ok([word]) => schema.insert("const".into(), word),
                Err(words) => schema.insert("enum".into(), words.into()),
            };
        }
    }
    if let Some(Value::Array(choices)) = schema.get("anyOf")
        && let [something, null] = choices.as_slice()
        && *null == json!({ "type": "null" })
    {
        let something = something.clone();
        schema.remove("anyOf");
        schema.insert("if".into(), json!({ "not": { "type": "null" } }));
        schema.insert("then".into(), something);
    }
}

/// Returns all errors of a document, in the order of their places; empty if it is valid. For
/// messages this includes the rules for sender and recipient.
pub fn validate(name: Name, value: &Value) -> Vec<Violation> {
    let mut violations = checker(name).violations(value);
    if name == Name::Message {
        violations.extend(message::misdirected(value));
        violations.sort();
        violations.dedup();
    }
    violations
}

/// Returns the checker of a schema, created on first use.
fn checker(name: Name) -> &'static Checker {
    static MADE: [OnceLock<Checker>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    MADE[name as usize].get_or_init(|| Checker::new(schema(name)))
}

fn shortened(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the document type that a value is meant to be, by its top-level fields: valid or not, so
/// that its errors can be reported. `None` if fewer than two fields match, or several types match
/// equally well.
pub fn recognise(value: &Value) -> Option<Name> {
    best(value, NAMES.map(|name| (name, name.marks())))
}

/// Returns the one of several document types whose marks a value has the most of, as [`recognise`].
pub fn best<T>(
    value: &Value,
    known: impl IntoIterator<Item = (T, &'static [&'static str])>,
) -> Option<T> {
    let fields = value.as_object()?;
    let (mut most, mut found) = (1, None);
    for (name, marks) in known {
        let fit = marks.iter().filter(|mark| fields.contains_key(**mark)).count();
        match fit.cmp(&most) {
            Ordering::Greater => (most, found) = (fit, Some(name)),
            Ordering::Equal => found = None,
            Ordering::Less => {}
        }
    }
    found
}

/// The reason why a text cannot be parsed as a document.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("the document has {bytes} bytes, and at most {MAX_BYTES} are read")]
    TooLong {
        /// The length of the text, in bytes.
        bytes: usize,
    },
    #[error("line {line}: lists and objects are nested more than {MAX_DEPTH} deep")]
    TooDeep { line: usize },
    #[error("not JSON: {source}")]
    Syntax {
        #[from]
        source: serde_json::Error,
    },
}

/// Parses a text as JSON, within limits.
///
/// # Errors
/// The text is longer than [`MAX_BYTES`], deeper than [`MAX_DEPTH`] or not JSON.
pub fn read(text: impl AsRef<[u8]>) -> Result<Value, ReadError> {
    let text = text.as_ref();
    if text.len() > MAX_BYTES {
        return Err(ReadError::TooLong { bytes: text.len() });
    }
    // Some editors write a byte order mark at the start, which is not valid JSON.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    check_depth(text)?;
    Ok(serde_json::from_slice(text)?)
}

/// Counts brackets before anything is built from them.
fn check_depth(text: &[u8]) -> Result<(), ReadError> {
    let (mut depth, mut line) = (0_usize, 1_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text {
        match byte {
            b'\n' => line += 1,
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(ReadError::TooDeep { line });
        }
    }
    Ok(())
}
