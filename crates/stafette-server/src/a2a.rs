//! The project as one agent of the Agent2Agent protocol.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Extension, Router};
use stafette_a2a::{A2a, Caller};
use stafette_engine::Engine;

use crate::guard::Peer;
use crate::request::Within;
use crate::{Edge, Principal, ReadWorkflow};

/// Opens the A2A interface of the project.
pub(crate) fn open(engine: &Engine, workflow: &Arc<ReadWorkflow>) -> A2a {
    let workflow = Arc::clone(workflow);
    let read = Arc::new(move || {
        workflow().map_err(|problem| match problem.detail.as_str() {
            "" => problem.title,
            detail => format!("{}: {detail}", problem.title),
        })
    });
    A2a::open(engine.clone(), read, engine.settings().scratch.join("a2a"))
}

/// Routes for the agent card and both protocol bindings.
pub(crate) fn routes(edge: &Edge) -> Router<Edge> {
    edge.a2a.clone().router().layer(middleware::from_fn(introduce))
}

/// Adds the caller and the connection to the request for the A2A handlers.
async fn introduce(
    principal: Principal,
    peer: Option<Extension<Peer>>,
    Within(within): Within,
    mut request: Request,
    next: Next,
) -> Response {
    let by_tls = peer.is_some_and(|Extension(peer)| peer.tls);
    let Principal { name, caller, .. } = principal;
    request.extensions_mut().insert(Caller { name, who: caller, by_tls, within });
    next.run(request).await
}
