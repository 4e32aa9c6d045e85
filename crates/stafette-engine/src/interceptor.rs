//! Interceptors are asked before a run or a turn begins, and may refuse it.

use std::fmt::Debug;
use std::path::Path;
use std::pin::Pin;

use stafette_core::run::create::RunCreated;
use stafette_core::{Input, RunId, TurnOrder, Workflow};

use crate::{Engine, EngineError};

/// The decision of an interceptor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HookDecision {
    /// The reason for the refusal; `None` when it may begin.
    pub refusal: Option<String>,
    /// Messages for people that hold nothing back.
    pub alerts: Vec<String>,
}

/// The code of alerts that an interceptor raises.
pub const ALERT: &str = "HOOK_FAILED";

/// The future of a decision. It completes within a bounded time.
pub type Asked<'a> = Pin<Box<dyn Future<Output = HookDecision> + Send + 'a>>;

/// A run that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The id that it will have.
    pub run: RunId,
    /// The workflow that it follows.
    pub workflow: &'a Workflow,
    /// The request of the user.
    pub request: &'a str,
    /// The name of the requester.
    pub by: &'a str,
}

/// Asked before a run or a turn begins.
pub trait Interceptor: Debug + Send + Sync {
    /// Called before a run begins: nothing of it is stored yet.
    fn before_run<'a>(&'a self, beginning: Beginning<'a>) -> Asked<'a>;

    /// Called before an agent gets a turn. `folder` is where it would work.
    fn before_turn<'a>(
        &'a self,
        workflow: &'a Workflow,
        order: &'a TurnOrder,
        folder: &'a Path,
    ) -> Asked<'a>;
}

impl Engine {
    /// Checks that what a workflow names may be run.
    ///
    /// # Errors
    /// The reason why not.
    pub fn trusts(&self, workflow: &Workflow) -> Result<(), String> {
        self.shared().gate.as_ref().map_or(Ok(()), |gate| gate.trusts(workflow))
    }

    /// Checks that the files which a command names are those that were trusted.
    ///
    /// # Errors
    /// The reason why not.
    pub fn trusts_command(
        &self,
        workflow: &Workflow,
        command: &[String],
        folder: &Path,
    ) -> Result<(), String> {
        self.shared()
            .gate
            .as_ref()
            .map_or(Ok(()), |gate| gate.trusts_command(workflow, command, folder))
    }

    /// Asks whether a run may begin, and returns the alerts for it.
    pub(crate) async fn ask(&self, created: &RunCreated) -> Result<Vec<String>, EngineError> {
        let RunCreated { run, workflow, request, by, .. } = created;
        self.ask_about(Beginning { run: *run, workflow, request, by }).await
    }

    pub(crate) async fn ask_about(
        &self,
        beginning: Beginning<'_>,
    ) -> Result<Vec<String>, EngineError> {
        self.trusts(beginning.workflow).map_err(|why| EngineError::Objected { why })?;
        if let Some(gate) = &self.shared().gate {
            gate.begins(beginning.workflow).map_err(|why| EngineError::Objected { why })?;
        }
        let Some(interceptor) = &self.shared().interceptor else { return Ok(Vec::new()) };
        let HookDecision { refusal, alerts } = interceptor.before_run(beginning).await;
        refusal.map_or(Ok(alerts), |why| Err(EngineError::Blocked { why: self.redacted(why) }))
    }

    /// The inputs for these alerts, without secrets.
    pub(crate) fn alerts(&self, alerts: Vec<String>) -> Vec<Input> {
        let alert = |message| Input::Alert { code: ALERT.to_owned(), message };
        self.redacted(alerts).into_iter().map(alert).collect()
    }

    /// Has the run raise these alerts; one that has ended raises none.
    pub async fn alert(&self, run: RunId, alerts: Vec<String>) {
        for alert in self.alerts(alerts) {
            if let Err(error) = self.send(run, alert).await {
                tracing::warn!(%run, %error, "an alert was not taken");
            }
        }
    }
}
