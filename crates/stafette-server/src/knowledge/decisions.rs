//! Decisions, what they return, and what they rest on.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::{HandoffId, RunId};
use stafette_engine::Engine;
use stafette_knowledge::constitution::{Answer, Constitution};
use stafette_knowledge::graph::{Node, NodeKey, PAGE};
use stafette_knowledge::roi::Candidate;
use stafette_stages::{Ranked, TaskReport};

use crate::openapi::named;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named};
use crate::{Edge, Problem};

pub(super) fn routes() -> ApiRouter<Edge> {
    let about = |id, summary| named("knowledge", id, summary);
    ApiRouter::new()
        .api_route(
            "/v1/decisions",
            get_with(pending, about("pendingDecisions", "Decisions that nobody has taken up")),
        )
        .api_route(
            "/v1/decisions/rank",
            post_with(rank, about("rankOptions", "What options return, and how sure that is")),
        )
        .api_route(
            "/v1/decisions/{decision}",
            get_with(decision, about("getDecision", "A decision with its ranking and its tasks")),
        )
        .api_route(
            "/v1/decisions/{decision}/outcome",
            post_with(outcome, about("tellOutcome", "Say what came of a decision, in money")),
        )
        .api_route(
            "/v1/tasks/{task}",
            post_with(task, about("reportTask", "Say how far a task has come")),
        )
        .api_route(
            "/v1/constitution",
            get_with(constitution, about("getConstitution", "Principles, and a run's answers")),
        )
}

/// Decisions.
#[derive(Debug, Serialize, JsonSchema)]
struct Decisions {
    /// The oldest first.
    decisions: Vec<Node>,
}

async fn pending(
    State(edge): State<Edge>,
    principal: Principal,
) -> Result<Json<Decisions>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(Decisions { decisions: stages.pending_decisions(&actor, PAGE).await? }))
}

/// Options to compare.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// The options.
    options: Vec<Candidate>,
}

async fn rank(
    State(edge): State<Edge>,
    principal: Principal,
    Body(Options { options }): Body<Options>,
) -> Result<Json<Ranked>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.rank(&actor, options).await?))
}

/// Which decision is meant.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheDecision {
    /// Its id.
    decision: String,
}

/// A decision with what it rests on and what came of it.
#[derive(Debug, Serialize, JsonSchema)]
struct DecisionView {
    /// The decision.
    decision: Node,
    /// The options that it was chosen from, with their sensitivity.
    ranking: Option<Ranked>,
    /// Its tasks, the oldest first.
    tasks: Vec<Node>,
}

async fn decision(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheDecision { decision }): Named<TheDecision>,
) -> Result<Json<DecisionView>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let found = stages.node(&actor, &NodeKey::decision(&decision)).await?;
    let tasks = stages.tasks_of(&actor, &decision, PAGE).await?;
    let ranking = ranking(&edge.engine, &decision).await;
    Ok(Json(DecisionView { decision: found, ranking, tasks }))
}

/// The ranking in the question that a decision is the answer to.
async fn ranking(engine: &Engine, decision: &str) -> Option<Ranked> {
    let (run, handoff) = decision.rsplit_once('.')?;
    let (run, handoff): (RunId, HandoffId) = (run.parse().ok()?, handoff.parse().ok()?);
    let row = engine.store().handoff(run, handoff).await.ok()??;
    let body: Value = serde_json::from_str(&row.body).ok()?;
    serde_json::from_value(body.pointer("/offer/outputs/ranking")?.clone()).ok()
}

/// What came of something.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outcome {
    /// In money.
    actual: f64,
}

async fn outcome(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheDecision { decision }): Named<TheDecision>,
    Body(Outcome { actual }): Body<Outcome>,
) -> Result<Json<Node>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.came_of(&actor, &decision, actual).await?))
}

/// Which task is meant.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheTask {
    /// Its id.
    task: String,
}

async fn task(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheTask { task }): Named<TheTask>,
    Body(report): Body<TaskReport>,
) -> Result<Json<Node>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.report_task(&actor, &task, report).await?))
}

/// Whose answers.
#[derive(Debug, Deserialize, JsonSchema)]
struct OfRun {
    /// The run; the newest one otherwise.
    #[serde(default)]
    run: Option<String>,
}

/// What was answered to the principles at one time.
#[derive(Debug, Serialize, JsonSchema)]
struct Answered {
    /// In which handoff.
    handoff: HandoffId,
    /// How it stands.
    state: String,
    /// What was recommended.
    recommendation: Value,
    /// How well it goes with the goals.
    score: Value,
    /// The answers.
    answers: Vec<Answer>,
}

/// The principles, and what a run answered to them.
#[derive(Debug, Serialize, JsonSchema)]
struct ConstitutionView {
    /// The principles; none when no document is configured.
    constitution: Option<Constitution>,
    /// The answers of the run, the oldest first; refused ones, too.
    answers: Vec<Answered>,
}

async fn constitution(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(OfRun { run }): Asked<OfRun>,
) -> Result<Json<ConstitutionView>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let constitution = stages.constitution(&actor)?;
    let run = match edge.engine.find(run.as_deref()).await {
        Ok(run) => Some(run),
        Err(_) if run.is_none() => None,
        Err(error) => return Err(error.into()),
    };
    let rows = match run {
        Some(run) => edge.engine.handoffs(run).await?,
        None => Vec::new(),
    };
    let answers = rows.iter().filter_map(|row| {
        let body: Value = serde_json::from_str(&row.body).ok()?;
        let outputs = body.pointer("/offer/outputs")?;
        Some(Answered {
            handoff: row.id,
            state: row.state.clone(),
            recommendation: outputs.get("recommendation")?.clone(),
            score: outputs.get("score").cloned().unwrap_or_default(),
            answers: serde_json::from_value(outputs.get("check_results")?.clone()).ok()?,
        })
    });
    Ok(Json(ConstitutionView { constitution, answers: answers.collect() }))
}
