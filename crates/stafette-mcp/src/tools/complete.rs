//! `complete`: finish the turn with a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::{Fields, Outcome, Party, Statement, Usage};
use stafette_engine::{EngineError, ExternalTurns, Right};

use super::{CallContext, Effect, ToolError, TurnHandle, Whose, report, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Outcome of the turn; if left out, `failed` with a `failure` and `resolved` with anything else.
    #[serde(default)]
    status: Option<Status>,
    /// Summary of what you did and how you know that it works, in a few sentences.
    summary: String,
    /// Outputs by key: everything that was wanted, and whatever others will need.
    #[serde(default)]
    outputs: Fields,
    /// Keys that you could not provide, for `partial`.
    #[serde(default)]
    unresolved: Vec<String>,
    /// Reason of the failure, for `failed`.
    #[serde(default)]
    failure: Option<String>,
    /// Recommended next steps.
    #[serde(default)]
    recommendations: Vec<String>,
    /// For a phase, and instead of all above but `summary`: your answer as a phase response, with
    /// `task_id`, `phase`, `status`, `decision`, `findings` and `context_summary`.
    #[serde(default)]
    response: Option<Fields>,
    /// Tokens that you used and have not reported yet.
    #[serde(default)]
    tokens: u64,
    /// Dollars that you spent and have not reported yet.
    #[serde(default)]
    cost_usd: f64,
    #[serde(flatten)]
    whose: Whose,
}

/// Outcome of a turn.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// Everything that was asked is done.
    Resolved,
    /// Part of it is done.
    Partial,
    /// It could not be done.
    Failed,
}

/// Confirms that the result was accepted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// True if the result was accepted.
    taken: bool,
    /// Id of the run.
    run: String,
    /// Id of the turn that it answers.
    turn: String,
    /// True if the turn has ended; the turn of an agent that Stafette started ends when the agent
    /// does.
    over: bool,
    /// Recommended next step.
    next: String,
}

impl Output {
    /// Confirms the result of a turn.
    pub(super) fn new(handle: &TurnHandle) -> Self {
        let next = match handle.is_session() {
            true => "Stop here: your turn is over when you end it.",
            false => "The turn is over. Call `wait` for the next one.",
        };
        Output {
            taken: true,
            run: handle.turn.run.to_string(),
            turn: short(handle.turn),
            over: !handle.is_session(),
            next: next.to_owned(),
        }
    }
}

impl super::Tool for Tool {
    const NAME: &'static str = "complete";
    const TITLE: &'static str = "Finish the turn";
    const ABOUT: &'static str = "Answers what your turn is about and finishes it. Call it once, at \
        the end, when the work is done (`resolved`), partly done (`partial`) or could not be done \
        (`failed`). What you handed on with `handoff` before goes out with it. Be honest: a \
        `failed` turn is tried another way, a wrong `resolved` is not noticed. Returns what to do \
        next. When you are told that the turn is late, someone else has the work: stop.\n\
        Example: {\"status\": \"resolved\", \"summary\": \"The review found no fault; all 12 tests \
        pass\", \"outputs\": {\"verdict\": \"approved\"}}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let usage = Usage::exactly(arguments.tokens, report::money(arguments.cost_usd)?);
        let handle = context.handle(&arguments.whose).await?;
        if let Some(document) = arguments.response {
            let told = ExternalTurns::understand(&handle.agent, "RESULT", Value::Object(document))?;
            let response = told.response.ok_or_else(|| EngineError::Mistaken {
                mistakes: vec!["/response: this is not an answer to a phase".to_owned()],
            })?;
            context.answer(&handle, response, usage).await?;
            return Ok(Output::new(&handle));
        }
        let outcome = arguments.status.map(|status| match status {
            Status::Resolved => Outcome::Resolved,
            Status::Partial => Outcome::Partial,
            Status::Failed => Outcome::Failed,
        });
        let stated = Statement {
            outcome,
            summary: arguments.summary,
            outputs: arguments.outputs,
            unresolved: arguments.unresolved,
            failure: arguments.failure,
            recommendations: arguments.recommendations,
        };
        if stated.is_empty() {
            let mistakes = vec![Statement::NOTHING.to_owned()];
            return Err(EngineError::Mistaken { mistakes }.into());
        }
        let response = stated.response(Party::from(&handle.agent));
        context.answer(&handle, response, usage).await?;
        Ok(Output::new(&handle))
    }
}
