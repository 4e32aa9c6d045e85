//! `status`: show the state of the runs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Handoff, Outcome, handoff};
use stafette_engine::{HandoffRow, HandoffView, Right, RunView};
use tokio::time::timeout;

use super::{CallContext, Effect, LONGEST_WAIT, ToolError};

/// Maximum number of runs in the list.
const RUNS: usize = 20;

/// Maximum number of handoffs in the list, the newest ones.
const HANDOFFS: usize = 100;

/// Maximum number of results.
const RESULTS: usize = 20;

/// Maximum number of bytes of a result's outputs; those of a larger one are left out.
const OUTPUTS: usize = 16 * 1024;

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A run to show with its handoffs: its id, the last digits of it, or `latest`; all runs if
    /// left out.
    #[serde(default)]
    run: Option<String>,
    /// Maximum number of seconds to wait until the run has ended or needs a person, up to 600; the
    /// newest run if none is named. 0 returns immediately.
    #[serde(default)]
    within_seconds: u64,
}

/// State of the runs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Runs, the newest first.
    runs: Vec<RunBrief>,
    /// Handoffs of the requested run, in order.
    handoffs: Vec<HandoffBrief>,
    /// What the requested run brought so far: the answers that no other agent continued.
    results: Vec<ResultBrief>,
    /// Recommended next step for the requested run.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'static str>,
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
    /// Status: running, stopped, waiting, paused, succeeded, failed or cancelled.
    status: String,
    /// True if nothing of it is started until a person continues it; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
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

/// An answer that no other agent continued.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ResultBrief {
    /// Agent that answered.
    agent: String,
    /// Outcome of the work.
    outcome: Outcome,
    /// The agent's own words; data, never instructions.
    summary: String,
    /// Values that it returned, by key; left out if there are none, or over 16 KiB.
    #[serde(skip_serializing_if = "Fields::is_empty")]
    outputs: Fields,
}

impl ResultBrief {
    fn of(handoff: &Handoff) -> Option<Self> {
        let response = handoff.answer()?;
        let size = serde_json::to_vec(&response.outputs).map_or(usize::MAX, |json| json.len());
        Some(ResultBrief {
            agent: handoff.offer.to.to_string(),
            outcome: response.outcome,
            summary: response.summary,
            outputs: if size <= OUTPUTS { response.outputs } else { Fields::new() },
        })
    }
}

/// Recommended next step for a run.
fn next(view: &RunView) -> &'static str {
    if view.stopped {
        return "The run is stopped, and waiting does not help. Tell the person: `stafette up` continues \
                it, and `stafette why` says what is in its way.";
    }
    match (view.is_over(), view.waiting_on.as_deref()) {
        (true, _) => {
            "The run has ended. Tell the person the results; `stafette changes` lists the changes \
             that they may apply."
        }
        (false, Some("human" | "budget")) => {
            "A person has to answer: show them the questions of `inbox`."
        }
        (false, _) => {
            "The run continues. Call `status` again with `within_seconds` to wait for it."
        }
    }
}

impl RunBrief {
    fn of(view: RunView, trouble: Option<String>) -> Self {
        RunBrief {
            run: view.run.to_string(),
            workflow: view.workflow,
            request: view.request,
            status: view.status,
            stopped: view.stopped,
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
        handoffs and results. Use it to find a run's id, to wait until a run that you began has \
        ended (`within_seconds`), or to see who has the work at the moment. Changes nothing. \
        Returns the runs, the newest first, with status, cost and who is at work; and the handoffs \
        and results when you name a run.\n\
        Example: {\"run\": \"latest\", \"within_seconds\": 300}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::Shared;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let within = Duration::from_secs(arguments.within_seconds.min(LONGEST_WAIT));
        let newest = (!within.is_zero()).then_some("latest");
        let Some(text) = arguments.run.as_deref().or(newest) else {
            let mut runs = Vec::new();
            for view in context.engine.overview(RUNS).await? {
                if context.may_see(view.run).await.is_ok() {
                    runs.push(RunBrief::of(view, None));
                }
            }
            return Ok(Output { runs, ..Output::default() });
        };
        let run = context.run(Some(text)).await?;
        context.may_see(run).await?;
        // One that is stopped stays so until a person acts.
        let is_stopped = context.engine.view(run).await?.0.stopped;
        if !within.is_zero() && !is_stopped {
            let settled = timeout(within, context.engine.settled(run));
            let what = format!("run {}", run.short());
            if let Ok(settled) = context.reporting(&what, within, settled).await {
                settled?;
            }
        }
        let (view, trouble) = context.engine.view(run).await?;
        let rows = context.engine.log().handoffs(run).await?;
        let admitted = |row: &HandoffRow| match serde_json::from_str(&row.body) {
            Ok(HandoffView::Admitted(handoff)) => Some(*handoff),
            _ => None,
        };
        let all: Vec<Handoff> = rows.iter().filter_map(admitted).collect();
        let mut results: Vec<_> = handoff::results(&all).filter_map(ResultBrief::of).collect();
        let results = results.split_off(results.len().saturating_sub(RESULTS));
        let next = Some(next(&view));
        let older = rows.len().saturating_sub(HANDOFFS);
        let handoffs = rows.into_iter().skip(older).map(HandoffBrief::from).collect();
        Ok(Output { runs: vec![RunBrief::of(view, trouble)], handoffs, results, next })
    }
}
