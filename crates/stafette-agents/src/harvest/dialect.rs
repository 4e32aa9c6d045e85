//! Reads documents of the dialects.

use serde_json::Value;
use stafette_core::wire::Document;
use stafette_core::{Fields, Party};

use super::Piece;

/// Fields of which a single one identifies a document of a dialect.
const MARKS: [&str; 7] = [
    "schemaVersion",
    "schema_version",
    "sourceAgent",
    "handoffTo",
    "canHandle",
    "respondingAgent",
    "message_id",
];

/// The types of messages.
const MESSAGES: [&str; 6] = [
    "task_handoff",
    "review_request",
    "fix_request",
    "rereview_request",
    "completion",
    "escalation",
];

/// Reads a document of a dialect, given by the agent `by`; `None` when it is none.
pub(super) fn read(by: &Party, value: &Value) -> Option<Result<Piece, Vec<String>>> {
    let fields = value.as_object()?;
    if !is_document(fields) {
        return None;
    }
    let document = match Document::read(value) {
        Ok(document) => document,
        Err(violations) => {
            return Some(Err(violations.iter().map(ToString::to_string).collect()));
        }
    };
    Some(Ok(match document {
        Document::HandoffRequest(request) => Piece::Offer(Box::new(request.into_offer())),
        Document::Message(message) => Piece::Offer(Box::new(message.into_offer())),
        // A phase is given out by the orchestrator, whichever agent proposes it.
        Document::PhaseRequest(request) => {
            Piece::Offer(Box::new(request.into_offer(Party::Orchestrator)))
        }
        Document::HandoffResponse(response) => Piece::Response(Box::new(response.into_response())),
        Document::PhaseResponse(response) => {
            Piece::Response(Box::new(response.into_response(by.clone())))
        }
    }))
}

/// True if an object is meant to be a document. The short forms share a few fields with them.
pub(crate) fn is_document(fields: &Fields) -> bool {
    let has = |name: &str| fields.contains_key(name);
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    MARKS.iter().any(|mark| has(mark))
        || (has("task_id") && has("phase"))
        || (has("payload") && MESSAGES.contains(&kind))
}
