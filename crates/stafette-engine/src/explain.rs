//! Explains an event: from a handoff back to the user's request.

use schemars::JsonSchema;
use serde::Serialize;
use stafette_core::change::ChangeId;
use stafette_core::{HandoffId, RunId};

use crate::engine::{event_json, parse};
use crate::record::HandoffView;
use crate::{Engine, EngineError};

/// The path of the work to one handoff, beginning with the user's request.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Explanation {
    /// The id of the run.
    pub run: RunId,
    /// The request of the user.
    pub request: String,
    /// The outcome so far, with the reason.
    pub outcome: String,
    /// Each handoff on the path; the one that was asked about is last.
    pub legs: Vec<Leg>,
}

/// One handoff on the path.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Leg {
    /// The id of the handoff.
    pub id: HandoffId,
    /// The state of the handoff.
    pub state: String,
    /// The handoff in full.
    pub handoff: HandoffView,
    /// The events of this handoff, in order.
    pub events: Vec<serde_json::Value>,
}

/// Explanations of what happened: `Engine::explain`.
#[derive(Clone, Copy, Debug)]
pub struct Explanations<'a> {
    pub(crate) engine: &'a Engine,
}

impl Explanations<'_> {
    /// Explains how a handoff came about: the path to it from the user's request. For `None` it is
    /// the handoff that was closed last, or was made last when none is closed.
    ///
    /// # Errors
    /// When there is no such run or handoff.
    pub async fn why(
        self,
        run: RunId,
        handoff: Option<HandoffId>,
    ) -> Result<Explanation, EngineError> {
        let mut next = match handoff {
            Some(handoff) => Some(handoff),
            None => Some(self.last_closed(run).await?),
        };
        let (view, trouble) = self.engine.view(run).await?;
        let mut legs = Vec::new();
        while let Some(id) = next {
            let row = self.engine.log().handoff(run, id).await?;
            let row = row.ok_or(EngineError::NoHandoff { run, handoff: id })?;
            let handoff: HandoffView = parse(view.seq, &row.body)?;
            let mut events = self.engine.store().entries_of(run, id).await?;
            self.engine.log().veil(&mut events).await?;
            // A cause is always older, so this ends.
            next = handoff.cause().filter(|cause| *cause < id);
            let events = events.iter().map(event_json).collect::<Result<_, _>>()?;
            legs.push(Leg { id, state: row.state, handoff, events });
        }
        legs.reverse();
        let mut outcome = match (view.why.as_ref(), trouble, &view.waiting_on) {
            (_, trouble, _) if view.stopped => trouble.unwrap_or_else(|| "stopped".to_owned()),
            (Some(why), Some(trouble), _) => format!("{}: {why}; {trouble}", view.status),
            (Some(why), None, _) => format!("{}: {why}", view.status),
            (None, Some(trouble), _) => format!("{}: {trouble}", view.status),
            (None, None, Some(on)) => format!("{} for {on}", view.status),
            (None, None, None) => view.status.clone(),
        };
        if let Some(left) = &view.left {
            outcome = format!("{outcome}. {}", left.told());
        }
        Ok(Explanation { run, request: view.request, outcome, legs })
    }

    async fn last_closed(self, run: RunId) -> Result<HandoffId, EngineError> {
        let rows = self.engine.log().handoffs(run).await?;
        let closed = rows.iter().filter(|row| row.closed_at.is_some() && row.state != "cancelled");
        let last = closed.max_by_key(|row| (row.closed_at, row.id)).or(rows.last());
        last.map(|row| row.id).ok_or_else(|| EngineError::NoRun { run: run.to_string() })
    }

    /// Returns the events of a run about one of its changes.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn change(
        self,
        run: RunId,
        change: ChangeId,
    ) -> Result<Vec<serde_json::Value>, EngineError> {
        let change = change.to_string();
        let events = self.engine.log().events(run, 0).await?;
        let about = events.iter().filter(|stored| stored.entry.name.starts_with("change_"));
        let told: Vec<_> = about.map(event_json).collect::<Result<_, _>>()?;
        Ok(told.into_iter().filter(|event| event["change"] == change.as_str()).collect())
    }

    /// The diff of a run's outcome, when its agents had worktrees.
    pub async fn diff(self, run: RunId) -> Option<String> {
        let state = self.engine.state(run).await.ok()?;
        match state.workflow.workflow.worktrees {
            true => self.engine.shared().places.diff(run).await,
            false => None,
        }
    }
}

impl HandoffView {
    /// The handoff during which it was made.
    pub fn cause(&self) -> Option<HandoffId> {
        match self {
            HandoffView::Refused(refused) => refused.cause,
            HandoffView::Admitted(handoff) => handoff.cause,
        }
    }
}
