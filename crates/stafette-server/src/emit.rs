//! Frames that an agent sends over its own channel.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::RunId;

use crate::guard::TURN_TOKEN;
use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::Body;
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "turns";
    POST "/v1/emit" => emit, TakePart, "emit", "Tell something from inside an agent's session",
        "Only processes of the session itself are heard, and only by the Unix socket, \
         where the system tells which process asks.";
}

/// A frame that an agent sends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Emit {
    /// Token of the agent's session; that of the header `stafette-token` if left out.
    #[serde(default)]
    token: Option<String>,
    /// Frame type: `READY`, `HANDOFF`, `RESULT`, `REPORT`, `CHANGE`, `SIGNAL`, `ERROR`, or
    /// `MESSAGE` to another agent of the run.
    r#type: String,
    /// Payload, as in a frame of that type.
    #[serde(default)]
    payload: Value,
}

/// Confirms that the frame was accepted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Emitted {
    /// Always true: a refused frame is a problem document.
    taken: bool,
    /// The run that the session belongs to.
    run: RunId,
}

async fn emit(
    State(edge): State<Edge>,
    principal: Principal,
    headers: HeaderMap,
    Body(Emit { token, r#type, payload }): Body<Emit>,
) -> Result<Json<Emitted>, Problem> {
    let shown = || headers.get(TURN_TOKEN)?.to_str().ok().map(str::to_owned);
    let token = token.or_else(shown).unwrap_or_default();
    let run = edge.engine.sessions().tell(&token, principal.pid(), &r#type, payload).await?;
    Ok(Json(Emitted { taken: true, run }))
}
