//! What a tool has in hand while it is called.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use stafette_core::trace::Traceparent;
use stafette_engine::Engine;
use stafette_stages::{Actor, Stages};

use crate::turn_handle::{TurnHandle, Whose};
use crate::{AccessLevel, Caller, ReadWorkflow, ToolError};

/// Where a call tells that it goes on.
pub(crate) trait Progress: Send + Sync {
    /// Step `step` is reached; steps only grow.
    fn tell(&self, step: u32, message: String) -> BoxFuture<'_, ()>;
}

/// One call: who calls, what can be asked, and where progress is told.
#[derive(Clone)]
pub(crate) struct CallContext {
    pub(crate) engine: Engine,
    pub(crate) workflow: Arc<ReadWorkflow>,
    pub(crate) stages: Option<Stages>,
    pub(crate) caller: Caller,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    /// What the caller does this in, in a trace of its own.
    pub(crate) within: Option<Traceparent>,
}

impl CallContext {
    /// Tells that the call goes on, if its caller wants to know.
    pub(crate) async fn goes_on(&self, step: u32, message: impl Into<String>) {
        if let Some(progress) = &self.progress {
            progress.tell(step, message.into()).await;
        }
    }

    /// What is known and planned, and who asks: an agent in its turn, never anybody else, since
    /// what it may see is its role's.
    pub(crate) async fn knower(
        &self,
        whose: &Whose,
    ) -> Result<(Stages, Actor, TurnHandle), ToolError> {
        let handle = self.handle(whose).await?;
        let stages = self.stages.clone().ok_or_else(|| {
            ToolError::new("no_knowledge", "This project keeps no knowledge")
                .fix("Go on without it, or ask a person for [knowledge] in stafette.toml.")
        })?;
        // What a role may see, it may see while it has a turn.
        self.order(&handle).await?;
        let actor = Actor::agent(&handle.agent, handle.turn.run, handle.turn.handoff);
        Ok((stages, actor, handle))
    }

    /// Whether the caller may do more than look.
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
