//! Runs: start, show, steer.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::run::budget::Grant;
use stafette_core::run::create::RunCreated;
use stafette_core::team::Inheritance;
use stafette_core::{Fields, HandoffId, Input, RunId, Usd};
use stafette_engine::{Engine, Explanation, Right, RunState, RunView, UNFINISHED};

use crate::answer::Listed;
use crate::generations::{Begun, Continuous};
use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Key, Named, Within, within};
use crate::{Edge, Problem};

/// Maximum time that a client may wait in one request, in seconds.
const LONGEST_WAIT: u32 = 60;

operations! {
    pub(crate) fn routes() in "runs";
    GET "/v1/runs" => list, Read, "listRuns", "List the runs, the newest first";
    POST "/v1/runs" => start, Run, "startRun",
        "Begin a run; with a key, once however often it is asked for";
    GET "/v1/runs/{run}" => show, Read, "getRun", "Show a run, now or as it was after an event";
    GET "/v1/runs/{run}/settled" => settled, Read, "waitForRun",
        "Wait until a run is over or needs a person";
    GET "/v1/runs/{run}/why" => why_run, Read, "explainRun",
        "Explain how a run came to be as it is";
    GET "/v1/runs/{run}/why/{handoff}" => why, Read, "explainHandoff",
        "Explain how a handoff came about";
    POST "/v1/runs/{run}/cancel" => cancel, Decide, "cancelRun", "Call a run off";
    POST "/v1/runs/{run}/pause" => pause, Decide, "pauseRun", "Let a run give out nothing new";
    POST "/v1/runs/{run}/unpause" => unpause, Decide, "unpauseRun", "Let a run go on after a pause";
    POST "/v1/runs/{run}/budget" => raise_budget, Decide, "raiseBudget",
        "Allow a run to spend more";
}

/// A run, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheRun {
    /// Run id, its first or last digits, or `latest`.
    pub(crate) run: String,
}

/// A handoff, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheHandoff {
    /// Run id, its first or last digits, or `latest`.
    pub(crate) run: String,
    /// Id of the handoff, such as `h7`.
    pub(crate) handoff: String,
}

impl TheHandoff {
    /// Finds the run and the handoff.
    pub(crate) async fn find(&self, edge: &Edge) -> Result<(RunId, HandoffId), Problem> {
        let run = find(edge, &self.run).await?;
        let bad = |error: stafette_core::id::NotAHandoff| {
            Problem::new(422, "not_a_handoff", error.to_string())
        };
        Ok((run, self.handoff.parse().map_err(bad)?))
    }
}

/// Request to start a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    /// Task for the agents; may be left out if a context contains it.
    #[serde(default)]
    request: String,
    /// Inputs that are known from the start.
    #[serde(default)]
    inputs: Fields,
    /// Maximum cost; the workflow's budget if left out.
    #[serde(default)]
    budget: Option<Usd>,
    /// Maximum number of tokens; the workflow's budget if left out.
    #[serde(default)]
    tokens: Option<u64>,
    /// Name of the person who starts the run, for the record.
    #[serde(default)]
    by: String,
    /// Context of a team that continues, in the format of `data/state/orchestrator-context.json`.
    #[serde(default)]
    context: Option<Value>,
    /// Settings for further generations that follow automatically; none follow if left out.
    #[serde(default)]
    continuous: Option<Continuous>,
}

/// Confirms that a run has started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// Id of the run.
    run: RunId,
    /// True if an earlier request with the same key had already started it.
    repeated: bool,
}

async fn start(
    State(edge): State<Edge>,
    principal: Principal,
    Key(key): Key,
    Within(trace): Within,
    Body(start): Body<Start>,
) -> Result<Json<Started>, Problem> {
    let workflow = (edge.workflow)()?;
    let mut budget = workflow.budget.clone();
    budget.money = start.budget.unwrap_or(budget.money);
    budget.tokens = start.tokens.unwrap_or(budget.tokens);
    principal.may(Right::to_begin(&budget, &workflow.budget))?;
    if let Some(continuous) = &start.continuous {
        principal.may(continuous.right(workflow.generations.as_ref()))?;
    }
    let by = principal.signed(start.by);
    let (request, inputs) = (start.request, start.inputs);
    let asked = (request, budget, &inputs);
    let begun = Begun::of(&edge, &workflow, asked, start.context, start.continuous).await?;
    let Begun { request, budget, lineage } = begun;
    let team = Inheritance { lineage };
    let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), request, by);
    let created = RunCreated { inputs, budget, trace, team, ..created };
    let Some(key) = key else {
        let run = edge.engine.start(created).await?;
        return Ok(Json(Started { run, repeated: false }));
    };
    // Keys are separate for each caller: two callers may choose the same one.
    let key = format!("{}\n{key}", principal.name);
    let (run, repeated) = edge.engine.start_keyed(&key, created).await?;
    Ok(Json(Started { run, repeated }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "RunPage")]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Maximum number of runs.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// Only runs after this one in the list: the last run of the previous page.
    #[serde(default)]
    after: Option<RunId>,
    /// Only runs with this status, or all that have not ended (`unfinished`).
    #[serde(default)]
    status: Option<Wanted>,
}

/// Status of the runs to list.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RunStatus")]
enum Wanted {
    /// All that have not ended.
    Unfinished,
    /// At least one agent is working.
    Running,
    /// The run waits for a person, for money or for time to pass.
    Waiting,
    /// The run was paused.
    Paused,
    /// The run ended successfully.
    Succeeded,
    /// The run ended without success.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl Wanted {
    fn word(self) -> &'static str {
        match self {
            Wanted::Unfinished => UNFINISHED,
            Wanted::Running => "running",
            Wanted::Waiting => "waiting",
            Wanted::Paused => "paused",
            Wanted::Succeeded => "succeeded",
            Wanted::Failed => "failed",
            Wanted::Cancelled => "cancelled",
        }
    }
}

fn hundred() -> usize {
    100
}

async fn list(
    State(edge): State<Edge>,
    Asked(page): Asked<Page>,
) -> Result<Listed<RunView>, Problem> {
    let limit = within("limit", page.limit, 1..=1000)?;
    let status = page.status.map(Wanted::word);
    let items = edge.engine.runs_after(status.map(str::to_owned), page.after, limit).await?;
    let last = items.last().filter(|_| items.len() == limit).map(|view| view.run);
    let next = last.map(|run| {
        let status = status.map(|status| format!("&status={status}")).unwrap_or_default();
        format!("/v1/runs?limit={limit}&after={run}{status}")
    });
    Ok(Listed { items, next })
}

/// A run, with its full state if requested.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunDetail")]
pub(crate) struct Shown {
    #[serde(flatten)]
    view: RunView,
    /// Reason why the run cannot continue at the moment; left out if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    #[serde(flatten)]
    state: Option<RunState>,
}

/// Level of detail and point in time of a run to show.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Moment {
    /// Sequence number of an event: the run is shown with its state after that event.
    #[schemars(range(min = 1))]
    at: Option<u64>,
    /// True to add the state: handoffs, sessions, changes and lineage.
    state: bool,
}

impl Shown {
    pub(crate) async fn of(edge: &Edge, run: RunId) -> Result<Self, Problem> {
        let (view, trouble) = edge.engine.view(run).await?;
        Ok(Shown { view, trouble, state: None })
    }
}

async fn show(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
    Asked(Moment { at, state }): Asked<Moment>,
) -> Result<Json<Shown>, Problem> {
    let run = find(&edge, &run).await?;
    if at.is_none() && !state {
        return Ok(Json(Shown::of(&edge, run).await?));
    }
    let (view, state) = edge.engine.log().moment(run, at).await?;
    Ok(Json(Shown { view, trouble: None, state: Some(state) }))
}

/// Returns once the run has ended or waits for a person, or after the given time in any state.
async fn settled(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
    Asked(Wait { within }): Asked<Wait>,
) -> Result<Json<Shown>, Problem> {
    let run = find(&edge, &run).await?;
    let waited = tokio::time::timeout(patience(within)?, edge.engine.settled(run)).await;
    if let Ok(settled) = waited {
        settled?;
    }
    Ok(Json(Shown::of(&edge, run).await?))
}

/// Time to wait for a result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    /// Seconds to wait, at most 60; 60 if left out.
    #[serde(default)]
    #[schemars(range(max = 60))]
    pub(crate) within: Option<u32>,
}

/// Returns the time that a client is willing to wait; the maximum if it does not say.
pub(crate) fn patience(seconds: Option<u32>) -> Result<Duration, Problem> {
    let seconds = within("within", seconds.unwrap_or(LONGEST_WAIT), 0..=LONGEST_WAIT)?;
    Ok(Duration::from_secs(seconds.into()))
}

async fn why_run(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
) -> Result<Json<Explanation>, Problem> {
    let run = find(&edge, &run).await?;
    Ok(Json(edge.engine.explain().why(run, None).await?))
}

async fn why(
    State(edge): State<Edge>,
    Named(place): Named<TheHandoff>,
) -> Result<Json<Explanation>, Problem> {
    let (run, handoff) = place.find(&edge).await?;
    Ok(Json(edge.engine.explain().why(run, Some(handoff)).await?))
}

/// Name and reason of the person who steers a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Steer {
    /// Name of the person, for the record.
    by: String,
    /// Reason, for the record.
    why: String,
}

async fn cancel(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheRun { run }): Named<TheRun>,
    Body(Steer { by, why }): Body<Steer>,
) -> Result<Json<Shown>, Problem> {
    let by = principal.signed(by);
    steer(&edge, &run, Input::Cancel { by, why }).await
}

async fn pause(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheRun { run }): Named<TheRun>,
    Body(Steer { by, .. }): Body<Steer>,
) -> Result<Json<Shown>, Problem> {
    let by = principal.signed(by);
    steer(&edge, &run, Input::Pause { by }).await
}

async fn unpause(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheRun { run }): Named<TheRun>,
    Body(Steer { by, .. }): Body<Steer>,
) -> Result<Json<Shown>, Problem> {
    let by = principal.signed(by);
    steer(&edge, &run, Input::Unpause { by }).await
}

/// Increase of a run's budget.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raise {
    /// Amount to add to the money budget.
    #[serde(default)]
    money: Usd,
    /// Number of tokens to add to the token budget.
    #[serde(default)]
    tokens: u64,
    /// Number of handoffs to add to the handoff budget.
    #[serde(default)]
    handoffs: u32,
}

async fn raise_budget(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
    Body(Raise { money, tokens, handoffs }): Body<Raise>,
) -> Result<Json<Shown>, Problem> {
    let grant = Grant { money, tokens, handoffs, ..Grant::default() };
    steer(&edge, &run, Input::RaiseBudget(grant)).await
}

async fn steer(edge: &Edge, run: &str, input: Input) -> Result<Json<Shown>, Problem> {
    let run = find(edge, run).await?;
    edge.engine.send(run, input).await?;
    Ok(Json(Shown::of(edge, run).await?))
}

/// Finds a run by its id, some of its digits, or `latest`.
pub(crate) async fn find(edge: &Edge, text: &str) -> Result<RunId, Problem> {
    let text = (text != "latest").then_some(text);
    Ok(edge.engine.find(text).await?)
}
