//! The HTTP interface: requests come in, the engine's responses go out.
//!
//! The daemon serves HTTP on three listeners. One Unix socket belongs to its user, who may do
//! everything there, and another one to agents, who take part in their turns. On TCP the guard admits
//! the user's own browser and programs with a token, and nobody else.
//!
//! Invariants:
//! - Every error is a problem document (RFC 9457) with a stable `code`.
//! - No handler decides anything: it turns a request into an input and events into a response.
//! - Every operation declares the right that it needs, and no request reaches a route before a
//!   guard has found that its caller has it.
//! - The API description is generated from the types that the handlers use.

mod a2a;
mod access;
mod agents;
mod answer;
mod changes;
mod cost;
mod emit;
mod fork;
mod generations;
mod guard;
mod handoffs;
mod health;
mod inbox;
mod knowledge;
mod launch;
mod locks;
mod mcp;
mod messages;
mod notify;
mod openapi;
mod page;
mod principal;
mod private;
mod problem;
mod renewal;
mod request;
mod rights;
mod runs;
mod schemas;
mod secret;
mod serve;
mod stream;
mod telemetry;
pub mod terminals;
mod tokens;
mod triggers;
mod turns;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::DefaultBodyLimit;
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::Serialize;
use stafette_core::Workflow;
use stafette_engine::{Engine, clock};
use stafette_hooks::{Notifier, Page, Triggers};
use stafette_stages::Stages;
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Notify;

use guard::{Guard, LocalGuard};
use launch::Launches;
use openapi::operations;

pub use access::LaunchLink;
pub use guard::Door;
pub use openapi::document as openapi;
pub use principal::{Principal, Standing, Via};
pub use problem::Problem;
pub use rights::{Operation, callers, operations};
pub use serve::{Tls, TlsError};
pub use stafette_engine::{Caller, Right, Scope};
pub use telemetry::Observed;
pub use tokens::{NewToken, TokenError, TokenView, Tokens};

/// Maximum size of a request body, in bytes.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// Reads the project's workflow each time a run begins: it may have changed, and must be trusted.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, Problem> + Send + Sync;

/// State that the handlers share.
#[derive(Clone)]
pub struct Edge {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    stop: Arc<Notify>,
    tokens: Arc<Tokens>,
    launches: Arc<Launches>,
    door: Arc<Mutex<Option<Door>>>,
    a2a: stafette_a2a::A2a,
    mcp: stafette_mcp::Mcp,
    around: Option<(Arc<Triggers>, Arc<Notifier>)>,
    observed: Option<Observed>,
    stages: Option<Stages>,
}

impl std::fmt::Debug for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edge").finish_non_exhaustive()
    }
}

/// A TCP listener cannot be opened.
#[derive(Debug, Error)]
pub enum DoorError {
    /// A non-loopback address needs TLS; otherwise others could read the traffic.
    #[error("beyond this machine, Stafette listens only with TLS")]
    NoTls,
    /// A non-loopback address needs a token; otherwise nobody or everybody could connect.
    #[error("beyond this machine, Stafette listens only when there is a token")]
    NoToken,
    /// The address cannot be bound.
    #[error("{address} cannot be listened on")]
    Bind {
        /// The address that was tried.
        address: SocketAddr,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl Edge {
    /// Creates the interface of `engine`; `stop` is notified when a client asks the daemon to end.
    #[must_use]
    pub fn new(
        engine: Engine,
        workflow: Arc<ReadWorkflow>,
        stop: Arc<Notify>,
        tokens: Tokens,
    ) -> Self {
        let tokens = Arc::new(tokens);
        let a2a = a2a::open(&engine, &workflow);
        let mcp = mcp::service(engine.clone(), workflow.clone(), None);
        let launches = Arc::new(Launches::default());
        let door = Arc::default();
        let (around, observed, stages) = (None, None, None);
        Edge { engine, workflow, stop, tokens, launches, door, a2a, mcp, around, observed, stages }
    }

    /// Adds triggers and notifications.
    #[must_use]
    pub fn with(self, triggers: Arc<Triggers>, notifier: Arc<Notifier>) -> Self {
        Edge { around: Some((triggers, notifier)), ..self }
    }

    /// Adds knowledge and planning.
    #[must_use]
    pub fn knowing(self, stages: Stages) -> Self {
        let known = Some(stages.clone());
        let mcp = mcp::service(self.engine.clone(), self.workflow.clone(), known);
        Edge { mcp, stages: Some(stages), ..self }
    }

    /// Returns a function that reports the current URL of the page.
    #[must_use]
    pub fn page(&self) -> Arc<Page> {
        let door = self.door.clone();
        Arc::new(move || {
            let door = door.lock().unwrap_or_else(PoisonError::into_inner);
            door.as_ref().map(Door::url)
        })
    }

    /// Adds metrics and alerts from `observed`.
    #[must_use]
    pub fn observed_by(self, observed: Observed) -> Self {
        Edge { observed: Some(observed), ..self }
    }

    /// Serves people on their Unix socket, until it is dropped. An agent's process is an agent there
    /// as well.
    pub async fn serve(self, socket: UnixListener) {
        let guard = LocalGuard::new(self.engine.clone(), false);
        serve::socket(socket, guard, self.router()).await;
    }

    /// Serves agents on the Unix socket that they are given, until it is dropped. They show the
    /// token of their turn.
    pub async fn serve_agents(self, socket: UnixListener) {
        let guard = LocalGuard::new(self.engine.clone(), true);
        serve::socket(socket, guard, self.router()).await;
    }

    /// Opens a TCP listener behind its guard.
    ///
    /// # Errors
    /// When the address is not loopback and TLS or a token is missing, or it cannot be bound.
    pub async fn open(
        &self,
        address: SocketAddr,
        tls: Option<Tls>,
        hosts: Vec<String>,
    ) -> Result<Door, DoorError> {
        if !address.ip().is_loopback() {
            if tls.is_none() {
                return Err(DoorError::NoTls);
            }
            if !self.tokens.any(clock::now()) {
                return Err(DoorError::NoToken);
            }
        }
        let failed = |source| DoorError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let door = Door { address, tls: tls.is_some(), hosts };
        let router = self.clone().guarded(&door);
        tokio::spawn(serve::port(listener, tls, router));
        self.lock().get_or_insert(door.clone());
        Ok(door)
    }

    /// Returns the open listener, or opens one on loopback, on a port of its own each time.
    async fn some_door(&self) -> Result<Door, DoorError> {
        match self.door() {
            Some(door) => Ok(door),
            None => self.open(here(0), None, Vec::new()).await,
        }
    }

    fn door(&self) -> Option<Door> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Door>> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn router(self) -> Router {
        let (router, _) = openapi::describe();
        router
            .merge(a2a::routes(&self))
            .merge(mcp::routes())
            .fallback(page::fallback)
            .method_not_allowed_fallback(not_so)
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(self)
    }

    /// Puts the guard in front of the router, so that it runs before any route is matched.
    fn guarded(self, door: &Door) -> Router {
        let guard = Arc::new(Guard::new(door, self.tokens.clone(), self.launches.clone()));
        let asked = axum::middleware::from_fn_with_state(guard, guard::guard);
        Router::new().fallback_service(self.router()).layer(asked)
    }
}

/// Returns the loopback address with this port.
fn here(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from(Ipv4Addr::LOCALHOST), port)
}

operations! {
    fn daemon() in "daemon";
    POST "/v1/stop" => stop, Admin, "stopDaemon", "Stop the daemon; its runs continue later";
    POST "/v1/continue" => continue_runs, Admin, "continueRuns",
        "Continue the runs that are stopped";
}

/// The runs that were stopped continue, if they may.
#[derive(Debug, Serialize, JsonSchema)]
struct Continued {
    /// The number of runs that continue.
    runs: usize,
    /// The runs that stay stopped.
    stopped: Vec<StaysStopped>,
}

/// A run that stays stopped.
#[derive(Debug, Serialize, JsonSchema)]
struct StaysStopped {
    /// Id of the run.
    run: stafette_core::RunId,
    /// Reason why, and what to do.
    why: String,
}

async fn continue_runs(axum::extract::State(edge): axum::extract::State<Edge>) -> Json<Continued> {
    let all = edge.engine.stopped().count();
    let stopped = edge.engine.stopped().untrusted().into_iter();
    let stopped: Vec<_> = stopped.map(|(run, why)| StaysStopped { run, why }).collect();
    edge.engine.release();
    Json(Continued { runs: all.saturating_sub(stopped.len()), stopped })
}

/// Confirms that the daemon ends.
#[derive(Debug, Serialize, JsonSchema)]
struct Stopping {
    /// Always true: a refusal is a problem document.
    stopping: bool,
}

async fn stop(axum::extract::State(edge): axum::extract::State<Edge>) -> Json<Stopping> {
    edge.stop.notify_one();
    Json(Stopping { stopping: true })
}

async fn not_so() -> Problem {
    Problem::new(405, "method", "This address does not take this method")
}
