//! The results of a run, as the artifacts of its task.

use std::collections::HashMap;

use a2a_types::{Artifact, Part};
use serde_json::json;
use stafette_core::handoff::{self, State, Way};
use stafette_core::{Handoff, Outcome, Response};

/// Returns the answers that no other handoff of the run continued, in order.
pub(crate) fn all(handoffs: &[Handoff]) -> Vec<Artifact> {
    handoff::results(handoffs).filter_map(of).collect()
}

fn of(handoff: &Handoff) -> Option<Artifact> {
    let State::Closed(closing) = &handoff.state else { return None };
    let good = matches!(closing.response.outcome, Outcome::Resolved | Outcome::Partial);
    if closing.way != Way::Answered || !good {
        return None;
    }
    let about = json!({
        "handoff": handoff.id,
        "agent": handoff.offer.to,
        "outcome": closing.response.outcome,
    });
    Some(Artifact {
        artifact_id: handoff.id.to_string(),
        name: Some(handoff.offer.to.to_string()),
        description: Some(format!("What {} made of it", handoff.offer.to)),
        parts: parts(&handoff.answer()?),
        metadata: Some(HashMap::from([("stafette".to_owned(), about)])),
        extensions: None,
    })
}

fn parts(response: &Response) -> Vec<Part> {
    let mut parts = Vec::new();
    if !response.summary.is_empty() {
        parts.push(Part::text(&response.summary).with_media_type("text/plain"));
    }
    if !response.outputs.is_empty() {
        parts.push(Part::data(json!(response.outputs)).with_media_type("application/json"));
    }
    if parts.is_empty() {
        parts.push(Part::text("Done."));
    }
    parts
}
