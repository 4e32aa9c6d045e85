//! The dialects: the forms of handoffs on the wire.
//!
//! Each dialect is a set of plain types that carry every field of its documents, and a translation
//! to the one model ([`Offer`](stafette_model::Offer), [`Response`](stafette_model::Response)) and back:
//!
//! | module | documents | names |
//! |---|---|---|
//! | [`frame`] | control frames in terminals | – |
//! | [`contract`] | handoff request, response, decision | camelCase |
//! | [`phase`] | phase request, response, findings | snake_case |
//! | [`context`] | the state an orchestrator leaves to its successor | camelCase |
//! | [`message`], [`state`] | messages between agents, their shared state | snake_case |
//!
//! Invariants:
//! - Reading a valid document and writing it again gives the same JSON value: unknown fields are
//!   kept at every level, times and numbers stay as they were written, and absent, null and empty
//!   fields stay so.
//! - The same holds on the way through the model. Fields that the model has are written from the
//!   model; only the rest travels beside it, in [`Foreign`](stafette_model::Foreign).
//! - The types check words and structure, [`schema::validate`] checks everything. Data from outside
//!   goes through [`Document::read`] or [`schema::validate`] first.

pub mod context;
pub mod contract;
pub mod frame;
pub mod message;
pub mod phase;
mod remainder;
pub mod scalar;
pub mod schema;
pub mod state;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::Value;

use contract::{HandoffRequest, HandoffResponse};
use message::Message;
use phase::{PhaseRequest, PhaseResponse};
use schema::{Name, Violation};

/// A document that moves work: printed by an agent, or dropped into a folder.
#[derive(Clone, PartialEq, Debug)]
pub enum Document {
    /// An agent asks another party for help.
    HandoffRequest(Box<HandoffRequest>),
    /// The answer to a handoff request.
    HandoffResponse(Box<HandoffResponse>),
    /// The orchestrator orders a phase.
    PhaseRequest(Box<PhaseRequest>),
    /// The answer to a phase request.
    PhaseResponse(Box<PhaseResponse>),
    /// A message from one agent to another.
    Message(Box<Message>),
}

impl Document {
    /// Recognises, checks and parses a document.
    ///
    /// # Errors
    /// All violations, each with its place.
    pub fn read(value: &Value) -> Result<Document, Vec<Violation>> {
        let Some(name) = schema::recognise(value) else {
            return Err(vec![Violation::at_root(
                "not a document of any dialect: expected a handoff request or response, a phase \
                 request or response, or a message",
            )]);
        };
        match name {
            Name::HandoffRequest => typed(name, value).map(Document::HandoffRequest),
            Name::HandoffResponse => typed(name, value).map(Document::HandoffResponse),
            Name::PhaseRequest => typed(name, value).map(Document::PhaseRequest),
            Name::PhaseResponse => typed(name, value).map(Document::PhaseResponse),
            Name::Message => typed(name, value).map(Document::Message),
            Name::HandoffDecision | Name::Context | Name::State => {
                Err(vec![Violation::at_root(format!("a {name} document moves no work"))])
            }
        }
    }

    /// Returns the name of the document type.
    pub fn name(&self) -> Name {
        match self {
            Document::HandoffRequest(_) => Name::HandoffRequest,
            Document::HandoffResponse(_) => Name::HandoffResponse,
            Document::PhaseRequest(_) => Name::PhaseRequest,
            Document::PhaseResponse(_) => Name::PhaseResponse,
            Document::Message(_) => Name::Message,
        }
    }
}

/// Checks a document against its schema, then parses it into its type.
fn typed<T: DeserializeOwned>(name: Name, value: &Value) -> Result<T, Vec<Violation>> {
    let violations = schema::validate(name, value);
    if !violations.is_empty() {
        return Err(violations);
    }
    T::deserialize(value).map_err(|error| vec![Violation::at_root(error.to_string())])
}

/// Parses an optional field that is present. Without it, serde takes an explicit `null` for an
/// absent field: with it, `Option<T>` refuses null and `Option<Option<T>>` keeps it.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}
