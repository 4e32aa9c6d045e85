//! The Model Context Protocol: `/mcp` as streamable HTTP, and a stream of lines for `stafette mcp`.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{any, post};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use stafette_engine::Engine;
use stafette_mcp::{Caller, Mcp, ToolError};
use stafette_stages::Stages;

use crate::guard::TURN_TOKEN;
use crate::principal::{Principal, Via};
use crate::{Edge, Problem, ReadWorkflow};

/// Name of the protocol that a connection is upgraded to.
const NAME: &str = "mcp";

pub(crate) fn routes() -> Router<Edge> {
    Router::new().route("/mcp", any(http)).route("/v1/mcp", post(stream))
}

/// Creates the MCP service for the engine.
pub(crate) fn service(engine: Engine, workflow: Arc<ReadWorkflow>, stages: Option<Stages>) -> Mcp {
    let read = move || workflow().map_err(|problem| trouble(&problem));
    Mcp::new(engine, Arc::new(read), stages)
}

fn trouble(problem: &Problem) -> ToolError {
    let trouble = ToolError::new(&problem.code, problem.title.clone());
    match problem.fix.as_str() {
        "" => trouble.fix(problem.detail.clone()),
        fix => trouble.fix(format!("{} To do: {fix}.", problem.detail).trim_start()),
    }
}

async fn http(State(edge): State<Edge>, principal: Principal, request: Request) -> Response<Body> {
    let hosts = edge.door().map(|door| door.hosts).unwrap_or_default();
    let caller = caller(&principal, request.headers());
    edge.mcp.answer(caller, &hosts, request).await.map(Body::new)
}

/// Upgrades the connection to a stream of JSON-RPC lines in both directions.
async fn stream(
    State(edge): State<Edge>,
    principal: Principal,
    mut request: Request,
) -> Response<Body> {
    let asked = header(request.headers(), UPGRADE.as_str()).is_some_and(|name| name == NAME);
    let near = matches!(principal.via, Via::Socket { .. });
    let upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let (Some(upgrade), true) = (upgrade, asked && near) else {
        let problem = Problem::new(426, "upgrade_required", "This address is for `stafette mcp`")
            .because("ask for `Upgrade: mcp` by the Unix socket, or use /mcp");
        let mut response = problem.into_response();
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static(NAME));
        return response;
    };
    let Some(place) = edge.mcp.place() else {
        let problem = Problem::new(503, "too_many_streams", "There are too many MCP streams");
        return problem.because("end one of them first").into_response();
    };
    let caller = caller(&principal, request.headers());
    tokio::spawn(async move {
        // A client that left before the upgrade needs no report.
        if let Ok(upgraded) = upgrade.await {
            edge.mcp.serve(place, TokioIo::new(upgraded), caller).await;
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(NAME));
    response
}

fn caller(principal: &Principal, headers: &HeaderMap) -> Caller {
    let name = match principal.via {
        // Clients on the Unix socket name themselves, unless they are agents.
        Via::Socket { .. } | Via::Nobody => {
            principal.caller.agent().map(ToString::to_string).unwrap_or_default()
        }
        Via::Bearer | Via::Page => principal.name.clone(),
    };
    Caller {
        name,
        token: header(headers, TURN_TOKEN).map(str::to_owned),
        pid: principal.pid(),
        // Whoever speaks this protocol is a program, which may assist a person.
        who: principal.caller.clone().assisted(),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|value| !value.is_empty())
}
