//! Messages to agents: send one, read its receipt; and for an agent's own program, take those that wait.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::run::message::Way;
use stafette_core::{AgentName, MessageId, Party};
use stafette_engine::{MessageView, Reader, WaitingMessage};

use crate::guard::TURN_TOKEN;
use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Body, Named};
use crate::runs::{TheRun, find};
use crate::turns::not_theirs;
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "agents";
    POST "/v1/runs/{run}/messages" => send, Run, "sendMessage", "Send a message to an agent";
    GET "/v1/runs/{run}/messages" => list, Read, "listMessages", "List the latest messages";
    GET "/v1/runs/{run}/messages/{message}" => show, Read, "getMessage",
        "Show a message with its receipt";
}

operations! {
    pub(crate) fn own_routes() in "turns";
    POST "/v1/messages/take" => take, TakePart, "takeMessages",
        "Ask for messages from inside a session";
    POST "/v1/messages/delivered" => delivered, TakePart, "confirmMessages",
        "Confirm messages that the model reads";
}

/// A message, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheMessage {
    /// Run id, its first or last digits, or `latest`.
    run: String,
    /// Id of the message, such as `m3`.
    message: MessageId,
}

/// A message to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendMessage {
    /// Name of the agent that it is for.
    to: String,
    /// Text of the message, at most 8 KiB.
    text: String,
    /// Name of the sender, for the agent and the record.
    #[serde(default)]
    by: String,
}

/// The agent whose messages a program asks for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Taker {
    /// Name of an agent that Stafette has not started. Left out inside a session, which is known by its token.
    agent: Option<AgentName>,
}

/// Messages that a program has shown to its model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shown {
    /// Name of an agent that Stafette has not started; left out inside a session.
    #[serde(default)]
    agent: Option<AgentName>,
    /// Ids of the messages.
    messages: Vec<MessageId>,
    /// Moment at which it showed them.
    way: Way,
}

/// The messages that wait for an agent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Waiting {
    /// Messages in the order in which they were sent; some may be left for the next step.
    messages: Vec<WaitingMessage>,
}

async fn send(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheRun { run }): Named<TheRun>,
    Body(SendMessage { to, text, by }): Body<SendMessage>,
) -> Result<Json<MessageView>, Problem> {
    let run = find(&edge, &run).await?;
    let by = principal.signed(by);
    Ok(Json(edge.engine.messages().send(run, &to, Party::Human, by, text).await?))
}

async fn list(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
) -> Result<Json<Vec<MessageView>>, Problem> {
    let run = find(&edge, &run).await?;
    Ok(Json(edge.engine.messages().list(run).await?))
}

async fn show(
    State(edge): State<Edge>,
    Named(TheMessage { run, message }): Named<TheMessage>,
) -> Result<Json<MessageView>, Problem> {
    let run = find(&edge, &run).await?;
    Ok(Json(edge.engine.messages().get(run, message).await?))
}

async fn take(
    State(edge): State<Edge>,
    principal: Principal,
    headers: HeaderMap,
    Body(Taker { agent }): Body<Taker>,
) -> Result<Json<Waiting>, Problem> {
    let reader = reader(&principal, &headers, agent.as_ref())?;
    let messages = edge.engine.messages().take(reader, principal.pid()).await?;
    Ok(Json(Waiting { messages }))
}

async fn delivered(
    State(edge): State<Edge>,
    principal: Principal,
    headers: HeaderMap,
    Body(Shown { agent, messages, way }): Body<Shown>,
) -> Result<Json<Waiting>, Problem> {
    let reader = reader(&principal, &headers, agent.as_ref())?;
    edge.engine.messages().delivered(reader, principal.pid(), messages, way).await?;
    Ok(Json(Waiting { messages: Vec::new() }))
}

/// Returns the agent that the caller reads for: the one of its session, which only a program inside one
/// can name, or an external one. An agent reads for no other.
fn reader<'a>(
    principal: &Principal,
    headers: &'a HeaderMap,
    agent: Option<&'a AgentName>,
) -> Result<Reader<'a>, Problem> {
    match (agent, principal.caller.agent()) {
        (Some(agent), Some(own)) if own != agent => Err(not_theirs(own, agent)),
        (Some(agent), _) => Ok(Reader::External(agent)),
        (None, _) => {
            let token = headers.get(TURN_TOKEN).and_then(|token| token.to_str().ok());
            let token = token.map(Reader::Session);
            token.ok_or_else(|| Problem::new(400, "no_turn_token", "Which session is asking?"))
        }
    }
}
