//! Runs as tasks of the Agent2Agent protocol (A2A 1.0): other agents hand work to a project as if
//! it were one agent.
//!
//! A message starts a run, which is the task; its context groups runs. An open question to a person
//! is `input-required`, and a message to the task answers it. The results of the run are the task's
//! artifacts.
//!
//! Invariants:
//! - A task is a projection of its run, built anew for each request. Nothing of it is stored here,
//!   so a restart loses nothing.
//! - The same message does the same thing once: the run's id is derived from it.
//! - Data that is only here, the notification targets and what was sent, is on disk before it is
//!   acknowledged.
//! - Notifications go to the public internet with TLS, or to an address that the trusted workflow
//!   names; they never follow a redirect, and stop at a deadline.

mod artifact;
mod card;
mod inbound;
mod method;
mod push;
mod rest;
mod rpc;
mod task;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use stafette_core::Workflow;
use stafette_core::trace::Traceparent;
use stafette_engine::Engine;

use push::PushNotifier;

pub use method::rights;

/// Reads the project's workflow when a task begins; the error says what to do.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, String> + Send + Sync;

/// The caller, as identified by the server; put it into the extensions of each request. An unknown
/// caller may do nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    pub name: String,
    /// The caller, which decides what it may do.
    pub who: stafette_engine::Caller,
    pub by_tls: bool,
    /// Span of the caller, in its own trace.
    pub within: Option<Traceparent>,
}

/// The A2A interface of a project. Cheap to clone.
#[derive(Clone)]
pub struct A2a {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    notifier: PushNotifier,
}

impl std::fmt::Debug for A2a {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("A2a").finish_non_exhaustive()
    }
}

impl A2a {
    /// Opens the A2A interface of an engine's project. `folder` keeps the notification targets;
    /// pending notifications are sent from now on. Must be called within a tokio runtime.
    #[must_use]
    pub fn open(engine: Engine, workflow: Arc<ReadWorkflow>, folder: PathBuf) -> Self {
        let notifier = PushNotifier::new(engine.clone(), workflow.clone(), folder);
        notifier.resume();
        A2a { engine, workflow, notifier }
    }

    /// Returns the routes: the card, and both bindings.
    pub fn router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        Router::new()
            .route(card::PLACE, get(card::show))
            .route(card::RPC, post(rpc::serve))
            .route(&format!("{}/{{*path}}", card::REST), axum::routing::any(rest::serve))
            .with_state(self)
    }
}
