//! Follows a task: reports each change once, until it ends or asks a question.

use std::convert::Infallible;
use std::time::Duration;

use a2a_types::{
    A2AError, StreamResponse, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent,
};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use stafette_core::{Run, RunId};
use stafette_engine::{Engine, Feed};
use std::collections::VecDeque;
use tokio::time::{Instant, timeout_at};

use crate::task::{self, Extent, refused};

/// Maximum time that a client may wait for a task in one request.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Interval of keep-alive messages on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns a text that distinguishes two states of a task.
pub(crate) fn mark(status: &TaskStatus) -> String {
    let said = status.message.as_ref().map(|message| json!(message.parts)).unwrap_or_default();
    let id = match task::is_settled(&status.state) {
        true => status.message.as_ref().map(|message| message.message_id.clone()),
        false => None,
    };
    json!([status.state, id, said]).to_string()
}

/// A task that is followed.
pub(crate) struct Watch {
    engine: Engine,
    feed: Feed,
    run: RunId,
    context: String,
    /// State that was last sent.
    told: String,
    ready: VecDeque<StreamResponse>,
    over: bool,
    /// True if the task had ended or asked a question at the start.
    rests: bool,
}

impl Watch {
    /// Follows the task after a message, beginning with the whole task.
    pub(crate) async fn of_message(engine: &Engine, run: RunId) -> Result<Self, A2AError> {
        let watch = Watch::new(engine, run).await?;
        Ok(Watch { over: watch.rests, ..watch })
    }

    /// Follows a task, beginning with the whole task, even if it waits for an answer already.
    pub(crate) async fn new(engine: &Engine, run: RunId) -> Result<Self, A2AError> {
        let feed = feed(engine).await?;
        let task = task::task(engine, run, Extent::whole()).await?;
        Ok(Watch {
            engine: engine.clone(),
            feed,
            run,
            context: task.context_id.clone(),
            told: mark(&task.status),
            over: task.status.state.is_terminal(),
            rests: task::is_settled(&task.status.state),
            ready: VecDeque::from([StreamResponse::Task(task)]),
        })
    }

    /// Returns once a task has ended or asks a question, or after the maximum wait.
    pub(crate) async fn settled(engine: &Engine, run: RunId) -> Result<(), A2AError> {
        let until = Instant::now() + LONGEST_WAIT;
        let mut feed = feed(engine).await?;
        loop {
            let state = engine.state(run).await.map_err(refused)?;
            if task::is_settled(&task::state(&state)) {
                return Ok(());
            }
            match timeout_at(until, changed(&mut feed, run)).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return Ok(()),
            }
        }
    }

    /// Returns the next change; `None` if no more come.
    async fn next(&mut self) -> Option<Result<StreamResponse, A2AError>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(Ok(ready));
            }
            if self.over || !changed(&mut self.feed, self.run).await {
                return None;
            }
            let state = match self.engine.state(self.run).await {
                Ok(state) => state,
                Err(error) => {
                    self.over = true;
                    return Some(Err(refused(error)));
                }
            };
            if let Err(error) = self.take(&state).await {
                self.over = true;
                return Some(Err(error));
            }
        }
    }

    async fn take(&mut self, run: &Run) -> Result<(), A2AError> {
        let status = task::status(run);
        let mark = mark(&status);
        if mark == self.told {
            return Ok(());
        }
        self.told = mark;
        self.over = task::is_settled(&status.state);
        if status.state.is_terminal() {
            let task = task::task(&self.engine, self.run, Extent::whole()).await?;
            for artifact in task.artifacts.into_iter().flatten() {
                self.ready.push_back(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                    task_id: task.id.clone(),
                    context_id: self.context.clone(),
                    artifact,
                    append: Some(false),
                    last_chunk: Some(true),
                    metadata: None,
                }));
            }
        }
        self.ready.push_back(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.run.to_string(),
            context_id: self.context.clone(),
            status,
            metadata: None,
        }));
        Ok(())
    }

    /// Returns the changes as server-sent events, each formatted by `print`.
    pub(crate) fn served(
        self,
        print: impl Fn(Result<Value, A2AError>) -> String + Send + 'static,
    ) -> Response {
        let events = stream::unfold((self, print), |(mut watch, print)| async move {
            let event = watch.next().await?;
            let value = event.and_then(|event| {
                serde_json::to_value(event).map_err(|error| A2AError::internal(error.to_string()))
            });
            let event = Event::default().data(print(value));
            Some((Ok::<_, Infallible>(event), (watch, print)))
        });
        let alive = KeepAlive::new().interval(KEEP_ALIVE);
        Sse::new(events).keep_alive(alive).into_response()
    }
}

/// Returns the feed of events from now on.
async fn feed(engine: &Engine) -> Result<Feed, A2AError> {
    let head = engine.store().head().await;
    let head = head.map_err(|error| A2AError::internal(error.to_string()))?;
    Ok(engine.feed(head))
}

/// Waits for an event of the run; returns false if no more come.
pub(crate) async fn changed(feed: &mut Feed, run: RunId) -> bool {
    loop {
        match feed.next().await {
            Ok(Some(page)) if page.iter().any(|stored| stored.run == run) => return true,
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return false,
        }
    }
}
