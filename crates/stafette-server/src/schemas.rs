//! JSON schemas of the documents, and the current workflow.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use stafette_core::Workflow;
use stafette_core::schema;
use stafette_engine::Right;

use crate::openapi::named;
use crate::request::Named;
use crate::{Edge, Problem};

pub(crate) fn routes() -> ApiRouter<Edge> {
    let about = |right, id, summary| named("workflow", right, id, summary);
    ApiRouter::new()
        .api_route(
            "/v1/workflow",
            get_with(
                workflow,
                about(Right::Read, "getWorkflow", "Show who there is and who may hand to whom"),
            ),
        )
        .api_route(
            "/v1/schemas",
            get_with(
                list,
                about(Right::Shared, "listSchemas", "List the documents that have a schema"),
            ),
        )
        .api_route(
            "/v1/schemas/{name}",
            get_with(show, about(Right::Shared, "getSchema", "Show the JSON Schema of a document")),
        )
}

/// The project's workflow: agents, routes, loops, limits. It is read again on each request.
async fn workflow(State(edge): State<Edge>) -> Result<Json<Workflow>, Problem> {
    Ok(Json((edge.workflow)()?))
}

async fn list() -> Json<Vec<&'static str>> {
    Json(schema::names())
}

/// A schema, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheSchema {
    /// Name of the schema, as listed by `/v1/schemas`.
    name: String,
}

async fn show(Named(TheSchema { name }): Named<TheSchema>) -> Result<Json<Value>, Problem> {
    let known = name.parse().map_err(|_| {
        Problem::new(404, "no_schema", "There is no such schema")
            .because(format!("there are {}", schema::names().join(", ")))
    })?;
    Ok(Json(schema::schema(known)))
}
