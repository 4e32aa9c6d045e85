//! Health checks: the daemon is alive, and it can work.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use stafette_engine::OpenRuns;

use crate::openapi::operations;
use crate::principal::{Principal, Via};
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "daemon";
    GET "/healthz" => alive, Public, "healthz", "Does the daemon live?";
    GET "/v1/standing" => standing, Read, "standing",
        "What goes on, and what waits for a person, in numbers";
    GET "/readyz" => ready, Public, "readyz",
        "Can it work: is the store writable and the engine open?";
}

/// Reports that the daemon is alive.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Always `ok`: an unhealthy daemon returns a problem document.
    status: &'static str,
    /// Version of the daemon; only for identified callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    /// Process id of the daemon; only for identified callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// Number of connected MCP clients; only for identified callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_sessions: Option<usize>,
    /// True if the daemon only shows what exists, until somebody acts; only for identified callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    /// Number of unfinished runs that wait until somebody continues them; only for identified callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_runs: Option<usize>,
    /// Number of runs whose stored events are damaged; only for identified callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged_runs: Option<usize>,
}

async fn alive(State(edge): State<Edge>, principal: Principal) -> Json<Health> {
    let known = principal.via != Via::Nobody;
    let mcp_sessions = match known {
        true => Some(edge.mcp.connected().await),
        false => None,
    };
    Json(Health {
        status: "ok",
        version: known.then_some(env!("CARGO_PKG_VERSION")),
        pid: known.then(std::process::id),
        mcp_sessions,
        held: known.then(|| edge.engine.stopped().is_held()),
        stopped_runs: known.then(|| edge.engine.stopped().count()),
        damaged_runs: known.then(|| edge.engine.stopped().damaged()),
    })
}

/// What goes on in the project, and what waits for a person, in numbers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Standing {
    /// True if the daemon only shows what exists, until somebody acts.
    held: bool,
    /// Number of runs that go on by themselves.
    running: usize,
    /// Number of runs that a person has paused.
    paused: usize,
    /// Number of runs that do not continue before a person acts.
    stopped: usize,
    /// Number of questions in the inbox.
    questions: usize,
    /// Number of changes that wait for a person, and that no question is about.
    changes: usize,
}

async fn standing(State(edge): State<Edge>) -> Result<Json<Standing>, Problem> {
    let OpenRuns { running, paused, stopped } = edge.engine.stopped().open_runs();
    let questions = edge.engine.log().questions().await?.len();
    let changes = edge.engine.changes().waiting().await?.len();
    let held = edge.engine.stopped().is_held();
    Ok(Json(Standing { held, running, paused, stopped, questions, changes }))
}

async fn ready(State(edge): State<Edge>, principal: Principal) -> Result<Json<Health>, Problem> {
    edge.engine.ready().await?;
    Ok(alive(State(edge), principal).await)
}
