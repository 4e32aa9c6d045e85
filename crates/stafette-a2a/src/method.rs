//! The methods, by name; both bindings lead here.

use a2a_types::{
    A2AError, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse,
    SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, Task,
    TaskPushNotificationConfig, methods,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stafette_core::{Input, RunId};
use stafette_engine::{Denied, EngineError, Right};

use crate::task::{self, Extent, refused};
use crate::watch::Watch;
use crate::{A2a, Caller, inbound};

/// Maximum number of runs that are searched for a list, the newest first.
const LISTED: usize = 1000;

/// Tasks on a page: maximum and default.
const PAGE: (usize, usize) = (100, 50);

/// Response to a method.
pub(crate) enum Reply {
    /// A single value.
    Value(Value),
    Stream(Box<Watch>),
}

/// The right that each method needs. A message may also be an answer, which needs another.
const RIGHTS: [(&str, Right); 11] = [
    (methods::SEND_MESSAGE, Right::Run),
    (methods::SEND_STREAMING_MESSAGE, Right::Run),
    (methods::GET_TASK, Right::Read),
    (methods::LIST_TASKS, Right::Read),
    (methods::CANCEL_TASK, Right::Decide),
    (methods::SUBSCRIBE_TO_TASK, Right::Read),
    (methods::CREATE_PUSH_CONFIG, Right::Run),
    (methods::GET_PUSH_CONFIG, Right::Run),
    (methods::LIST_PUSH_CONFIGS, Right::Run),
    (methods::DELETE_PUSH_CONFIG, Right::Run),
    (methods::GET_EXTENDED_AGENT_CARD, Right::Read),
];

/// Returns the right that each method needs.
pub fn rights() -> impl Iterator<Item = (&'static str, Right)> {
    RIGHTS.into_iter()
}

/// Checks that the caller may use a method; one that is unknown does nothing.
pub(crate) fn may(caller: &Caller, method: &str) -> Result<(), Denied> {
    let known = RIGHTS.into_iter().find(|(name, _)| *name == method);
    caller.who.may(known.map_or(Right::Read, |(_, right)| right))
}

/// Carries out a method.
pub(crate) async fn call(
    a2a: &A2a,
    caller: &Caller,
    method: &str,
    params: Value,
) -> Result<Reply, A2AError> {
    match method {
        methods::SEND_MESSAGE => {
            let request: SendMessageRequest = read(params)?;
            let run = inbound::take(a2a, caller, &request).await?;
            let wish = request.configuration.as_ref();
            if !wish.and_then(|wish| wish.return_immediately).unwrap_or_default() {
                Watch::settled(&a2a.engine, run).await?;
            }
            let extent = Extent::of(wish.and_then(|wish| wish.history_length))?;
            let task = task::task(&a2a.engine, run, extent).await?;
            value(&SendMessageResponse::Task(task))
        }
        methods::SEND_STREAMING_MESSAGE => {
            let request: SendMessageRequest = read(params)?;
            let run = inbound::take(a2a, caller, &request).await?;
            Ok(Reply::Stream(Box::new(Watch::of_message(&a2a.engine, run).await?)))
        }
        methods::GET_TASK => {
            let request: GetTaskRequest = read(params)?;
            let extent = Extent::of(request.history_length)?;
            value(&task::task(&a2a.engine, task::run_of(&request.id)?, extent).await?)
        }
        methods::LIST_TASKS => value(&list(a2a, read(params)?).await?),
        methods::CANCEL_TASK => value(&cancel(a2a, caller, &read(params)?).await?),
        methods::SUBSCRIBE_TO_TASK => {
            let request: SubscribeToTaskRequest = read(params)?;
            let run = task::run_of(&request.id)?;
            let state = a2a.engine.state(run).await.map_err(refused)?;
            if state.status().is_final() {
                return Err(A2AError::unsupported_operation("the task is over; get it instead"));
            }
            Ok(Reply::Stream(Box::new(Watch::new(&a2a.engine, run).await?)))
        }
        methods::CREATE_PUSH_CONFIG => {
            let config: TaskPushNotificationConfig = read(params)?;
            let run = known(a2a, &config.task_id).await?;
            value(&a2a.notifier.keep(run, config).await?)
        }
        methods::GET_PUSH_CONFIG => {
            let wanted: GetTaskPushNotificationConfigRequest = read(params)?;
            value(&a2a.notifier.get(known(a2a, &wanted.task_id).await?, &wanted.id)?)
        }
        methods::LIST_PUSH_CONFIGS => {
            let wanted: ListTaskPushNotificationConfigsRequest = read(params)?;
            let configs = a2a.notifier.list(known(a2a, &wanted.task_id).await?);
            value(&ListTaskPushNotificationConfigsResponse { configs, next_page_token: None })
        }
        methods::DELETE_PUSH_CONFIG => {
            let wanted: DeleteTaskPushNotificationConfigRequest = read(params)?;
            a2a.notifier.forget(known(a2a, &wanted.task_id).await?, &wanted.id)?;
            Ok(Reply::Value(json!({})))
        }
        methods::GET_EXTENDED_AGENT_CARD => {
            Err(A2AError::unsupported_operation("the card at the well-known place is all there is"))
        }
        method => Err(A2AError::method_not_found(method)),
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, A2AError> {
    serde_json::from_value(params).map_err(|error| A2AError::invalid_params(error.to_string()))
}

fn value(answer: &impl Serialize) -> Result<Reply, A2AError> {
    let value = serde_json::to_value(answer);
    Ok(Reply::Value(value.map_err(|error| A2AError::internal(error.to_string()))?))
}

async fn known(a2a: &A2a, id: &str) -> Result<RunId, A2AError> {
    let run = task::run_of(id)?;
    a2a.engine.view(run).await.map_err(refused)?;
    Ok(run)
}

async fn cancel(a2a: &A2a, caller: &Caller, wanted: &CancelTaskRequest) -> Result<Task, A2AError> {
    let run = task::run_of(&wanted.id)?;
    let why = "cancelled by A2A".to_owned();
    let sent = a2a.engine.send(run, Input::Cancel { by: caller.name.clone(), why }).await;
    match sent {
        Err(EngineError::Over { .. }) => return Err(A2AError::task_not_cancelable(&wanted.id)),
        sent => sent.map_err(refused)?,
    };
    task::task(&a2a.engine, run, Extent::whole()).await
}

/// Returns the matching tasks, the newest first. A page begins after the task that its token names.
async fn list(a2a: &A2a, wanted: ListTasksRequest) -> Result<ListTasksResponse, A2AError> {
    let size = match wanted.page_size.map(usize::try_from) {
        None | Some(Ok(0)) => PAGE.1,
        Some(Ok(size)) if size <= PAGE.0 => size,
        _ => return Err(A2AError::invalid_params(format!("pageSize is 1 to {}", PAGE.0))),
    };
    let extent = Extent {
        artifacts: wanted.include_artifacts.unwrap_or_default(),
        ..Extent::of(Some(wanted.history_length.unwrap_or(0)))?
    };
    let after = wanted.page_token.as_deref().filter(|token| !token.is_empty());
    let after = after.map(str::parse::<RunId>).transpose();
    let after = after.map_err(|_| A2AError::invalid_params("pageToken is none of ours"))?;
    let context = wanted.context_id.as_deref().filter(|context| !context.is_empty());
    let since = wanted.status_timestamp_after.map(|since| since.timestamp_millis());
    let mut tasks: Vec<Task> = Vec::new();
    let (mut total, mut reached, mut more) = (0, after.is_none(), false);
    for view in a2a.engine.overview(LISTED).await.map_err(refused)? {
        let found = task::task(&a2a.engine, view.run, extent).await?;
        let state = wanted.status.as_ref().is_none_or(|state| *state == found.status.state);
        let at = found.status.timestamp.map(|at| at.timestamp_millis());
        let fresh = since.is_none_or(|since| at.is_some_and(|at| at >= since));
        if state && fresh && context.is_none_or(|context| *context == found.context_id) {
            total += 1;
            if reached && tasks.len() < size {
                tasks.push(found);
            } else if reached {
                more = true;
            }
        }
        reached |= after == Some(view.run);
    }
    let next = tasks.last().filter(|_| more).map(|task| task.id.clone()).unwrap_or_default();
    Ok(ListTasksResponse {
        page_size: i32::try_from(tasks.len()).unwrap_or(i32::MAX),
        tasks,
        next_page_token: next,
        total_size: total,
    })
}
