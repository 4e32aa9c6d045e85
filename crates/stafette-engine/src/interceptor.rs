//! Somebody who is asked before something begins, and may say no.

use std::fmt::Debug;
use std::path::Path;
use std::pin::Pin;

use stafette_core::run::create::RunCreated;
use stafette_core::{Input, RunId, TurnOrder, Workflow};

use crate::{Engine, EngineError};

/// What a warden thinks of something.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HookDecision {
    /// Why it must not be, when it must not.
    pub refusal: Option<String>,
    /// What people should hear of, though nothing is held back for it.
    pub alerts: Vec<String>,
}

/// The code of alerts that a warden raises.
pub const ALERT: &str = "HOOK_FAILED";

/// A verdict that takes its time. It comes within a bounded time.
pub type Asked<'a> = Pin<Box<dyn Future<Output = HookDecision> + Send + 'a>>;

/// A run that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The name that it will have.
    pub run: RunId,
    /// By which workflow.
    pub workflow: &'a Workflow,
    /// What is asked for.
    pub request: &'a str,
    /// Who asks.
    pub by: &'a str,
}

/// Is asked before something begins.
pub trait Interceptor: Debug + Send + Sync {
    /// Before a run begins: nothing of it is stored yet.
    fn before_run<'a>(&'a self, beginning: Beginning<'a>) -> Asked<'a>;

    /// Before an agent gets a turn. `folder` is where it would work.
    fn before_turn<'a>(
        &'a self,
        workflow: &'a Workflow,
        order: &'a TurnOrder,
        folder: &'a Path,
    ) -> Asked<'a>;
}

impl Engine {
    /// Asks whether a run may begin; what is to be said of it otherwise comes back.
    pub(crate) async fn ask(&self, created: &RunCreated) -> Result<Vec<String>, EngineError> {
        let RunCreated { run, workflow, request, by, .. } = created;
        self.ask_about(Beginning { run: *run, workflow, request, by }).await
    }

    pub(crate) async fn ask_about(
        &self,
        beginning: Beginning<'_>,
    ) -> Result<Vec<String>, EngineError> {
        if let Some(gate) = self.gate() {
            gate.begins(beginning.workflow).map_err(|why| EngineError::Objected { why })?;
        }
        let Some(warden) = self.warden() else { return Ok(Vec::new()) };
        let HookDecision { refusal, alerts } = warden.before_run(beginning).await;
        refusal.map_or(Ok(alerts), |why| Err(EngineError::Blocked { why: self.redacted(why) }))
    }

    /// Has the run say what people should hear of; one that is over says nothing any more.
    pub async fn alert(&self, run: RunId, alerts: Vec<String>) {
        for message in alerts {
            let alert = Input::Alert { code: ALERT.to_owned(), message };
            if let Err(error) = self.send(run, alert).await {
                tracing::warn!(%run, %error, "an alert was not taken");
            }
        }
    }
}
