//! Who does what at the moment.

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Edge, Problem};

#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    /// Of how many runs that have ended.
    #[serde(default = "few")]
    finished: usize,
}

fn few() -> usize {
    10
}

/// The agents, and the position to follow the events from.
pub(crate) async fn list(
    State(edge): State<Edge>,
    Query(page): Query<Page>,
) -> Result<Json<Value>, Problem> {
    // Read first: whoever follows from here may hear something again, but misses nothing.
    let position = edge.engine.store().head().await.unwrap_or(0);
    let agents = edge.engine.agents(page.finished.min(1000)).await?;
    Ok(Json(json!({ "position": position, "agents": agents })))
}
