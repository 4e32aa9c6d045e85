//! Why something happened: from a handoff back to the user's request.

use schemars::JsonSchema;
use serde::Serialize;
use stafette_core::{HandoffId, RunId};

use crate::record::HandoffView;

/// The way of the work to one handoff, the user's request first.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Explanation {
    /// The run.
    pub run: RunId,
    /// What the user asked for.
    pub request: String,
    /// Each handoff on the way, and the one that was asked about last.
    pub legs: Vec<Leg>,
}

/// One handoff on the way.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Leg {
    /// Which one.
    pub id: HandoffId,
    /// How it stands.
    pub state: String,
    /// All of it.
    pub handoff: HandoffView,
    /// What became of it, event by event.
    pub events: Vec<serde_json::Value>,
}

impl HandoffView {
    /// The handoff that it was made in.
    #[must_use]
    pub fn cause(&self) -> Option<HandoffId> {
        match self {
            HandoffView::Refused(refused) => refused.cause,
            HandoffView::Admitted(handoff) => handoff.cause,
        }
    }
}
