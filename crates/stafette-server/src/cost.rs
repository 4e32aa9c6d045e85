//! Cost report.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use stafette_engine::{By, Cost};

use crate::openapi::operations;
use crate::request::Asked;
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "runs";
    GET "/v1/cost" => cost, Read, "getCost", "Add up what was spent, by run, agent or day";
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
