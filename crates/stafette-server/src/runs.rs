//! Runs: begin, look at, steer.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use stafette_core::{Fields, HandoffId, Input, RunId, Usd};
use stafette_engine::{Explanation, RunView};

use crate::{Edge, Problem};

/// How long a client may wait in one request.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    request: String,
    #[serde(default)]
    inputs: Fields,
    #[serde(default)]
    budget: Option<Usd>,
    #[serde(default)]
    tokens: Option<u64>,
    #[serde(default)]
    by: String,
}

pub(crate) async fn start(
    State(edge): State<Edge>,
    body: Result<Json<Start>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(start) = body?;
    if start.request.trim().is_empty() {
        let problem = Problem::new(422, "empty_request", "The request is empty");
        return Err(problem.because("say what the agents should do"));
    }
    let workflow = (edge.workflow)()?;
    let mut budget = workflow.budget.clone();
    budget.money = start.budget.unwrap_or(budget.money);
    budget.tokens = start.tokens.unwrap_or(budget.tokens);
    let run = edge.engine.start(workflow, start.request, start.inputs, budget, start.by).await?;
    Ok(Json(json!({ "run": run })))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    #[serde(default = "hundred")]
    limit: usize,
}

fn hundred() -> usize {
    100
}

pub(crate) async fn list(
    State(edge): State<Edge>,
    Query(page): Query<Page>,
) -> Result<Json<Vec<RunView>>, Problem> {
    Ok(Json(edge.engine.runs(page.limit.min(1000)).await?))
}

pub(crate) async fn show(
    State(edge): State<Edge>,
    Path(run): Path<String>,
) -> Result<Json<Value>, Problem> {
    let run = find(&edge, &run).await?;
    let (view, trouble) = edge.engine.view(run).await?;
    Ok(Json(with_trouble(&view, trouble)))
}

/// Answers once the run is over or waits for a person, or after a minute with whatever is.
pub(crate) async fn settled(
    State(edge): State<Edge>,
    Path(run): Path<String>,
) -> Result<Json<Value>, Problem> {
    let run = find(&edge, &run).await?;
    let waited = tokio::time::timeout(LONGEST_WAIT, edge.engine.settled(run)).await;
    if let Ok(settled) = waited {
        settled?;
    }
    let (view, trouble) = edge.engine.view(run).await?;
    Ok(Json(with_trouble(&view, trouble)))
}

fn with_trouble(view: &RunView, trouble: Option<String>) -> Value {
    let mut value = json!(view);
    if let (Some(fields), Some(trouble)) = (value.as_object_mut(), trouble) {
        fields.insert("trouble".into(), trouble.into());
    }
    value
}

pub(crate) async fn handoffs(
    State(edge): State<Edge>,
    Path(run): Path<String>,
) -> Result<Json<Vec<Value>>, Problem> {
    let run = find(&edge, &run).await?;
    let rows = edge.engine.handoffs(run).await?;
    Ok(Json(rows.iter().map(row_json).collect()))
}

/// A handoff's row, with all of it under `handoff`.
pub(crate) fn row_json(row: &stafette_engine::HandoffRow) -> Value {
    let whole: Value = serde_json::from_str(&row.body).unwrap_or_default();
    json!({
        "run": row.run,
        "id": row.id,
        "from": row.from,
        "to": row.to,
        "reason": row.reason,
        "state": row.state,
        "opened_at": row.opened_at.rfc3339(),
        "closed_at": row.closed_at.map(|at| at.rfc3339()),
        "handoff": whole,
    })
}

pub(crate) async fn why(
    State(edge): State<Edge>,
    Path((run, handoff)): Path<(String, String)>,
) -> Result<Json<Explanation>, Problem> {
    let run = find(&edge, &run).await?;
    let handoff: HandoffId = handoff.parse().map_err(|error: stafette_core::id::NotAHandoff| {
        Problem::new(422, "not_a_handoff", error.to_string())
    })?;
    Ok(Json(edge.engine.why(run, handoff).await?))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Steer {
    by: String,
    why: String,
}

pub(crate) async fn cancel(
    State(edge): State<Edge>,
    Path(run): Path<String>,
    body: Result<Json<Steer>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(Steer { by, why }) = body?;
    steer(&edge, &run, Input::Cancel { by, why }).await
}

pub(crate) async fn pause(
    State(edge): State<Edge>,
    Path(run): Path<String>,
    body: Result<Json<Steer>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(Steer { by, .. }) = body?;
    steer(&edge, &run, Input::Pause { by }).await
}

pub(crate) async fn unpause(
    State(edge): State<Edge>,
    Path(run): Path<String>,
    body: Result<Json<Steer>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(Steer { by, .. }) = body?;
    steer(&edge, &run, Input::Unpause { by }).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raise {
    #[serde(default)]
    money: Usd,
    #[serde(default)]
    tokens: u64,
}

pub(crate) async fn raise_budget(
    State(edge): State<Edge>,
    Path(run): Path<String>,
    body: Result<Json<Raise>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(Raise { money, tokens }) = body?;
    steer(&edge, &run, Input::RaiseBudget { money, tokens }).await
}

async fn steer(edge: &Edge, run: &str, input: Input) -> Result<Json<Value>, Problem> {
    let run = find(edge, run).await?;
    edge.engine.send(run, input).await?;
    let (view, trouble) = edge.engine.view(run).await?;
    Ok(Json(with_trouble(&view, trouble)))
}

/// The run that a client means: an id, some of its digits, or `latest`.
pub(crate) async fn find(edge: &Edge, text: &str) -> Result<RunId, Problem> {
    let text = (text != "latest").then_some(text);
    Ok(edge.engine.find(text).await?)
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let status = rejection.status().as_u16();
        Problem::new(status, "bad_body", "The request's body is not what is expected here")
            .because(rejection.body_text())
    }
}
