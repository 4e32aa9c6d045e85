//! Threads of talk.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::history::{Hit, Message, PAGE, Thread, ThreadFilter};
use stafette_stages::Saying;

use crate::openapi::named;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named, within};
use crate::{Edge, Problem};

pub(super) fn routes() -> ApiRouter<Edge> {
    let about = |id, summary| named("knowledge", id, summary);
    ApiRouter::new()
        .api_route(
            "/v1/threads",
            get_with(list, about("listThreads", "List threads, the newest first"))
                .post_with(say, about("sayInThread", "Say something in a thread or a new one")),
        )
        .api_route(
            "/v1/threads/search",
            get_with(search, about("searchThreads", "Find messages that have these words")),
        )
        .api_route(
            "/v1/threads/{thread}",
            get_with(read, about("readThread", "A thread and its messages")),
        )
}

/// Which threads.
#[derive(Debug, Deserialize, JsonSchema)]
struct Which {
    /// Only of this stage.
    #[serde(default)]
    module: Option<String>,
    /// Only those after this one in the list.
    #[serde(default)]
    after: Option<String>,
    /// How many at most, from 1 to 500.
    #[serde(default = "page")]
    limit: usize,
}

fn page() -> usize {
    100
}

/// Threads.
#[derive(Debug, Serialize, JsonSchema)]
struct ThreadList {
    /// The newest first.
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

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
struct Words {
    /// The words, all of which a message must have.
    q: String,
    /// Only of this stage.
    #[serde(default)]
    module: Option<String>,
    /// How many at most, from 1 to 500.
    #[serde(default = "page")]
    limit: usize,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
struct Hits {
    /// The best first.
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

/// Which thread is meant.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheThread {
    /// Its id.
    thread: String,
}

/// From where to read.
#[derive(Debug, Deserialize, JsonSchema)]
struct From {
    /// The number of the last message that was read.
    #[serde(default)]
    after: u64,
    /// How many at most, from 1 to 500.
    #[serde(default = "page")]
    limit: usize,
}

/// A thread and its messages.
#[derive(Debug, Serialize, JsonSchema)]
struct ThreadView {
    /// The thread.
    thread: Thread,
    /// Its messages in order.
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
