//! `status`: show the state of the runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_engine::{HandoffRow, Right, RunView};

use super::{CallContext, Effect, ToolError};

/// Maximum number of runs in the list.
const RUNS: usize = 20;

/// Maximum number of handoffs in the list, the newest ones.
const HANDOFFS: usize = 100;

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A run to show with its handoffs: its id, the last digits of it, or `latest`; all runs if
    /// left out.
    #[serde(default)]
    run: Option<String>,
}

/// State of the runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Runs, the newest first.
    runs: Vec<RunBrief>,
    /// Handoffs of the requested run, in order.
    handoffs: Vec<HandoffBrief>,
}

/// Summary of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RunBrief {
    /// Id of the run.
    run: String,
    /// Name of the workflow.
    workflow: String,
    /// Request of the user.
    request: String,
    /// Status: running, waiting, paused, succeeded, failed or cancelled.
    status: String,
    /// Reason for waiting: human, budget, cooldown or quota; left out if the run does not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_on: Option<String>,
    /// Reason of the end; left out while the run is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Reason why the run cannot continue at the moment; left out if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    /// Agents that work at the moment.
    working: Vec<String>,
    /// Number of handoffs so far.
    handoffs: u32,
    /// Money spent, in dollars.
    spent_usd: f64,
    /// Number of tokens used.
    tokens: u64,
    /// Number of turns whose cost or tokens are unknown, and not in the sums; left out if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_turns: Option<u32>,
    /// Time of the last change (RFC 3339).
    updated_at: String,
}

/// Summary of a handoff.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct HandoffBrief {
    /// Id of the handoff within the run.
    id: String,
    /// Party that gave the work.
    from: String,
    /// Party that the work was given to.
    to: String,
    /// Reason code, such as `task_handoff`.
    reason: String,
    /// State: pending, accepted, running, blocked, asked, resolved, refused, …
    state: String,
}

impl RunBrief {
    fn of(view: RunView, trouble: Option<String>) -> Self {
        RunBrief {
            run: view.run.to_string(),
            workflow: view.workflow,
            request: view.request,
            status: view.status,
            waiting_on: view.waiting_on,
            why: view.why,
            trouble,
            working: view.working,
            handoffs: view.tally.handoffs,
            spent_usd: view.purse.spent.money.dollars(),
            tokens: view.purse.spent.tokens,
            unknown_turns: Some(view.purse.spent.unknown.turns()).filter(|turns| *turns > 0),
            updated_at: view.updated_at,
        }
    }
}

impl From<HandoffRow> for HandoffBrief {
    fn from(row: HandoffRow) -> Self {
        HandoffBrief {
            id: row.id.to_string(),
            from: row.from,
            to: row.to,
            reason: row.reason,
            state: row.state,
        }
    }
}

impl super::Tool for Tool {
    const NAME: &'static str = "status";
    const TITLE: &'static str = "How do the runs stand?";
    const ABOUT: &'static str = "Shows how the runs of this project stand, or one of them with its \
        handoffs. Use it to find a run's id, to see whether a run that you began is over, or who \
        has the work at the moment. Changes nothing. Returns the runs, the newest first, with \
        status, cost and who is at work; and the handoffs when you name a run.\n\
        Example: {\"run\": \"latest\"}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::Shared;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let Some(text) = arguments.run.as_deref() else {
            let mut runs = Vec::new();
            for view in context.engine.runs(RUNS).await? {
                if context.may_see(view.run).await.is_ok() {
                    runs.push(RunBrief::of(view, None));
                }
            }
            return Ok(Output { runs, handoffs: Vec::new() });
        };
        let run = context.run(Some(text)).await?;
        context.may_see(run).await?;
        let (view, trouble) = context.engine.view(run).await?;
        let rows = context.engine.log().handoffs(run).await?;
        let older = rows.len().saturating_sub(HANDOFFS);
        let handoffs = rows.into_iter().skip(older).map(HandoffBrief::from).collect();
        Ok(Output { runs: vec![RunBrief::of(view, trouble)], handoffs })
    }
}
