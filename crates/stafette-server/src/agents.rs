//! Who does what at the moment.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_engine::AgentView;

use crate::request::{Asked, within};
use crate::{Edge, Problem};

pub(crate) fn routes() -> ApiRouter<Edge> {
    ApiRouter::new().api_route(
        "/v1/agents",
        get_with(list, |op| {
            op.id("listAgents")
                .tag("agents")
                .summary("List the agents, those who need a person first")
        }),
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AgentPage")]
pub(crate) struct Page {
    /// Of how many runs that have ended.
    #[serde(default = "few")]
    #[schemars(range(max = 1000))]
    finished: usize,
}

fn few() -> usize {
    10
}

/// The agents, and where the events go on from here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Agents {
    /// The position to follow the events from.
    position: u64,
    /// The agents.
    agents: Vec<AgentView>,
}

async fn list(State(edge): State<Edge>, Asked(page): Asked<Page>) -> Result<Json<Agents>, Problem> {
    // Read first: whoever follows from here may hear something again, but misses nothing.
    let position = edge.engine.store().head().await.unwrap_or(0);
    let finished = within("finished", page.finished, 0..=1000)?;
    let agents = edge.engine.agents(finished).await?;
    Ok(Json(Agents { position, agents }))
}
