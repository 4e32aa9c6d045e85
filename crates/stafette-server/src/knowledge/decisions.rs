//! Decisions, their returns, and the principles behind them.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::{HandoffId, RunId};
use stafette_engine::Engine;
use stafette_knowledge::constitution::{Constitution, PrincipleCheck};
use stafette_knowledge::graph::{Node, NodeKey, PAGE};
use stafette_knowledge::roi::Candidate;
use stafette_stages::{Ranked, TaskReport};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named};
use crate::{Edge, Problem};

operations! {
    pub(super) fn routes() in "knowledge";
    GET "/v1/decisions" => pending, Shared, "pendingDecisions",
        "Decisions that nobody has taken up";
    POST "/v1/decisions/rank" => rank, TakePart, "rankOptions",
        "What options return, and how sure that is";
    GET "/v1/decisions/{decision}" => decision, Shared, "getDecision",
        "A decision with its ranking and its tasks";
    POST "/v1/decisions/{decision}/outcome" => outcome, Decide, "tellOutcome",
        "Say what came of a decision, in money";
    POST "/v1/tasks/{task}" => task, TakePart, "reportTask", "Say how far a task has come";
    GET "/v1/constitution" => constitution, Shared, "getConstitution",
        "Principles, and a run's answers";
}

/// Decisions that nobody has taken up.
#[derive(Debug, Serialize, JsonSchema)]
struct Decisions {
    /// Decisions, the oldest first.
    decisions: Vec<Node>,
}

async fn pending(
    State(edge): State<Edge>,
    principal: Principal,
) -> Result<Json<Decisions>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(Decisions { decisions: stages.pending_decisions(&actor, PAGE).await? }))
}

/// Options to rank by their return.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Options to compare with each other.
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

/// A decision, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheDecision {
    /// Id of the decision.
    decision: String,
}

/// A decision with its ranking and its tasks.
#[derive(Debug, Serialize, JsonSchema)]
struct DecisionView {
    /// The decision as a node of the graph.
    decision: Node,
    /// Options that it was chosen from, with their sensitivity.
    ranking: Option<Ranked>,
    /// Tasks of the decision, the oldest first.
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

/// Returns the ranking of the question that the decision answers.
async fn ranking(engine: &Engine, decision: &str) -> Option<Ranked> {
    let (run, handoff) = decision.rsplit_once('.')?;
    let (run, handoff): (RunId, HandoffId) = (run.parse().ok()?, handoff.parse().ok()?);
    let row = engine.store().handoff(run, handoff).await.ok()??;
    let body: Value = serde_json::from_str(&row.body).ok()?;
    serde_json::from_value(body.pointer("/offer/outputs/ranking")?.clone()).ok()
}

/// Actual outcome of a decision.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outcome {
    /// Actual return, as an amount of money.
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

/// A task, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheTask {
    /// Id of the task.
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

/// Selects the run whose answers are shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfRun {
    /// Run id; the newest run if left out.
    #[serde(default)]
    run: Option<String>,
}

/// Answers to the principles in one handoff.
#[derive(Debug, Serialize, JsonSchema)]
struct Answered {
    /// Handoff with the answers.
    handoff: HandoffId,
    /// State of the handoff, as one word.
    state: String,
    /// Recommendation that was made.
    recommendation: Value,
    /// Score of how well it matches the goals.
    score: Value,
    /// One answer per principle.
    answers: Vec<PrincipleCheck>,
}

/// The principles, and the answers of a run to them.
#[derive(Debug, Serialize, JsonSchema)]
struct ConstitutionView {
    /// Principles; null if no document is configured.
    constitution: Option<Constitution>,
    /// Answers of the run, the oldest first, including refused ones.
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
        Some(run) => edge.engine.log().handoffs(run).await?,
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
