//! The context of a tool call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use stafette_core::RunId;
use stafette_core::trace::Traceparent;
use stafette_engine::{Caller, Denied, Engine, Right};
use stafette_stages::{Actor, Stages};
use tokio::time::{Instant, timeout};

use crate::turn_handle::{TurnHandle, Whose};
use crate::{ReadWorkflow, ToolError};

/// Interval of progress reports while a call waits.
const SIGN: Duration = Duration::from_secs(5);

/// Receiver of progress reports of a call.
pub(crate) trait Progress: Send + Sync {
    /// Reports that step `step` is reached; steps only grow.
    fn tell(&self, step: u32, message: String) -> BoxFuture<'_, ()>;
}

/// One call: the caller, the data it can ask for, and the receiver of its progress.
#[derive(Clone)]
pub(crate) struct CallContext {
    pub(crate) engine: Engine,
    pub(crate) workflow: Arc<ReadWorkflow>,
    pub(crate) stages: Option<Stages>,
    pub(crate) caller: crate::Caller,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    /// Span of the caller, in its own trace.
    pub(crate) within: Option<Traceparent>,
}

impl CallContext {
    /// Reports that the call continues, if its caller wants to know.
    pub(crate) async fn goes_on(&self, step: u32, message: impl Into<String>) {
        if let Some(progress) = &self.progress {
            progress.tell(step, message.into()).await;
        }
    }

    /// Waits for `work`, which ends within `within`, and reports progress from time to time.
    pub(crate) async fn reporting<T>(
        &self,
        what: &str,
        within: Duration,
        work: impl Future<Output = T>,
    ) -> T {
        let end = Instant::now() + within;
        let mut step = 1;
        self.goes_on(step, format!("waiting for {what}")).await;
        tokio::pin!(work);
        loop {
            match timeout(SIGN, &mut work).await {
                Ok(done) => return done,
                Err(_) => {
                    step += 1;
                    let left = end.saturating_duration_since(Instant::now()).as_secs();
                    self.goes_on(step, format!("still waiting for {what}, {left} s left")).await;
                }
            }
        }
    }

    /// Returns the stages and the caller: always an agent in its turn, since its role decides what
    /// it may see.
    pub(crate) async fn knower(
        &self,
        whose: &Whose,
    ) -> Result<(Stages, Actor, TurnHandle), ToolError> {
        let handle = self.handle(whose).await?;
        let stages = self.stages.clone().ok_or_else(|| {
            ToolError::new("no_knowledge", "This project keeps no knowledge")
                .fix("Go on without it, or ask a person for [knowledge] in stafette.toml.")
        })?;
        // A role may see its data only while it has a turn.
        self.order(&handle).await?;
        let actor = Actor::agent(&handle.agent, handle.turn.run, handle.turn.handoff);
        Ok((stages, actor, handle))
    }

    /// Checks that the caller has a right.
    pub(crate) fn may(&self, right: Right) -> Result<(), ToolError> {
        self.caller.who.may(right).map_err(|denied| {
            let error = ToolError::new("may_not", denied.to_string());
            match denied {
                Denied::ForPeople => {
                    error.fix("Pass the work on with `handoff`, or ask a person with `escalate`.")
                }
                Denied::Scope(scope) => {
                    error.fix(format!("Connect with a token whose scope is `{}`.", scope.as_str()))
                }
                Denied::Unknown => error.fix("Connect with a token."),
            }
        })
    }

    /// Checks that the caller may see a run: an agent sees those that it takes part in.
    pub(crate) async fn may_see(&self, run: RunId) -> Result<(), ToolError> {
        let sees = match &self.caller.who {
            Caller::Nobody => false,
            Caller::Person(_) => true,
            Caller::Agent { run: own, .. } => *own == run,
            Caller::External { agent, .. } => {
                let rows = self.engine.log().handoffs(run).await?;
                rows.iter().any(|row| row.from == agent.as_str() || row.to == agent.as_str())
            }
        };
        let refused = || {
            ToolError::new("not_yours", format!("Run {} is not yours to see", run.short()))
                .fix("Leave `run` out, or name the one that you take part in.")
        };
        sees.then_some(()).ok_or_else(refused)
    }

    /// Checks that the caller may see what is for one agent: another agent may not.
    pub(crate) fn may_be(&self, agent: &str) -> Result<(), ToolError> {
        match self.caller.who.agent() {
            Some(own) if own.as_str() != agent => {
                Err(ToolError::new("not_yours", format!("That is for {agent}, and you are {own}"))
                    .fix("Leave it to its own agent."))
            }
            _ => Ok(()),
        }
    }
}
