//! What an agent tells by its own channel.

use axum::Json;
use axum::extract::State;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::rejection::JsonRejection;
use axum::serve::IncomingStream;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::UnixListener;

use crate::{Edge, Problem};

/// The process at the other end of the socket, as the system tells it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) pid: Option<i32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Caller {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Caller { pid: stream.io().peer_cred().ok().and_then(|credentials| credentials.pid()) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Emit {
    token: String,
    r#type: String,
    #[serde(default)]
    payload: Value,
}

pub(crate) async fn emit(
    State(edge): State<Edge>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    body: Result<Json<Emit>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(Emit { token, r#type, payload }) = body?;
    let run = edge.engine.tell(&token, caller.pid, &r#type, payload).await?;
    Ok(Json(json!({ "taken": true, "run": run })))
}
