//! Discussion threads.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::history::{Hit, Message, PAGE, Thread, ThreadFilter};
use stafette_stages::Saying;

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named, within};
use crate::{Edge, Problem};

operations! {
    pub(super) fn routes() in "knowledge";
    GET "/v1/threads" => list, Shared, "listThreads", "List threads, the newest first";
    POST "/v1/threads" => say, TakePart, "sayInThread", "Say something in a thread or a new one";
    GET "/v1/threads/search" => search, Shared, "searchThreads",
        "Find messages that have these words";
    GET "/v1/threads/{thread}" => read, Shared, "readThread", "A thread and its messages";
}

/// Filter for the list of threads.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Only threads of this stage.
    #[serde(default)]
    module: Option<String>,
    /// Only threads after this one in the list.
    #[serde(default)]
    after: Option<String>,
    /// Maximum number of threads, from 1 to 500.
    #[serde(default = "super::page")]
    limit: usize,
}

/// A page of threads.
#[derive(Debug, Serialize, JsonSchema)]
struct ThreadList {
    /// Threads, the newest first.
    threads: Vec<Thread>,
}

async fn list(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(Which { module, after, limit }): Asked<Which>,
) -> Result<Json<ThreadList>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let limit = within("limit", limit, 1..=PAGE)?;
    let threads = stages.threads(&actor, ThreadFilter { module, after }, limit).await?;
    Ok(Json(ThreadList { threads }))
}

async fn say(
    State(edge): State<Edge>,
    principal: Principal,
    Body(saying): Body<Saying>,
) -> Result<(StatusCode, Json<Message>), Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok((StatusCode::CREATED, Json(stages.say(&actor, saying).await?)))
}

/// Full-text search in the messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Words {
    /// Words that a message must all contain.
    q: String,
    /// Only messages of this stage.
    #[serde(default)]
    module: Option<String>,
    /// Maximum number of hits, from 1 to 500.
    #[serde(default = "super::page")]
    limit: usize,
}

/// Result of a search.
#[derive(Debug, Serialize, JsonSchema)]
struct Hits {
    /// Hits, the best first.
    hits: Vec<Hit>,
}

async fn search(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(Words { q, module, limit }): Asked<Words>,
) -> Result<Json<Hits>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let limit = within("limit", limit, 1..=PAGE)?;
    Ok(Json(Hits { hits: stages.search(&actor, &q, module.as_deref(), limit).await? }))
}

/// A thread, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheThread {
    /// Id of the thread.
    thread: String,
}

/// Page of a thread.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct From {
    /// Number of the last message that was read; 0 starts at the beginning.
    #[serde(default)]
    after: u64,
    /// Maximum number of messages, from 1 to 500.
    #[serde(default = "super::page")]
    limit: usize,
}

/// A thread and its messages.
#[derive(Debug, Serialize, JsonSchema)]
struct ThreadView {
    /// The thread that was read.
    thread: Thread,
    /// Messages of this page, in order.
    messages: Vec<Message>,
}

async fn read(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheThread { thread }): Named<TheThread>,
    Asked(From { after, limit }): Asked<From>,
) -> Result<Json<ThreadView>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let limit = within("limit", limit, 1..=PAGE)?;
    let (thread, messages) = stages.thread(&actor, &thread, after, limit).await?;
    Ok(Json(ThreadView { thread, messages }))
}
