//! Insights, and the estimation parameters that they change.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::graph::{NodeKey, PAGE};
use stafette_knowledge::mind::parameters::Version;
use stafette_stages::{InsightView, Reflection};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named, within};
use crate::{Edge, Problem};

operations! {
    pub(super) fn routes() in "knowledge";
    GET "/v1/insights" => list, Shared, "listInsights", "What was learned, the surest first";
    POST "/v1/insights/reflect" => reflect, TakePart, "reflect",
        "Look for patterns in all that happened";
    GET "/v1/insights/{insight}/evidence" => evidence, Shared, "insightEvidence",
        "What an insight was learned from";
    POST "/v1/insights/{insight}/accept" => accept, Decide, "acceptInsight",
        "Have an insight count from now on";
    GET "/v1/parameters" => versions, Shared, "listParameters",
        "What the stages reckon with, by version";
    POST "/v1/parameters/rollback" => roll_back, Decide, "rollBack",
        "Take up an earlier version again";
}

/// Filter for the list of insights.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Words that an insight must contain.
    #[serde(default)]
    topic: String,
    /// Maximum number of insights, from 1 to 1000.
    #[serde(default = "super::page")]
    limit: usize,
}

/// Insights of the project.
#[derive(Debug, Serialize, JsonSchema)]
struct Insights {
    /// Insights, the most certain first.
    insights: Vec<InsightView>,
}

async fn list(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(Which { topic, limit }): Asked<Which>,
) -> Result<Json<Insights>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let limit = within("limit", limit, 1..=PAGE)?;
    Ok(Json(Insights { insights: stages.insights(&actor, &topic, limit).await? }))
}

async fn reflect(
    State(edge): State<Edge>,
    principal: Principal,
) -> Result<Json<Reflection>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.reflect(&actor, &edge.engine).await?))
}

/// An insight, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheInsight {
    /// Id of the insight.
    insight: String,
}

/// Evidence for an insight.
#[derive(Debug, Serialize, JsonSchema)]
struct Evidence {
    /// Paths from the insight to its evidence, and on to the decision and the discussion.
    ways: Vec<Vec<NodeKey>>,
}

async fn evidence(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheInsight { insight }): Named<TheInsight>,
) -> Result<Json<Evidence>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(Evidence { ways: stages.evidence_of(&actor, &insight, PAGE).await? }))
}

async fn accept(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheInsight { insight }): Named<TheInsight>,
) -> Result<Json<Version>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.accept_insight(&actor, &insight).await?))
}

/// Versions of the estimation parameters.
#[derive(Debug, Serialize, JsonSchema)]
struct Versions {
    /// Versions, the oldest first; the last one is in force.
    versions: Vec<Version>,
}

async fn versions(
    State(edge): State<Edge>,
    principal: Principal,
) -> Result<Json<Versions>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(Versions { versions: stages.parameters(&actor).await? }))
}

/// Version to roll back to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Back {
    /// Number of the version.
    to: u32,
}

async fn roll_back(
    State(edge): State<Edge>,
    principal: Principal,
    Body(Back { to }): Body<Back>,
) -> Result<Json<Version>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.roll_back(&actor, to).await?))
}
