//! Runs as tasks of the Agent2Agent protocol (A2A 1.0): others hand work to a project as if it were
//! one agent.
//!
//! A message begins a run, which is the task; its context groups runs. An open question to a person
//! is `input-required`, and a message to the task answers it. What comes of the run are the task's
//! artifacts.
//!
//! Invariants:
//! - A task is a projection of its run, made anew whenever somebody asks. Nothing of it is kept
//!   here, so a restart loses nothing.
//! - The same message does the same thing once: the run's id is made from it.
//! - What is only here, where to send notifications and what was sent, is on the disk before it is
//!   acknowledged.
//! - Notifications go to this machine, or by TLS to the open net; they never follow a redirect, and
//!   stop at a deadline.

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

/// How the project's workflow is read when a task begins; the error says what to do.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, String> + Send + Sync;

/// Who calls, as the server found out; put it into the extensions of each request. Whoever is not
/// known may do nothing but look.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    /// What they are called.
    pub name: String,
    /// Whether they may begin, answer and cancel.
    pub may_act: bool,
    /// Whether they came by TLS.
    pub by_tls: bool,
    /// What they do this in, in a trace of theirs.
    pub within: Option<Traceparent>,
}

/// The A2A side of a project. Cheap to clone.
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
    /// The A2A side of an engine's project. Whoever is to be notified is noted in `folder`; what is
    /// still owed to them is sent from now on. Must be called within a tokio runtime.
    #[must_use]
    pub fn open(engine: Engine, workflow: Arc<ReadWorkflow>, folder: PathBuf) -> Self {
        let notifier = PushNotifier::new(engine.clone(), folder);
        notifier.resume();
        A2a { engine, workflow, notifier }
    }

    /// What is served: the card, and both bindings.
    pub fn router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        Router::new()
            .route(card::PLACE, get(card::show))
            .route(card::RPC, post(rpc::serve))
            .route(&format!("{}/{{*path}}", card::REST), axum::routing::any(rest::serve))
            .with_state(self)
    }
}
