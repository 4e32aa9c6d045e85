//! Why something happened: from a handoff back to the user's request.

use schemars::JsonSchema;
use serde::Serialize;
use stafette_core::change::ChangeId;
use stafette_core::{HandoffId, RunId};

use crate::engine::event_json;
use crate::record::HandoffView;
use crate::{Engine, EngineError};

/// The way of the work to one handoff, the user's request first.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Explanation {
    /// The run.
    pub run: RunId,
    /// What the user asked for.
    pub request: String,
    /// What has become of it so far, and why.
    pub outcome: String,
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

impl Engine {
    /// Why a run is as it is: the way from the request to the handoff that was closed last, or was
    /// made last when none is closed.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn why_run(&self, run: RunId) -> Result<Explanation, EngineError> {
        let rows = self.handoffs(run).await?;
        let closed = rows.iter().filter(|row| row.closed_at.is_some() && row.state != "cancelled");
        let last = closed.max_by_key(|row| (row.closed_at, row.id)).or(rows.last());
        match last {
            Some(row) => self.why(run, row.id).await,
            None => Err(EngineError::NoRun { run: run.to_string() }),
        }
    }

    /// What a run recorded of one of its changes, event by event.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn why_change(
        &self,
        run: RunId,
        change: ChangeId,
    ) -> Result<Vec<serde_json::Value>, EngineError> {
        let change = change.to_string();
        let events = self.events(run, 0).await?;
        let about = events.iter().filter(|stored| stored.entry.name.starts_with("change_"));
        let told: Vec<_> = about.map(event_json).collect::<Result<_, _>>()?;
        Ok(told.into_iter().filter(|event| event["change"] == change.as_str()).collect())
    }

    /// What the outcome of a run changes, when its agents had worktrees.
    pub async fn result_diff(&self, run: RunId) -> Option<String> {
        let state = self.state(run).await.ok()?;
        match state.workflow.workflow.worktrees {
            true => self.shared().places.diff(run).await,
            false => None,
        }
    }
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
