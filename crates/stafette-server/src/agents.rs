//! The current activity of each agent.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_engine::AgentView;

use crate::openapi::operations;
use crate::request::{Asked, within};
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "agents";
    GET "/v1/agents" => list, Read, "listAgents", "List the agents, those who need a person first";
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AgentPage")]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Number of ended runs whose agents are included, from 0 to 1000.
    #[serde(default = "few")]
    #[schemars(range(max = 1000))]
    finished: usize,
}

fn few() -> usize {
    10
}

/// The agents, and the position from which to follow events.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Agents {
    /// Position from which to follow the events.
    position: u64,
    /// Agents of open runs and of the newest ended runs.
    agents: Vec<AgentView>,
}

async fn list(State(edge): State<Edge>, Asked(page): Asked<Page>) -> Result<Json<Agents>, Problem> {
    // Read before the agents: a client that follows from here may receive an event twice, but
    // misses none.
    let position = edge.engine.store().head().await.unwrap_or(0);
    let finished = within("finished", page.finished, 0..=1000)?;
    let agents = AgentView::list(&edge.engine, finished).await?;
    Ok(Json(Agents { position, agents }))
}
