//! The graph, to walk through.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::graph::{GoalView, Label, Node, NodeKey, PAGE, Picture, REACH, Size};

use crate::openapi::named;
use crate::request::{Asked, Named, within};
use crate::visitor::Visitor;
use crate::{Edge, Problem};

pub(super) fn routes() -> ApiRouter<Edge> {
    let about = |id, summary| named("knowledge", id, summary);
    ApiRouter::new()
        .api_route("/v1/goals", get_with(goals, about("listGoals", "Goals and what serves them")))
        .api_route("/v1/graph", get_with(size, about("graphSize", "How much the graph holds")))
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

async fn goals(State(edge): State<Edge>, visitor: Visitor) -> Result<Json<GoalList>, Problem> {
    let (stages, actor) = edge.knower(&visitor)?;
    Ok(Json(GoalList { goals: stages.goals(&actor, PAGE).await? }))
}

async fn size(State(edge): State<Edge>) -> Result<Json<Size>, Problem> {
    Ok(Json(edge.stages()?.size().await?))
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
    visitor: Visitor,
    Asked(Which { label, after, limit }): Asked<Which>,
) -> Result<Json<Nodes>, Problem> {
    let (stages, actor) = edge.knower(&visitor)?;
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
    visitor: Visitor,
    Named(the): Named<TheNode>,
) -> Result<Json<Node>, Problem> {
    let (stages, actor) = edge.knower(&visitor)?;
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
    visitor: Visitor,
    Named(the): Named<TheNode>,
    Asked(HowFar { reach, limit }): Asked<HowFar>,
) -> Result<Json<Picture>, Problem> {
    let (stages, actor) = edge.knower(&visitor)?;
    let (reach, limit) = (within("reach", reach, 1..=REACH)?, within("limit", limit, 1..=PAGE)?);
    Ok(Json(stages.around(&actor, &the.key()?, reach, limit).await?))
}
