//! `wait`: wait for work.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{AgentName, Party, TurnOrder};
use stafette_engine::{Right, Wanted};

use super::{CallContext, Effect, LONGEST_WAIT, ToolError, Whose, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Agent whose work you do; any agent that Stafette does not start if left out.
    #[serde(default)]
    agent: Option<String>,
    /// Only work of this run: its id or the last digits of it.
    #[serde(default)]
    run: Option<String>,
    /// Maximum number of seconds to wait, up to 600. 0 returns immediately.
    #[serde(default = "usual")]
    within_seconds: u64,
}

fn usual() -> u64 {
    45
}

/// Turns that are on offer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Turns that nobody has taken yet; empty if none came in time.
    offered: Vec<Offered>,
    /// Recommended next step.
    next: String,
}

/// A turn that nobody has taken yet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Offered {
    /// Id of the run.
    run: String,
    /// Id of the handoff: pass it to `accept`.
    handoff: String,
    /// Id of the turn.
    turn: String,
    /// Agent that the turn is for.
    agent: String,
    /// Party that handed the work over.
    from: String,
    /// Original request of the user.
    request: String,
    /// Summary by the giver.
    summary: String,
}

impl From<TurnOrder> for Offered {
    fn from(order: TurnOrder) -> Self {
        Offered {
            run: order.key.run.to_string(),
            handoff: order.key.handoff.to_string(),
            turn: short(order.key),
            agent: order.agent.to_string(),
            from: order.offer.from.to_string(),
            request: order.request,
            summary: order.offer.summary,
        }
    }
}

impl super::Tool for Tool {
    const NAME: &'static str = "wait";
    const TITLE: &'static str = "Wait for work";
    const ABOUT: &'static str = "Waits until there is work for you, for agents that Stafette does \
        not start. Call it when you have nothing to do; it returns as soon as a turn is offered, or \
        empty after `within_seconds`: then call it again. It tells progress while it waits and can \
        be cancelled. Taking nothing costs nothing: a turn is yours only after `accept`. Returns \
        the turns on offer, each with the `run` and `handoff` that `accept` wants.\n\
        Example: {\"agent\": \"reviewer\", \"within_seconds\": 45}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        if context.caller.token.is_some() {
            // A session exists only while it has a turn.
            let handle = context.handle(&Whose::default()).await?;
            let order = context.order(&handle).await?;
            let next = "This is your own turn: call `briefing` and do it.".to_owned();
            return Ok(Output { offered: vec![order.into()], next });
        }
        let agent = match arguments.agent.as_deref() {
            Some(name) => Some(name.parse::<AgentName>().map_err(|error| {
                ToolError::new("mistaken", error.to_string()).fix("Give an agent of the workflow.")
            })?),
            None => None,
        };
        let own = context.caller.who.agent().cloned();
        if let (Some(_), Some(wanted)) = (&own, &agent) {
            context.may_sit(&Party::from(wanted))?;
        }
        let agent = own.or(agent);
        let run = match arguments.run.as_deref() {
            Some(run) => Some(context.run(Some(run)).await?),
            None => context.caller.who.run(),
        };
        let wanted = Wanted { run, agent };
        let within = Duration::from_secs(arguments.within_seconds.min(LONGEST_WAIT));
        let whom = wanted.agent.as_ref().map_or_else(|| "anyone".to_owned(), ToString::to_string);
        let work = context.engine.external().offered(&wanted, within);
        let offered = context.reporting(&format!("work for {whom}"), within, work).await;
        let next = match offered.is_empty() {
            true => "Nothing came. Call `wait` again to go on waiting.",
            false => "Call `accept` with the `run` and `handoff` of one of them.",
        };
        let offered = offered.into_iter().map(Offered::from).collect();
        Ok(Output { offered, next: next.to_owned() })
    }
}
