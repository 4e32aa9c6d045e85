//! `report`: report progress and usage of the turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Usage, Usd};

use super::{CallContext, Effect, Right, ToolError, Whose, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Current activity, in one line; people see it.
    #[serde(default)]
    note: Option<String>,
    /// Tokens that you used since your last report.
    #[serde(default)]
    tokens: u64,
    /// Dollars that you spent since your last report.
    #[serde(default)]
    cost_usd: f64,
    #[serde(flatten)]
    whose: Whose,
}

/// Confirms that the report was accepted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the turn that it counts for.
    turn: String,
    /// Money that the run may still spend, in dollars.
    money_left_usd: f64,
    /// Number of tokens that the run may still use.
    tokens_left: u64,
}

/// Converts dollars to an amount of money, or returns an error.
pub(super) fn money(dollars: f64) -> Result<Usd, ToolError> {
    Usd::from_dollars(dollars).ok_or_else(|| {
        ToolError::new("mistaken", format!("{dollars} is not an amount of money"))
            .fix("Give `cost_usd` as dollars, such as 0.25.")
    })
}

impl super::Tool for Tool {
    const NAME: &'static str = "report";
    const TITLE: &'static str = "Report progress";
    const ABOUT: &'static str = "Tells people what you are doing and what you have used. Call it \
        every few minutes during long work: a turn that shows no sign of life is taken away and \
        given out again. Amounts are what was used since your last report, not totals. Returns \
        what the run may still spend.\n\
        Example: {\"note\": \"12 of 40 tests pass\", \"tokens\": 18000, \"cost_usd\": 0.11}";
    const EFFECT: Effect = Effect::Adds;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let usage = Usage::exactly(arguments.tokens, money(arguments.cost_usd)?);
        let handle = context.handle(&arguments.whose).await?;
        context.report(&handle, arguments.note, usage).await?;
        let run = context.engine.state(handle.turn.run).await?;
        let told = run.handoff(handle.turn.handoff).map(|handoff| handoff.told.usage);
        let spent = run.purse.spent + told.unwrap_or_default();
        let limit = &run.purse.limit;
        Ok(Output {
            turn: short(handle.turn),
            money_left_usd: (limit.money.dollars() - spent.money.dollars()).max(0.0),
            tokens_left: limit.tokens.saturating_sub(spent.tokens),
        })
    }
}
