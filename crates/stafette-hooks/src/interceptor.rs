//! Hooks that run before a run or a turn begins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use stafette_core::workflow::hooks::{Hook, OnError};
use stafette_core::{TurnOrder, Workflow};
use stafette_engine::{Asked, Beginning, HookDecision, Interceptor};
use tokio::sync::Semaphore;

use crate::command::{self, Outcome};
use crate::payload;

/// Maximum number of such hooks that run in parallel; further ones wait.
const AT_ONCE: usize = 16;

/// The hooks of a project's workflows. Each run keeps those that it began with.
#[derive(Clone, Debug)]
pub struct Hooks {
    project: PathBuf,
    room: Arc<Semaphore>,
}

impl Hooks {
    /// Creates hooks that run in the folder `project`.
    #[must_use]
    pub fn new(project: PathBuf) -> Self {
        Hooks { project, room: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Runs the hooks one after the other, until one refuses.
    async fn ask<'a>(&self, hooks: impl Iterator<Item = &'a Hook>, input: &Value) -> HookDecision {
        let mut verdict = HookDecision::default();
        for hook in hooks {
            let place = self.room.acquire().await;
            let outcome = command::run(hook, &self.project, input).await;
            drop(place);
            match outcome {
                Outcome::Passed => {}
                Outcome::Broken { why } if hook.on_error == OnError::Continue => {
                    tracing::warn!(on = hook.on, why, "a hook broke");
                    verdict.alerts.push(format!("the hook on {} broke: {why}", hook.on));
                }
                Outcome::Refused { why } | Outcome::Broken { why } => {
                    verdict.refusal = Some(why);
                    break;
                }
            }
        }
        verdict
    }
}

impl Interceptor for Hooks {
    fn before_run<'a>(&'a self, beginning: Beginning<'a>) -> Asked<'a> {
        Box::pin(async move {
            let hooks = beginning.workflow.hooks.iter().filter(|hook| hook.on == "before_run");
            let input = payload::before_run(&beginning);
            self.ask(hooks, &input).await
        })
    }

    fn before_turn<'a>(
        &'a self,
        workflow: &'a Workflow,
        order: &'a TurnOrder,
        folder: &'a Path,
    ) -> Asked<'a> {
        Box::pin(async move {
            let wanted = |hook: &&Hook| {
                hook.on == "before_turn" && hook.concerns(Some(order.agent.as_str()))
            };
            let hooks = workflow.hooks.iter().filter(wanted);
            let input = payload::before_turn(order, &workflow.workflow.name, folder);
            self.ask(hooks, &input).await
        })
    }
}
