//! `start_run`: start a run with a request.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Fields;
use stafette_core::run::create::RunCreated;
use stafette_engine::Engine;

use super::{CallContext, Effect, Right, ToolError, report};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Task for the agents, as you would describe it to a colleague.
    request: String,
    /// Inputs that are known from the start, by key.
    #[serde(default)]
    inputs: Fields,
    /// Maximum cost in dollars; the workflow's budget if left out.
    #[serde(default)]
    budget_usd: Option<f64>,
    /// Maximum number of tokens; the workflow's budget if left out.
    #[serde(default)]
    tokens: Option<u64>,
}

/// Confirms that the run began.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the run.
    run: String,
    /// Recommended next step.
    next: String,
}

impl super::Tool for Tool {
    const NAME: &'static str = "start_run";
    const TITLE: &'static str = "Begin a run";
    const ABOUT: &'static str = "Gives a request to the project's agents and returns at once; they \
        work on it by themselves. Use it when you speak for a person who wants something done \
        here. Not for agents inside a run: they pass work on with `handoff`. It may cost money, up \
        to the budget. Returns the run's id; follow it with `status`.\n\
        Example: {\"request\": \"Add a login page with tests\", \"budget_usd\": 5}";
    const EFFECT: Effect = Effect::Adds;
    // Agents may not: runs that start further runs would escape every budget.
    const RIGHT: Right = Right::Run;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        if arguments.request.trim().is_empty() {
            return Err(ToolError::new("mistaken", "The request is empty")
                .fix("Say what the agents should do."));
        }
        let workflow = (context.workflow)()?;
        let mut budget = workflow.budget.clone();
        if let Some(dollars) = arguments.budget_usd {
            budget.money = report::money(dollars)?;
        }
        budget.tokens = arguments.tokens.unwrap_or(budget.tokens);
        context.caller.who.may(Right::to_begin(&budget, &workflow.budget)).map_err(|_| {
            ToolError::new("denied", "The budget is more than the workflow's")
                .fix("Leave the budget out, or ask the person to start the run.")
        })?;
        let Arguments { request, inputs, .. } = arguments;
        let (by, trace) = (context.caller.name.clone(), context.within);
        let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), request, by);
        let run = context.engine.start(RunCreated { inputs, budget, trace, ..created }).await?;
        let next = "The agents are at work. Call `status` with this run to see how it stands.";
        Ok(Output { run: run.to_string(), next: next.to_owned() })
    }
}
