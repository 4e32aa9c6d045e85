//! The knowledge graph: nodes, links, export and import.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::graph::{
    Cursor, Exchanged, FORMAT, GoalView, Label, Node, NodeKey, PAGE, Picture, REACH, Record, Size,
};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named, within};
use crate::{Edge, Problem};

operations! {
    pub(super) fn routes() in "knowledge";
    GET "/v1/goals" => goals, Shared, "listGoals", "Goals and what serves them";
    GET "/v1/graph" => size, Shared, "graphSize", "How much the graph holds";
    GET "/v1/graph/export" => export, Read, "exportGraph",
        "All nodes and then all links, page by page";
    POST "/v1/graph/import" => import, Decide, "importGraph",
        "Put what another graph held on top of this";
    GET "/v1/graph/nodes" => list, Shared, "listNodes", "Nodes of one kind, by their ids";
    GET "/v1/graph/nodes/{node}" => node, Shared, "getNode", "One node, with who made it";
    GET "/v1/graph/nodes/{node}/around" => around, Shared, "walkGraph",
        "What is within a few links of a node";
}

/// Goals of the project.
#[derive(Debug, Serialize, JsonSchema)]
struct GoalList {
    /// Goals, ordered by id.
    goals: Vec<GoalView>,
}

async fn goals(State(edge): State<Edge>, principal: Principal) -> Result<Json<GoalList>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(GoalList { goals: stages.goals(&actor, PAGE).await? }))
}

async fn size(State(edge): State<Edge>) -> Result<Json<Size>, Problem> {
    Ok(Json(edge.stages()?.size().await?))
}

/// Position in an export.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Place {
    /// `next` of the previous page; empty to start.
    #[serde(default)]
    after: String,
    /// Maximum number of records, from 1 to 1000.
    #[serde(default = "super::page")]
    limit: usize,
}

/// A page of an export.
#[derive(Debug, Serialize, JsonSchema)]
struct Exported {
    /// Version of the record format.
    stafette_graph: u32,
    /// Nodes or links of this page.
    records: Vec<Record>,
    /// Value of `after` for the next page; null on the last one.
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

/// Records from another graph.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Imported {
    /// Version of the record format, as in the export.
    stafette_graph: u32,
    /// Nodes before the links between them, at most 1000 records.
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

/// Filter for the list of nodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Kind of the nodes.
    label: Label,
    /// Only nodes whose ids come after this one.
    #[serde(default)]
    after: String,
    /// Maximum number of nodes, from 1 to 1000.
    #[serde(default = "super::page")]
    limit: usize,
}

/// A page of nodes.
#[derive(Debug, Serialize, JsonSchema)]
struct Nodes {
    /// Nodes, ordered by id.
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

/// A node, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheNode {
    /// Kind and id of the node, such as `task:t1`.
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

/// Limits for the neighbourhood of a node.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HowFar {
    /// Distance in links, from 1 to 3.
    #[serde(default = "one")]
    reach: u8,
    /// Maximum number of nodes, from 1 to 1000.
    #[serde(default = "super::page")]
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
