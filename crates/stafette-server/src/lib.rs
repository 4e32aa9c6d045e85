//! The edge: requests come in, the engine's answers go out.
//!
//! The daemon speaks HTTP on a Unix socket that only its user can open; the command line is its
//! first client. On TCP only the health of the daemon is served, until there are tokens.
//!
//! Invariants:
//! - Every error is a problem document (RFC 9457) with a stable `code`.
//! - No handler decides anything: it turns a request into an input and events into an answer.

mod agents;
mod emit;
mod inbox;
mod locks;
mod problem;
mod runs;
mod stream;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use stafette_core::Workflow;
use stafette_engine::Engine;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Notify;

pub use problem::Problem;

/// The most that a request may carry, in bytes.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// How the project's workflow is read, each time a run begins: it may have changed, and must be
/// trusted.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, Problem> + Send + Sync;

/// What the handlers share.
#[derive(Clone)]
pub struct Edge {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    stop: Arc<Notify>,
}

impl std::fmt::Debug for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edge").finish_non_exhaustive()
    }
}

impl Edge {
    /// An edge around `engine`; `stop` is notified when a client asks the daemon to end.
    #[must_use]
    pub fn new(engine: Engine, workflow: Arc<ReadWorkflow>, stop: Arc<Notify>) -> Self {
        Edge { engine, workflow, stop }
    }

    /// Serves everything to those who can open the socket, until it is dropped.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn serve(self, socket: UnixListener) -> std::io::Result<()> {
        let router = self.router().into_make_service_with_connect_info::<emit::Caller>();
        axum::serve(socket, router).await
    }

    fn router(self) -> Router {
        Router::new()
            .route("/v1/runs", get(runs::list).post(runs::start))
            .route("/v1/runs/{run}", get(runs::show))
            .route("/v1/runs/{run}/settled", get(runs::settled))
            .route("/v1/runs/{run}/handoffs", get(runs::handoffs))
            .route("/v1/runs/{run}/events", get(stream::of_run))
            .route("/v1/runs/{run}/why/{handoff}", get(runs::why))
            .route("/v1/runs/{run}/cancel", post(runs::cancel))
            .route("/v1/runs/{run}/pause", post(runs::pause))
            .route("/v1/runs/{run}/unpause", post(runs::unpause))
            .route("/v1/runs/{run}/budget", post(runs::raise_budget))
            .route("/v1/agents", get(agents::list))
            .route("/v1/inbox", get(inbox::list))
            .route("/v1/inbox/{question}", post(inbox::answer))
            .route("/v1/emit", post(emit::emit))
            .route("/v1/events", get(stream::all))
            .merge(locks::routes())
            .route("/v1/stop", post(stop))
            .route("/healthz", get(health))
            .fallback(nothing_here)
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(self)
    }
}

/// Serves what anyone on this machine may know: whether the daemon lives.
///
/// # Errors
/// When the socket fails.
pub async fn serve_health(socket: TcpListener) -> std::io::Result<()> {
    let router: Router = Router::new().route("/healthz", get(health)).fallback(nothing_here);
    axum::serve(socket, router).await
}

async fn health() -> Json<serde_json::Value> {
    Json(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
    }))
}

async fn stop(axum::extract::State(edge): axum::extract::State<Edge>) -> Json<serde_json::Value> {
    edge.stop.notify_one();
    Json(json!({ "stopping": true }))
}

async fn nothing_here() -> Problem {
    Problem::new(404, "not_found", "There is nothing at this address")
}
