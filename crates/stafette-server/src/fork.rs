//! Forks: new runs that start from an earlier point of another run.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{HandoffId, RunId};
use stafette_engine::{EngineError, Right};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Body, Named};
use crate::runs::TheRun;
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "runs";
    POST "/v1/runs/{run}/fork" => fork, Run, "forkRun",
        "Go another way from a moment of a run's past";
}

/// Point to fork from; the present if left out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Fork {
    /// Sequence number of the last event that both runs share.
    seq: Option<u64>,
    /// Alternatively, the handoff that is given out again.
    handoff: Option<HandoffId>,
    /// Name of the person who forks the run, for the record.
    by: String,
}

/// Confirms that the run was forked.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Forked {
    /// Id of the new run.
    run: RunId,
    /// Id of the original run.
    from: RunId,
}

async fn fork(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheRun { run }): Named<TheRun>,
    Body(Fork { seq, handoff, by }): Body<Fork>,
) -> Result<Json<Forked>, Problem> {
    let from = crate::runs::find(&edge, &run).await?;
    // The new run may spend what this one may.
    let state = edge.engine.state(from).await?;
    principal.may(Right::to_begin(&state.purse.limit, &state.workflow.budget))?;
    let seq = match (seq, handoff) {
        (None, Some(handoff)) => Some(admitted(&edge, from, handoff).await?),
        (seq, _) => seq,
    };
    let run =
        edge.engine.fork(from, seq, principal.signed(by)).await.map_err(|error| match error {
            EngineError::Over { .. } => Problem::new(409, "run_over", "The run was over by then")
                .because("fork it from an earlier event or handoff; `stafette log` lists them"),
            other => other.into(),
        })?;
    Ok(Json(Forked { run, from }))
}

/// Returns the sequence number of the event that admitted a handoff.
async fn admitted(edge: &Edge, run: RunId, handoff: HandoffId) -> Result<u64, Problem> {
    let entries = edge.engine.store().entries_of(run, handoff).await;
    let entries = entries.map_err(EngineError::from)?;
    let first = entries.iter().find(|stored| stored.entry.name == "handoff_admitted");
    let first = first.ok_or(EngineError::NoHandoff { run, handoff })?;
    Ok(first.entry.seq)
}
