//! JSON schemas of the documents, and the current workflow.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use stafette_core::Workflow;
use stafette_core::schema;

use crate::openapi::operations;
use crate::request::Named;
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "workflow";
    GET "/v1/workflow" => workflow, Read, "getWorkflow",
        "Show who there is and who may hand to whom";
    GET "/v1/schemas" => list, Shared, "listSchemas", "List the documents that have a schema";
    GET "/v1/schemas/{name}" => show, Shared, "getSchema", "Show the JSON Schema of a document";
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
