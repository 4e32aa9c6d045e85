//! The graph, to walk through.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::graph::{
    Cursor, Exchanged, FORMAT, GoalView, Label, Node, NodeKey, PAGE, Picture, REACH, Record, Size,
};

use crate::openapi::named;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named, within};
use crate::{Edge, Problem};

pub(super) fn routes() -> ApiRouter<Edge> {
    let about = |id, summary| named("knowledge", id, summary);
    ApiRouter::new()
        .api_route("/v1/goals", get_with(goals, about("listGoals", "Goals and what serves them")))
        .api_route("/v1/graph", get_with(size, about("graphSize", "How much the graph holds")))
        .api_route(
            "/v1/graph/export",
            get_with(export, about("exportGraph", "All nodes and then all links, page by page")),
        )
        .api_route(
            "/v1/graph/import",
            post_with(import, about("importGraph", "Put what another graph held on top of this")),
        )
        .api_route(
            "/v1/graph/nodes",
            get_with(list, about("listNodes", "Nodes of one kind, by their ids")),
        )
        .api_route(
            "/v1/graph/nodes/{node}",
            get_with(node, about("getNode", "One node, with who made it")),
        )
        .api_route(
            "/v1/graph/nodes/{node}/around",
            get_with(around, about("walkGraph", "What is within a few links of a node")),
        )
}

/// Goals.
#[derive(Debug, Serialize, JsonSchema)]
struct GoalList {
    /// By their ids.
    goals: Vec<GoalView>,
}

async fn goals(State(edge): State<Edge>, principal: Principal) -> Result<Json<GoalList>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(GoalList { goals: stages.goals(&actor, PAGE).await? }))
}

async fn size(State(edge): State<Edge>) -> Result<Json<Size>, Problem> {
    Ok(Json(edge.stages()?.size().await?))
}

/// Where an export goes on.
#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    /// What the page before said; the beginning otherwise.
    #[serde(default)]
    after: String,
    /// How many at most, from 1 to 1000.
    #[serde(default = "page")]
    limit: usize,
}

/// A page of an export.
#[derive(Debug, Serialize, JsonSchema)]
struct Exported {
    /// The version of these records.
    stafette_graph: u32,
    /// Nodes or links.
    records: Vec<Record>,
    /// Where the next page begins; nowhere after the last one.
    next: Option<String>,
}

async fn export(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(Place { after, limit }): Asked<Place>,
) -> Result<Json<Exported>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let after: Cursor = after.parse().map_err(|error: stafette_knowledge::graph::NotACursor| {
        Problem::new(422, "not_a_place", error.to_string())
    })?;
    let limit = within("limit", limit, 1..=PAGE)?;
    let (records, next) = stages.export(&actor, &after, limit).await?;
    let next = next.map(|next| next.to_string());
    Ok(Json(Exported { stafette_graph: FORMAT, records, next }))
}

/// What another graph held.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Imported {
    /// The version of these records, as the export said it.
    stafette_graph: u32,
    /// Nodes before the links between them, 1000 at most.
    records: Vec<Record>,
}

async fn import(
    State(edge): State<Edge>,
    principal: Principal,
    Body(Imported { stafette_graph, records }): Body<Imported>,
) -> Result<Json<Exchanged>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    within("stafette_graph", stafette_graph, FORMAT..=FORMAT)?;
    Ok(Json(stages.import(&actor, &records).await?))
}

/// Which nodes.
#[derive(Debug, Deserialize, JsonSchema)]
struct Which {
    /// Of which kind.
    label: Label,
    /// Only those whose ids come after this one.
    #[serde(default)]
    after: String,
    /// How many at most, from 1 to 1000.
    #[serde(default = "page")]
    limit: usize,
}

fn page() -> usize {
    100
}

/// Nodes.
#[derive(Debug, Serialize, JsonSchema)]
struct Nodes {
    /// By their ids.
    nodes: Vec<Node>,
}

async fn list(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(Which { label, after, limit }): Asked<Which>,
) -> Result<Json<Nodes>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let limit = within("limit", limit, 1..=PAGE)?;
    Ok(Json(Nodes { nodes: stages.list(&actor, label, &after, limit).await? }))
}

/// Which node is meant.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheNode {
    /// Its kind and id, such as `task:t1`.
    node: String,
}

impl TheNode {
    fn key(&self) -> Result<NodeKey, Problem> {
        self.node.parse().map_err(|error: stafette_knowledge::graph::NotANode| {
            Problem::new(422, "not_a_node", error.to_string())
        })
    }
}

async fn node(
    State(edge): State<Edge>,
    principal: Principal,
    Named(the): Named<TheNode>,
) -> Result<Json<Node>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.node(&actor, &the.key()?).await?))
}

/// How far to look.
#[derive(Debug, Deserialize, JsonSchema)]
struct HowFar {
    /// How many links, from 1 to 3.
    #[serde(default = "one")]
    reach: u8,
    /// How many nodes at most, from 1 to 1000.
    #[serde(default = "page")]
    limit: usize,
}

fn one() -> u8 {
    1
}

async fn around(
    State(edge): State<Edge>,
    principal: Principal,
    Named(the): Named<TheNode>,
    Asked(HowFar { reach, limit }): Asked<HowFar>,
) -> Result<Json<Picture>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let (reach, limit) = (within("reach", reach, 1..=REACH)?, within("limit", limit, 1..=PAGE)?);
    Ok(Json(stages.around(&actor, &the.key()?, reach, limit).await?))
}
