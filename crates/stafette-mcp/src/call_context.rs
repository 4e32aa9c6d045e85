//! The context of a tool call.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use stafette_core::trace::Traceparent;
use stafette_engine::Engine;
use stafette_stages::{Actor, Stages};

use crate::turn_handle::{TurnHandle, Whose};
use crate::{AccessLevel, Caller, ReadWorkflow, ToolError};

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
    pub(crate) caller: Caller,
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

    /// Checks that the caller may do more than read.
    pub(crate) fn may_act(&self) -> Result<(), ToolError> {
        match (&self.caller.token, self.caller.may) {
            (Some(_), _) | (None, AccessLevel::Act) => Ok(()),
            (None, AccessLevel::Look) => {
                Err(ToolError::new("may_not", "This connection may only look")
                    .fix("Connect with a token whose scope is `act`."))
            }
        }
    }
}
