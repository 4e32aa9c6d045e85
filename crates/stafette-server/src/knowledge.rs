//! Knowledge and planning, one file per part. The stages decide in one place who may read or change
//! it.

mod calendar;
mod decisions;
mod graph;
mod insights;
mod threads;

use aide::axum::ApiRouter;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use stafette_core::Party;
use stafette_core::change::Author;
use stafette_stages::{Actor, Health, StageError, Stages};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::{Edge, Problem};

/// The number of items on a page, unless another is asked for.
fn page() -> usize {
    100
}

operations! {
    fn own_routes() in "knowledge";
    GET "/v1/knowledge" => health, Shared, "knowledgeHealth", "How graph and calendar are doing";
}

pub(crate) fn routes() -> ApiRouter<Edge> {
    own_routes()
        .merge(threads::routes())
        .merge(graph::routes())
        .merge(decisions::routes())
        .merge(calendar::routes())
        .merge(insights::routes())
}

/// Health of the knowledge store.
#[derive(Debug, Serialize, JsonSchema)]
struct HealthView {
    /// Health of graph and calendar.
    #[serde(flatten)]
    health: Health,
    /// Descriptions of time blocks that lost their slot or order and wait for a person.
    waits: Vec<String>,
    /// True if stafette.toml has changed since; the daemon must be restarted to apply it.
    changed: bool,
    /// Batches that the graph refused, with the reason.
    set_aside: Vec<stafette_knowledge::graph::SetAside>,
}

async fn health(
    State(edge): State<Edge>,
    principal: Principal,
) -> Result<Json<HealthView>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let health = stages.health().await?;
    // A workflow that cannot be read or is not trusted counts as unchanged.
    let says = (edge.workflow)().ok().and_then(|workflow| workflow.knowledge);
    let changed = says.is_some_and(|says| says != *stages.settings());
    let (waits, set_aside) = (stages.waits(&actor).await?, stages.set_aside(&actor).await?);
    Ok(Json(HealthView { health, waits, changed, set_aside }))
}

impl Edge {
    /// Returns the stages, if this project keeps knowledge.
    fn stages(&self) -> Result<&Stages, Problem> {
        self.stages.as_ref().ok_or_else(|| {
            Problem::new(409, "no_knowledge", "This project keeps no knowledge").fix(
                "add a section [knowledge] to stafette.toml, trust it, and start the daemon \
                 again with `stafette down`",
            )
        })
    }

    /// Returns the stages with the caller: an agent or a person.
    fn knower(&self, principal: &Principal) -> Result<(&Stages, Actor), Problem> {
        let actor = match principal.caller.author() {
            Some(Author { agent: Some(agent), run, handoff, .. }) => {
                Actor { party: Party::from(&agent), run, handoff }
            }
            _ => Actor::person(),
        };
        Ok((self.stages()?, actor))
    }
}

impl From<StageError> for Problem {
    fn from(fault: StageError) -> Self {
        match fault {
            StageError::Engine { source } => source.into(),
            fault => {
                let (status, code) = fault.code();
                Problem::new(status, code, fault.to_string())
            }
        }
    }
}
