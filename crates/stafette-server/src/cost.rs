//! Cost report.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use stafette_engine::{By, Cost, Right};

use crate::openapi::named;
use crate::request::Asked;
use crate::{Edge, Problem};

pub(crate) fn routes() -> ApiRouter<Edge> {
    let about =
        named("runs", Right::Read, "getCost", "Add up what was spent, by run, agent or day");
    ApiRouter::new().api_route("/v1/cost", get_with(cost, about))
}

/// Grouping of the cost report.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sorting {
    /// Key to group by; `run` if left out.
    by: By,
}

async fn cost(
    State(edge): State<Edge>,
    Asked(Sorting { by }): Asked<Sorting>,
) -> Result<Json<Cost>, Problem> {
    Ok(Json(Cost::of(&edge.engine, by).await?))
}
