//! `accept`: take a turn that is offered.

use schemars::JsonSchema;
use serde::Deserialize;
use stafette_core::Millis;

use super::{Briefing, CallContext, Effect, Right, ToolError, Whose};
use crate::turn_handle::handoff;

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The handoff to take, as `wait` named it, such as `h3`. Leave it out if Stafette started you.
    #[serde(default)]
    handoff: Option<String>,
    /// The run that the handoff belongs to, as `wait` named it; the newest run if left out.
    #[serde(default)]
    run: Option<String>,
    /// A name for yourself, so that nobody else takes the same turn; the same name may take it
    /// again after a break.
    #[serde(default)]
    by: Option<String>,
    /// Maximum number of seconds between two of your reports; the workflow's limit if left out.
    #[serde(default)]
    lease_seconds: Option<u64>,
}

impl super::Tool for Tool {
    const NAME: &'static str = "accept";
    const TITLE: &'static str = "Take a turn";
    const ABOUT: &'static str = "Takes a turn that `wait` found, so that nobody else does it, and \
        starts its clock: from now on call `report` every minute or so, and end it with \
        `complete`, `handoff` and `complete`, or `reject`. If Stafette started you, your turn is \
        yours already and this only confirms it. Returns the briefing: the task, your inputs, the \
        allowed targets, and `turn`, which you give back with every call about it.\n\
        Example: {\"handoff\": \"h3\", \"run\": \"4f2a91c0\", \"by\": \"my-worker-1\"}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Briefing;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Briefing, ToolError> {
        if let Some(token) = &context.caller.token {
            context
                .engine
                .sessions()
                .tell(token, context.caller.pid, "READY", serde_json::Value::Null)
                .await?;
            let handle = context.handle(&Whose::default()).await?;
            return Ok(Briefing::of(context.order(&handle).await?));
        }
        let Some(name) = &arguments.handoff else {
            return Err(ToolError::new("mistaken", "It is not said which handoff to take")
                .fix("Call `wait` to see what is offered, and give its `handoff` and `run`."));
        };
        let run = context.run(arguments.run.as_deref()).await?;
        let name = handoff(name)?;
        let state = context.engine.state(run).await?;
        if let Some(offered) = state.handoff(name) {
            context.may_sit(&offered.offer.to)?;
            context.may_see(run).await?;
        }
        // Several programs may share a token: the name that each gives tells them apart.
        let own = &context.caller.name;
        let by = match arguments.by {
            Some(by) if by != *own => format!("{by} by {own}"),
            _ => own.clone(),
        };
        let lease = arguments.lease_seconds.map(Millis::seconds);
        let order = context.engine.external().accept(run, name, &by, lease).await?;
        Ok(Briefing::of(order))
    }
}
