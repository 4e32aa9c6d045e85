//! The meaning of frames.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::Frame;
use stafette_model::Fields;

/// A frame with its payload interpreted.
#[derive(Clone, PartialEq, Debug)]
pub enum Signal {
    /// The agent accepts input.
    Ready(Ready),
    /// The work moves on.
    Handoff(Handoff),
    /// An error that people must see.
    Error(Problem),
    /// A frame of a type that the dialect does not define.
    Other(Frame),
}

/// The payload of READY.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// The stage that is ready.
    pub stage: String,
    /// The time at which it became ready, in RFC 3339.
    pub ts: String,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The payload of HANDOFF: a stage's name, or an object with details.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Handoff {
    /// The stage that takes over.
    Stage(String),
    /// The stage that takes over, with context for it.
    Note(HandoffNote),
}

/// A HANDOFF with metadata.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffNote {
    /// The stage that takes over.
    pub to: String,
    /// The context that it should read first.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub summary: Option<String>,
    /// The decisions made so far.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub key_decisions: Option<Vec<String>>,
    /// Additional fields: the evidence that a route requires.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The payload of ERROR.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The code of the error.
    pub code: Code,
    /// The description, in a sentence.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub message: Option<String>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// An error code, in UPPER_SNAKE: `MCP_CONNECTION_FAILED`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^[A-Z][A-Z0-9_]*$"))]
pub struct Code(String);

/// The text is not a valid error code.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not an error code: they look like MCP_CONNECTION_FAILED")]
pub struct NotACode {
    pub text: String,
}

impl Code {
    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Code {
    type Error = NotACode;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(plain) {
            Ok(Code(text))
        } else {
            Err(NotACode { text })
        }
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Parses a field that may be missing but not null: null would be lost on the way back.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    field: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}

/// A frame whose payload does not match its type.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{kind} frame: {reason}")]
pub struct BadSignal {
    /// The type of the frame.
    pub kind: String,
    /// The problem with its payload.
    pub reason: String,
}

impl TryFrom<&Frame> for Signal {
    type Error = BadSignal;
    fn try_from(frame: &Frame) -> Result<Self, BadSignal> {
        Ok(match frame.kind.as_str() {
            "READY" => Signal::Ready(read(frame)?),
            "HANDOFF" => Signal::Handoff(handoff(frame)?),
            "ERROR" => Signal::Error(read(frame)?),
            _ => Signal::Other(frame.clone()),
        })
    }
}

impl From<&Signal> for Frame {
    fn from(signal: &Signal) -> Self {
        match signal {
            Signal::Ready(ready) => Frame::new("READY", written(ready)),
            Signal::Handoff(Handoff::Stage(stage)) => Frame::new("HANDOFF", Some(stage.clone())),
            Signal::Handoff(Handoff::Note(note)) => Frame::new("HANDOFF", written(note)),
            Signal::Error(problem) => Frame::new("ERROR", written(problem)),
            Signal::Other(frame) => frame.clone(),
        }
    }
}

fn handoff(frame: &Frame) -> Result<Handoff, BadSignal> {
    let wrong = |reason: &str| BadSignal { kind: frame.kind.clone(), reason: reason.to_owned() };
    let handoff = match frame.value() {
        Value::String(stage) => Handoff::Stage(stage),
        _ => Handoff::Note(read(frame)?),
    };
    if handoff.to().is_empty() { Err(wrong("no stage is named")) } else { Ok(handoff) }
}

impl Handoff {
    /// Returns the stage that takes over.
    pub fn to(&self) -> &str {
        match self {
            Handoff::Stage(to) | Handoff::Note(HandoffNote { to, .. }) => to,
        }
    }
}

fn read<T: DeserializeOwned>(frame: &Frame) -> Result<T, BadSignal> {
    serde_json::from_value(frame.value())
        .map_err(|error| BadSignal { kind: frame.kind.clone(), reason: error.to_string() })
}

fn written(payload: &impl Serialize) -> Option<String> {
    // Maps with text keys always have a JSON form.
    serde_json::to_string(payload).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame(kind: &str, body: &str) -> Frame {
        Frame::new(kind, Some(body.to_owned()))
    }

    fn there_and_back(kind: &str, body: &str) -> Signal {
        let frame = frame(kind, body);
        let signal = Signal::try_from(&frame).unwrap();
        assert_eq!(Frame::from(&signal).value(), frame.value(), "nothing is lost of {body}");
        signal
    }

    #[test]
    fn s1_01_ready_carries_its_stage_and_time_and_keeps_what_it_does_not_know() {
        let body = r#"{"stage":"discuss","ts":"2025-10-09T18:30:00Z","pid":{"n":null}}"#;
        let Signal::Ready(ready) = there_and_back("READY", body) else { panic!("not ready") };
        assert_eq!(ready.stage, "discuss");
        assert_eq!(ready.extra["pid"], json!({"n": null}));
        assert!(Signal::try_from(&frame("READY", "discuss")).is_err());
    }

    #[test]
    fn s1_01_handoff_names_a_stage() {
        let signal = there_and_back("HANDOFF", "decisions");
        assert_eq!(signal, Signal::Handoff(Handoff::Stage("decisions".into())));
        let nobody = Signal::try_from(&Frame::new("HANDOFF", None)).unwrap_err();
        assert_eq!(nobody.to_string(), "HANDOFF frame: no stage is named");
    }

    #[test]
    fn s1_18_handoff_may_carry_a_summary_and_key_decisions() {
        let body = r#"{"to":"execute","summary":"JWT","key_decisions":["a","b"],"roi":2.5}"#;
        let Signal::Handoff(Handoff::Note(note)) = there_and_back("HANDOFF", body) else {
            panic!("not a note")
        };
        assert_eq!(note.key_decisions, Some(vec!["a".into(), "b".into()]));
        assert_eq!(note.extra["roi"], json!(2.5));
        there_and_back("HANDOFF", r#"{"to":"execute","summary":"","key_decisions":[]}"#);
        assert!(Signal::try_from(&frame("HANDOFF", r#"{"to":"x","summary":null}"#)).is_err());
        assert!(Signal::try_from(&frame("HANDOFF", r#"{"summary":"x"}"#)).is_err());
    }

    #[test]
    fn s1_01_error_has_an_upper_snake_code_and_perhaps_a_message() {
        there_and_back("ERROR", r#"{"code":"MCP_CONNECTION_FAILED"}"#);
        there_and_back("ERROR", r#"{"code":"E1","message":"Cannot connect","server":"neo4j"}"#);
        let bad = Signal::try_from(&frame("ERROR", r#"{"code":"not good"}"#)).unwrap_err();
        assert!(bad.reason.contains("`not good` is not an error code"), "{bad}");
    }

    #[test]
    fn s1_01_other_types_pass_through() {
        there_and_back("END", "");
        let end = Frame::new("END", None);
        assert_eq!(Frame::from(&Signal::try_from(&end).unwrap()), end);
    }

    #[test]
    fn s1_01_the_payloads_have_schemas() {
        let schema = schemars::schema_for!(Problem).to_value();
        assert_eq!(schema["required"], json!(["code"]));
        assert_eq!(schema["properties"]["message"]["type"], json!("string"));
        assert!(schema.to_string().contains("^[A-Z][A-Z0-9_]*$"), "{schema}");
        assert_eq!(schemars::schema_for!(Ready).to_value()["required"], json!(["stage", "ts"]));
    }
}
