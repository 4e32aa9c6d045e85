//! An incoming message: the start of a run, or the answer to a question.

use std::sync::Arc;

use a2a_types::{A2AError, Message, Part, PartContent, Role, SendMessageRequest};
use serde_json::{Value, json};
use stafette_core::handoff::{Foreign, State};
use stafette_core::run::create::RunCreated;
use stafette_core::{Fields, Handoff, HandoffId, Input, Reply, RunId};
use stafette_engine::{Denied, EngineError, Right};
use uuid::Uuid;

use crate::card::MODES;
use crate::{A2a, Caller, task};

/// Maximum length of an id from another party.
const LONGEST_ID: usize = 256;

/// Accepts a message, and returns the run that it belongs to.
pub(crate) async fn take(
    a2a: &A2a,
    caller: &Caller,
    request: &SendMessageRequest,
) -> Result<RunId, A2AError> {
    let message = &request.message;
    check(request)?;
    let read = Words::of(&message.parts)?;
    let push = request.configuration.as_ref();
    let push = push.and_then(|c| c.task_push_notification_config.as_ref());
    // Before anything begins: a refused message has no effect.
    if let Some(config) = push {
        a2a.notifier.check(config).await?;
    }
    let run = match &message.task_id {
        Some(id) if !id.is_empty() => answer(a2a, caller, message, read, task::run_of(id)?).await?,
        _ => begin(a2a, caller, message, read).await?,
    };
    if let Some(config) = push {
        a2a.notifier.keep(run, config.clone()).await?;
    }
    Ok(run)
}

fn check(request: &SendMessageRequest) -> Result<(), A2AError> {
    let message = &request.message;
    if message.message_id.is_empty() {
        return Err(A2AError::invalid_params("the message has no messageId"));
    }
    let named = [Some(&message.message_id), message.context_id.as_ref(), message.task_id.as_ref()];
    if named.into_iter().flatten().any(|id| id.len() > LONGEST_ID || id.contains([')', '\n'])) {
        return Err(A2AError::invalid_params(format!(
            "an id is longer than {LONGEST_ID} bytes or has a line end or `)` in it"
        )));
    }
    if message.role == Role::Agent {
        return Err(A2AError::invalid_params("the message's role must be ROLE_USER"));
    }
    let modes = request.configuration.as_ref().and_then(|c| c.accepted_output_modes.as_ref());
    let fits = |mode: &String| {
        let whole = mode.split_once('/').filter(|(_, kind)| *kind == "*");
        MODES.contains(&mode.as_str())
            || whole.is_some_and(|(kind, _)| matches!(kind, "*" | "text" | "application"))
            || mode == "text"
    };
    match modes {
        Some(modes) if !modes.is_empty() && !modes.iter().any(fits) => {
            Err(A2AError::content_type_not_supported())
        }
        _ => Ok(()),
    }
}

async fn begin(
    a2a: &A2a,
    caller: &Caller,
    message: &Message,
    words: Words,
) -> Result<RunId, A2AError> {
    if words.text.trim().is_empty() {
        return Err(A2AError::invalid_params("say in a text part what is to be done"));
    }
    let run = run_for(caller, message);
    let workflow = (a2a.workflow)().map_err(A2AError::unsupported_operation)?;
    let context = message.context_id.clone().filter(|context| !context.is_empty());
    let context = context.unwrap_or_else(|| run.to_string());
    let origin = Foreign {
        dialect: "a2a".into(),
        id: message.message_id.clone(),
        fields: Fields::from_iter([("context_id".to_owned(), Value::String(context))]),
    };
    let created = RunCreated {
        inputs: words.values,
        origin: Some(origin),
        trace: caller.within,
        ..RunCreated::new(run, Arc::new(workflow), words.text, caller.name.clone())
    };
    // An existing run with this id was started by the same message.
    a2a.engine.start(created).await.map_err(task::refused)
}

/// Returns the id of the run that a message starts: the same one for each repetition.
fn run_for(caller: &Caller, message: &Message) -> RunId {
    let parts: Vec<Part> =
        message.parts.iter().map(|part| Part { metadata: None, ..part.clone() }).collect();
    let named = json!(["a2a", caller.name, message.message_id, message.context_id, parts]);
    RunId(Uuid::new_v5(&Uuid::NAMESPACE_OID, named.to_string().as_bytes()))
}

async fn answer(
    a2a: &A2a,
    caller: &Caller,
    message: &Message,
    words: Words,
    run: RunId,
) -> Result<RunId, A2AError> {
    let denied = |denied: Denied| A2AError::invalid_request(denied.to_string());
    caller.who.may(Right::Answer).map_err(denied)?;
    let state = a2a.engine.state(run).await.map_err(task::refused)?;
    let rows = a2a.engine.log().handoffs(run).await.map_err(task::refused)?;
    let handoffs = task::admitted(&rows);
    let context = task::context(run, &handoffs);
    if message.context_id.as_ref().is_some_and(|named| !named.is_empty() && *named != context) {
        return Err(A2AError::invalid_params(format!("task {run} belongs to context {context}")));
    }
    if is_known(message, &handoffs) {
        return Ok(run);
    }
    if state.status().is_final() {
        return Err(A2AError::unsupported_operation(
            "the task is over; a message with its contextId and no taskId begins another",
        ));
    }
    let named = message.metadata.as_ref().and_then(|m| m.get("question")).and_then(Value::as_str);
    let asked = match named.map(str::parse::<HandoffId>) {
        Some(Ok(id)) => {
            let open = state.handoff(id).filter(|h| matches!(h.state, State::Asked { .. }));
            Some(open.ok_or_else(|| A2AError::invalid_params(format!("{id} asks nothing")))?)
        }
        Some(Err(error)) => return Err(A2AError::invalid_params(error.to_string())),
        None => task::question(&state),
    };
    let Some(asked) = asked else {
        return Err(A2AError::unsupported_operation(
            "the task is being worked on and asks nothing; send a message when it does",
        ));
    };
    let right = asked.offer.question.as_ref().map_or(Right::Answer, Right::to_answer);
    caller.who.may(right).map_err(denied)?;
    let asked = asked.id;
    if words.text.is_empty() && words.values.is_empty() {
        return Err(A2AError::invalid_params("the answer is empty"));
    }
    let by = task::by(&caller.name, &message.message_id);
    let input = Input::Answer { handoff: asked, values: words.values, text: words.text, by };
    match a2a.engine.send(run, input).await {
        Ok(Reply::Answered) => return Ok(run),
        Ok(Reply::Unfit { complaints }) => {
            let said = complaints.join("; ");
            return Err(A2AError::invalid_params(format!("not what was asked for: {said}")));
        }
        Ok(_) | Err(EngineError::Over { .. }) => {}
        Err(error) => return Err(task::refused(error)),
    }
    // Another caller was faster: perhaps this very message on another connection.
    let rows = a2a.engine.log().handoffs(run).await.map_err(task::refused)?;
    match is_known(message, &task::admitted(&rows)) {
        true => Ok(run),
        false => Err(A2AError::unsupported_operation("somebody else has answered already")),
    }
}

/// Returns true if a message has answered a question before.
fn is_known(message: &Message, handoffs: &[Handoff]) -> bool {
    let mut answers = handoffs.iter().filter_map(task::answered_by);
    answers.any(|id| id == message.message_id)
}

/// Content of a message: its text, and its values by name.
#[derive(Debug, Default)]
struct Words {
    text: String,
    values: Fields,
}

impl Words {
    fn of(parts: &[Part]) -> Result<Self, A2AError> {
        let mut words = Words::default();
        let mut texts = Vec::new();
        let mut files = Vec::new();
        for part in parts {
            match &part.content {
                PartContent::Text(text) => texts.push(text.as_str()),
                PartContent::Data(Value::Object(fields)) => {
                    for (name, value) in fields {
                        words.values.insert(name.clone(), value.clone());
                    }
                }
                PartContent::Data(value) => {
                    words.values.insert("data".to_owned(), value.clone());
                }
                PartContent::Url(_) | PartContent::Raw(_) => {
                    let file = Part { metadata: None, ..part.clone() };
                    files.push(serde_json::to_value(file).unwrap_or_default());
                }
            }
        }
        if !files.is_empty() {
            words.values.insert("files".to_owned(), Value::Array(files));
        }
        if parts.is_empty() {
            return Err(A2AError::invalid_params("the message has no parts"));
        }
        words.text = texts.join("\n\n");
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_11_the_same_message_is_the_same_run_and_another_is_another() {
        let caller = Caller { name: "ada".into(), ..Caller::default() };
        let message =
            Message { message_id: "1".into(), ..Message::new(Role::User, vec![Part::text("a")]) };
        let other = Message { parts: vec![Part::text("b")], ..message.clone() };
        assert_eq!(run_for(&caller, &message), run_for(&caller, &message));
        assert_ne!(run_for(&caller, &message), run_for(&caller, &other));
        let bob = Caller { name: "bob".into(), ..caller.clone() };
        assert_ne!(run_for(&caller, &message), run_for(&bob, &message));
    }
}
