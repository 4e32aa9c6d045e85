//! Access: tokens for programs, launch links for the user's browser.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{AgentName, Millis};
use stafette_engine::Scope;

use crate::clock::now;
use crate::launch::STAY;
use crate::openapi::operations;
use crate::principal::Standing;
use crate::problem::causes;
use crate::request::{Body, Named};
use crate::tokens::{NewToken, TokenError, TokenView};
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "access";
    GET "/v1/tokens" => list, Admin, "listTokens", "List the tokens, without the tokens themselves";
    POST "/v1/tokens" => create, Admin, "createToken", "Make a token; it is shown this once";
    DELETE "/v1/tokens/{name}" => revoke, Admin, "revokeToken", "Take a token back";
    POST "/v1/launch" => launch, Admin, "makeLaunchLink",
        "Make a link that lets the user's browser in, once";
    POST "/v1/session" => enter, Public, "enter", "Exchange the key of a launch link for a session";
}

async fn list(State(edge): State<Edge>) -> Json<Vec<TokenView>> {
    Json(edge.tokens.list(now()))
}

/// Request to create a token.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    /// Name of the token: letters, digits, `-`, `_` and `.`.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    name: String,
    /// Scope that the token grants.
    scope: Scope,
    /// Agent that the token is for, with the rights of that role; a person's token if left out.
    #[serde(default)]
    agent: Option<AgentName>,
    /// Lifetime, such as `30d`; the token never expires if left out.
    #[serde(default)]
    expires: Option<Millis>,
}

async fn create(
    State(edge): State<Edge>,
    Body(Create { name, scope, agent, expires }): Body<Create>,
) -> Result<Json<NewToken>, Problem> {
    let (tokens, standing) = (edge.tokens.clone(), Standing { scope, agent });
    let made = tokio::task::spawn_blocking(move || tokens.create(now(), &name, standing, expires));
    Ok(Json(made.await.map_err(gone)??))
}

/// A token, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheToken {
    /// Name of the token.
    name: String,
}

/// Confirms that a token was revoked.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Revoked {
    /// Name of the revoked token.
    revoked: String,
}

async fn revoke(
    State(edge): State<Edge>,
    Named(TheToken { name }): Named<TheToken>,
) -> Result<Json<Revoked>, Problem> {
    let (tokens, revoked) = (edge.tokens.clone(), name.clone());
    tokio::task::spawn_blocking(move || tokens.revoke(&name)).await.map_err(gone)??;
    Ok(Json(Revoked { revoked }))
}

fn gone(_: tokio::task::JoinError) -> Problem {
    Problem::new(503, "stopping", "The daemon is stopping")
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        let (status, code) = match &error {
            TokenError::Taken { .. } => (409, "token_taken"),
            TokenError::Unknown { .. } => (404, "no_token"),
            TokenError::BadName { .. } => (422, "bad_name"),
            TokenError::AgentAdmin => (422, "agent_admin"),
            TokenError::TooMany => (409, "too_many_tokens"),
            TokenError::Read { .. } => (500, "not_readable"),
            TokenError::Write { .. } => (507, "not_stored"),
        };
        Problem::new(status, code, error.to_string()).because(causes(&error))
    }
}

/// Request to create a launch link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Launch {
    /// Scope that the browser gets; `admin` if left out.
    #[serde(default = "everything")]
    scope: Scope,
}

fn everything() -> Scope {
    Scope::Admin
}

/// A link that works once, within two minutes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LaunchLink {
    /// Address to open in the browser, with the key in it.
    pub url: String,
}

async fn launch(
    State(edge): State<Edge>,
    Body(Launch { scope }): Body<Launch>,
) -> Result<Json<LaunchLink>, Problem> {
    // The TCP listener opens on demand: a user who never opens the page has no open port.
    let door = edge
        .some_door()
        .await
        .map_err(|error| Problem::new(503, "no_door", error.to_string()).because(causes(&error)))?;
    let key = edge.launches.key(now(), scope).map_err(no_chance)?;
    // Browsers keep what follows `#` to themselves: no server and no log gets the key.
    Ok(Json(LaunchLink { url: format!("{}/#key={key}", door.url()) }))
}

fn no_chance(error: std::io::Error) -> Problem {
    Problem::new(503, "no_chance", "The system gives no random numbers").because(error.to_string())
}

/// The key of a launch link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key {
    /// The part of the link after `#key=`.
    key: String,
}

/// A browser that is signed in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Session {
    /// Sent as `authorization: Bearer …`, or as the WebSocket protocol `session.…`.
    session: String,
    /// Time until which it is accepted, unless the daemon ends before, in milliseconds.
    until: stafette_core::Time,
}

async fn enter(
    State(edge): State<Edge>,
    Body(Key { key }): Body<Key>,
) -> Result<Json<Session>, Problem> {
    match edge.launches.redeem(now(), &key).map_err(no_chance)? {
        Some(session) => Ok(Json(Session { session, until: now() + STAY })),
        None => {
            let problem = Problem::new(403, "launch_key", "This link does not work any more");
            Err(problem.because("each works once and for two minutes; `stafette open` makes one"))
        }
    }
}
