//! What is known and planned: one file for each part of it. Whether somebody may see or change it
//! is asked of the stages, in one place.

mod calendar;
mod decisions;
mod graph;
mod insights;
mod threads;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use stafette_stages::{Actor, Fault, Health, Stages};

use crate::openapi::named;
use crate::visitor::Visitor;
use crate::{Edge, Problem};

pub(crate) fn routes() -> ApiRouter<Edge> {
    let about = named("knowledge", "knowledgeHealth", "How graph and calendar are doing");
    ApiRouter::new()
        .api_route("/v1/knowledge", get_with(health, about))
        .merge(threads::routes())
        .merge(graph::routes())
        .merge(decisions::routes())
        .merge(calendar::routes())
        .merge(insights::routes())
}

/// How what is known is doing.
#[derive(Debug, Serialize, JsonSchema)]
struct HealthView {
    /// Graph and calendar.
    #[serde(flatten)]
    health: Health,
    /// Batches that the graph refused when their turn came, with the reason.
    set_aside: Vec<stafette_knowledge::graph::SetAside>,
}

async fn health(State(edge): State<Edge>) -> Result<Json<HealthView>, Problem> {
    let stages = edge.stages()?;
    let health = stages.health().await?;
    Ok(Json(HealthView { health, set_aside: stages.set_aside().await? }))
}

impl Edge {
    /// What is known and planned, if this project keeps it.
    fn stages(&self) -> Result<&Stages, Problem> {
        self.stages.as_ref().ok_or_else(|| {
            Problem::new(409, "no_knowledge", "This project keeps no knowledge").because(
                "\nfix: add a section [knowledge] to stafette.toml, trust it, and start the daemon \
                 again with `stafette down`",
            )
        })
    }

    /// The same with who asks: the agent whose process it is, or a person.
    fn knower(&self, visitor: &Visitor) -> Result<(&Stages, Actor), Problem> {
        let author = visitor.pid().and_then(|pid| self.engine.agent_of(pid));
        let agent = author.and_then(|author| Some((author.agent?, author.run?, author.handoff?)));
        let actor = match agent {
            Some((agent, run, handoff)) => Actor::agent(&agent, run, handoff),
            None => Actor::person(),
        };
        Ok((self.stages()?, actor))
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Engine { source } => source.into(),
            fault => {
                let (status, code) = fault.code();
                Problem::new(status, code, fault.to_string())
            }
        }
    }
}
