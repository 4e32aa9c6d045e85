//! The JSON that a hook receives.

use serde_json::{Value, json};
use stafette_core::TurnOrder;
use stafette_engine::{Beginning, Stored};

/// Payload before a run begins.
pub(crate) fn before_run(beginning: &Beginning<'_>) -> Value {
    json!({
        "event": "before_run",
        "run": beginning.run,
        "workflow": beginning.workflow.workflow.name,
        "handoff": null,
        "agent": null,
        "request": beginning.request,
        "by": beginning.by,
    })
}

/// Payload before an agent gets a turn.
pub(crate) fn before_turn(order: &TurnOrder, workflow: &str, folder: &std::path::Path) -> Value {
    json!({
        "event": "before_turn",
        "run": order.key.run,
        "workflow": workflow,
        "handoff": order.key.handoff.to_string(),
        "agent": order.agent,
        "request": order.request,
        "folder": folder,
        "deliveries": order.deliveries,
        "data": { "offer": order.offer },
    })
}

/// Payload of a stored event.
pub(crate) fn event(stored: &Stored, data: &Value, context: &Context) -> Value {
    json!({
        "event": stored.entry.name,
        "run": stored.run,
        "workflow": context.workflow,
        "handoff": stored.entry.handoff.map(|handoff| handoff.to_string()),
        "agent": context.agent,
        "request": context.request,
        "seq": stored.entry.seq,
        "at": stored.entry.at.rfc3339(),
        "data": data,
    })
}

/// Context that the event itself does not contain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Context {
    pub(crate) workflow: String,
    pub(crate) request: String,
    pub(crate) agent: Option<String>,
}

/// Returns true if an event asks a person something.
pub(crate) fn is_question(name: &str, data: &Value) -> bool {
    name == "handoff_admitted" && data.pointer("/offer/question").is_some_and(|q| !q.is_null())
}
