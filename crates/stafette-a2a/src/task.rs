//! Projects a run to a task.

use std::collections::HashMap;

use a2a_types::{A2AError, Message, Part, Role, Task, TaskState, TaskStatus};
use serde_json::{Value, json};
use stafette_core::handoff::{About, State, Way};
use stafette_core::run::Stage;
use stafette_core::{Handoff, Party, Run, RunId, Status, Time};
use stafette_engine::{Engine, EngineError, HandoffRow, HandoffView};

use crate::artifact;

/// Parts of a task to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// Maximum number of messages; `None` for all.
    pub(crate) history: Option<usize>,
    pub(crate) artifacts: bool,
}

impl Extent {
    pub(crate) fn whole() -> Self {
        Extent { history: None, artifacts: true }
    }

    /// Shows as many messages as the client wants.
    pub(crate) fn of(history: Option<i32>) -> Result<Self, A2AError> {
        let negative = |_| A2AError::invalid_params("historyLength is negative");
        let history = history.map(usize::try_from).transpose().map_err(negative)?;
        Ok(Extent { history, artifacts: true })
    }
}

/// Returns the run of a task id.
pub(crate) fn run_of(id: &str) -> Result<RunId, A2AError> {
    id.parse().map_err(|_| A2AError::task_not_found(id))
}

/// Converts an error of the engine to one of the protocol.
pub(crate) fn refused(error: EngineError) -> A2AError {
    match error {
        EngineError::NoRun { run } => A2AError::task_not_found(&run),
        EngineError::Over { run } => A2AError::unsupported_operation(format!("{run} is over")),
        EngineError::Objected { why } => A2AError::unsupported_operation(why),
        error => A2AError::internal(error.to_string()),
    }
}

/// Returns the task of a run.
pub(crate) async fn task(engine: &Engine, run: RunId, extent: Extent) -> Result<Task, A2AError> {
    let state = engine.state(run).await.map_err(refused)?;
    let rows = engine.log().handoffs(run).await.map_err(refused)?;
    let handoffs = admitted(&rows);
    let mut history = match extent.history {
        Some(0) => Vec::new(),
        _ => history(&state, &handoffs),
    };
    if let Some(most) = extent.history {
        history.drain(..history.len().saturating_sub(most));
    }
    let artifacts = match extent.artifacts && state.status() == Status::Succeeded {
        true => artifact::all(&handoffs),
        false => Vec::new(),
    };
    let view = json!({
        "run": run,
        "workflow": state.workflow.workflow.name,
        "status": state.status().to_string(),
    });
    Ok(Task {
        id: run.to_string(),
        context_id: context(run, &handoffs),
        status: status(&state),
        artifacts: Some(artifacts),
        history: Some(history),
        metadata: Some(HashMap::from([("stafette".to_owned(), view)])),
    })
}

/// Returns the handoffs that were not refused.
pub(crate) fn admitted(rows: &[HandoffRow]) -> Vec<Handoff> {
    let parse = |row: &HandoffRow| match serde_json::from_str(&row.body) {
        Ok(HandoffView::Admitted(handoff)) => Some(*handoff),
        _ => None,
    };
    rows.iter().filter_map(parse).collect()
}

/// Returns the context that groups a run with others: the one its caller named, or the run itself.
pub(crate) fn context(run: RunId, handoffs: &[Handoff]) -> String {
    let named = handoffs.first().and_then(|handoff| {
        let foreign = handoff.offer.foreign.as_ref().filter(|foreign| foreign.dialect == "a2a")?;
        foreign.fields.get("context_id")?.as_str().map(str::to_owned)
    });
    named.unwrap_or_else(|| run.to_string())
}

/// Returns the state of a run as a task state.
pub(crate) fn state(run: &Run) -> TaskState {
    match run.status() {
        Status::Succeeded => TaskState::Completed,
        Status::Cancelled => TaskState::Canceled,
        // No agent ever had a turn.
        Status::Failed if run.handoffs.values().all(|handoff| handoff.turn == 0) => {
            TaskState::Rejected
        }
        Status::Failed => TaskState::Failed,
        _ if question(run).is_some() => TaskState::InputRequired,
        _ if is_untouched(run) => TaskState::Submitted,
        _ => TaskState::Working,
    }
}

/// Returns true if a task has ended, or waits for the client.
pub(crate) fn is_settled(state: &TaskState) -> bool {
    state.is_terminal() || *state == TaskState::InputRequired
}

fn is_untouched(run: &Run) -> bool {
    let waits =
        |handoff: &Handoff| matches!(handoff.state, State::Pending { .. } | State::Ordered(_));
    run.handoffs.len() == 1 && run.open().all(|handoff| handoff.attempt == 1 && waits(handoff))
}

/// Returns the oldest open question that blocks the run.
pub(crate) fn question(run: &Run) -> Option<&Handoff> {
    let waits = matches!(run.status(), Status::WaitingForHuman | Status::WaitingForBudget);
    run.open().find(|handoff| {
        let asked = handoff.offer.question.as_ref();
        let asked = asked.filter(|_| matches!(handoff.state, State::Asked { .. }));
        asked.is_some_and(|question| {
            waits || question.blocking || matches!(question.about, About::Permission(..))
        })
    })
}

/// Returns the state of a run, with a message about it.
pub(crate) fn status(run: &Run) -> TaskStatus {
    let state = state(run);
    let message = match &state {
        TaskState::InputRequired => question(run).map(|handoff| asked(run.id, handoff)),
        state if state.is_terminal() => match &run.stage {
            Stage::Finished(ending) if !ending.why.is_empty() => {
                Some(said(format!("{}-end", run.id), vec![Part::text(&ending.why)]))
            }
            _ => None,
        },
        _ => doing(run),
    };
    TaskStatus { state, message, timestamp: timestamp(run.updated_at) }
}

/// Returns the agents at work, with their last notes.
fn doing(run: &Run) -> Option<Message> {
    let lines: Vec<String> = run
        .open()
        .filter_map(|handoff| {
            let turn = handoff.state.turn()?;
            let note = turn.note.as_deref().unwrap_or("is at work");
            Some(format!("{}: {note}", handoff.offer.to))
        })
        .collect();
    let text = lines.join("\n");
    (!text.is_empty()).then(|| said(format!("{}-{}", run.id, run.seq), vec![Part::text(text)]))
}

/// Returns a question to the client: as text, and as data for programs.
fn asked(run: RunId, handoff: &Handoff) -> Message {
    let question = handoff.offer.question.clone().unwrap_or_default();
    let mut text = question.details.clone();
    if !question.options.is_empty() {
        text = format!("{text}\nOptions: {}", question.options.join(", "));
    }
    let data = json!({
        "question": handoff.id,
        "from": handoff.offer.from,
        "reason": question.reason,
        "details": question.details,
        "context": question.context,
        "options": question.options,
        "default": question.default,
        "inputs": handoff.offer.missing,
        "answer_with": question.answer_with,
    });
    said(format!("{run}-{}", handoff.id), vec![Part::text(text), Part::data(data)])
}

fn said(id: String, parts: Vec<Part>) -> Message {
    Message { message_id: id, ..Message::new(Role::Agent, parts) }
}

/// Returns the messages of both sides: the request, the questions, the answers.
fn history(run: &Run, handoffs: &[Handoff]) -> Vec<Message> {
    let first = handoffs.first().and_then(|handoff| handoff.offer.foreign.clone());
    let id = first.filter(|foreign| foreign.dialect == "a2a").map(|foreign| foreign.id);
    let id = id.unwrap_or_else(|| format!("{}-request", run.id));
    let mut history = vec![by_user(id, vec![Part::text(&run.request)])];
    for handoff in handoffs.iter().filter(|handoff| handoff.offer.to == Party::Human) {
        history.push(asked(run.id, handoff));
        if let State::Closed(closing) = &handoff.state
            && closing.way == Way::Answered
        {
            let mut parts = vec![Part::text(&closing.response.summary)];
            if closing
                .response
                .outputs
                .values()
                .any(|v| v.as_str() != Some(&closing.response.summary))
            {
                parts.push(Part::data(json!(closing.response.outputs)));
            }
            let id = answered_by(handoff).map(str::to_owned);
            let id = id.unwrap_or_else(|| format!("{}-{}-answer", run.id, handoff.id));
            history.push(by_user(id, parts));
        }
    }
    // Each message names its task and context, so that it can be read alone.
    for message in &mut history {
        message.task_id = Some(run.id.to_string());
        message.context_id = Some(context(run.id, handoffs));
    }
    history
}

fn by_user(id: String, parts: Vec<Part>) -> Message {
    Message { message_id: id, ..Message::new(Role::User, parts) }
}

/// Returns the id of the message that answered a question, if a message did.
pub(crate) fn answered_by(handoff: &Handoff) -> Option<&str> {
    Some(handoff.answered_by.as_deref()?.rsplit_once("(a2a ")?.1.trim_end_matches(')'))
}

/// Returns the name of the answering party, with the id of the message.
pub(crate) fn by(name: &str, message: &str) -> String {
    format!("{name} (a2a {message})")
}

/// Converts a time to the protocol's type.
fn timestamp<T: serde::de::DeserializeOwned>(at: Time) -> Option<T> {
    serde_json::from_value(Value::String(at.rfc3339())).ok()
}
