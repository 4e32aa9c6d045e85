//! `status`: how the runs stand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_engine::{HandoffRow, RunView};

use super::Effect;
use crate::ToolError;
use crate::call_context::CallContext;

/// The most runs that are listed.
const RUNS: usize = 20;

/// The most handoffs of a run that are listed, the newest ones.
const HANDOFFS: usize = 100;

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// One run with its handoffs: its id, the last digits of it, or `latest`; all runs otherwise.
    #[serde(default)]
    run: Option<String>,
}

/// How the runs stand.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The runs, the newest first.
    runs: Vec<RunBrief>,
    /// The handoffs of the run that was asked for, in order.
    handoffs: Vec<HandoffBrief>,
}

/// A run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RunBrief {
    /// Its id.
    run: String,
    /// The workflow's name.
    workflow: String,
    /// What the user asked for.
    request: String,
    /// Where it stands: running, waiting, paused, succeeded, failed or cancelled.
    status: String,
    /// What it waits for, when it waits: human, budget, cooldown or quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_on: Option<String>,
    /// Why it ended, when it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Why it cannot go on at the moment, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    /// Who is at work.
    working: Vec<String>,
    /// How many handoffs there were.
    handoffs: u32,
    /// What it has spent, in dollars.
    spent_usd: f64,
    /// How many tokens it has used.
    tokens: u64,
    /// When it last changed.
    updated_at: String,
}

/// A handoff.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct HandoffBrief {
    /// Its name within the run.
    id: String,
    /// Who gave.
    from: String,
    /// Who took, or was to.
    to: String,
    /// Why, in a word.
    reason: String,
    /// Where it stands: pending, accepted, running, blocked, asked, resolved, refused, …
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
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let Some(text) = arguments.run.as_deref() else {
            let runs = context.engine.runs(RUNS).await?;
            let runs = runs.into_iter().map(|view| RunBrief::of(view, None)).collect();
            return Ok(Output { runs, handoffs: Vec::new() });
        };
        let run = context.run(Some(text)).await?;
        let (view, trouble) = context.engine.view(run).await?;
        let rows = context.engine.handoffs(run).await?;
        let older = rows.len().saturating_sub(HANDOFFS);
        let handoffs = rows.into_iter().skip(older).map(HandoffBrief::from).collect();
        Ok(Output { runs: vec![RunBrief::of(view, trouble)], handoffs })
    }
}
