//! What is for a person to decide.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use stafette_core::{Event, Fields, HandoffId, Input, RunId};

use crate::runs::row_json;
use crate::{Edge, Problem};

pub(crate) async fn list(State(edge): State<Edge>) -> Result<Json<Vec<Value>>, Problem> {
    let rows = edge.engine.questions().await?;
    Ok(Json(rows.iter().map(row_json).collect()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    #[serde(default)]
    text: String,
    #[serde(default)]
    values: Fields,
    #[serde(default)]
    by: String,
}

pub(crate) async fn answer(
    State(edge): State<Edge>,
    Path(question): Path<String>,
    body: Result<Json<Answer>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(Answer { text, values, by }) = body?;
    if text.is_empty() && values.is_empty() {
        return Err(Problem::new(422, "empty_answer", "The answer is empty"));
    }
    let (run, handoff) = find(&edge, &question).await?;
    let events = edge.engine.send(run, Input::Answer { handoff, values, text, by }).await?;
    let taken = |event: &Event| matches!(event, Event::QuestionAnswered(e) if e.handoff == handoff);
    if !events.iter().any(|recorded| taken(&recorded.event)) {
        let problem = Problem::new(409, "already_answered", format!("{handoff} is not open"));
        return Err(problem.because("someone else was faster; see `stafette inbox`"));
    }
    let (view, _) = edge.engine.view(run).await?;
    Ok(Json(json!({ "answered": handoff, "run": view })))
}

/// The open question that a client means: `RUN:h5`, `h5` or `5`.
async fn find(edge: &Edge, text: &str) -> Result<(RunId, HandoffId), Problem> {
    let (run, name) = match text.rsplit_once(':') {
        Some((run, name)) => (Some(crate::runs::find(edge, run).await?), name),
        None => (None, text),
    };
    let name = if name.starts_with('h') { name.to_owned() } else { format!("h{name}") };
    let handoff: HandoffId = name.parse().map_err(|error: stafette_core::id::NotAHandoff| {
        Problem::new(422, "not_a_handoff", error.to_string())
    })?;
    let open = edge.engine.questions().await?;
    let mut fitting = open
        .iter()
        .filter(|row| row.id == handoff && run.is_none_or(|run| row.run == run))
        .map(|row| (row.run, row.id));
    match (fitting.next(), fitting.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => {
            let problem =
                Problem::new(404, "no_question", format!("No open question is named {name}"));
            Err(problem.because("`stafette inbox` lists the open ones"))
        }
        (Some((run, _)), Some(_)) => {
            let problem =
                Problem::new(409, "ambiguous", format!("Several runs ask a question {name}"));
            Err(problem.because(format!("name the run too, such as {}:{name}", run.short())))
        }
    }
}
