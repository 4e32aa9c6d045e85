//! The JSON-RPC binding.

use a2a_types::{A2AError, JsonRpcId, JsonRpcRequest, JsonRpcResponse, SVC_PARAM_VERSION};
use axum::Extension;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::method::{self, Reply};
use crate::{A2a, Caller};

pub(crate) async fn serve(
    State(a2a): State<A2a>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let caller = caller.map(|Extension(caller)| caller).unwrap_or_default();
    let (id, request) = match read(&body) {
        Ok(request) => (request.id.clone(), request),
        Err((id, error)) => return failed(id, &error),
    };
    if let Err(error) = version(&headers) {
        return failed(id, &error);
    }
    if let Err(denied) = method::may(&caller, &request.method) {
        let error = A2AError::invalid_request(denied.to_string());
        return (StatusCode::FORBIDDEN, failed(id, &error)).into_response();
    }
    let params = request.params.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    match method::call(&a2a, &caller, &request.method, params).await {
        Ok(Reply::Value(value)) => Json(JsonRpcResponse::success(id, value)).into_response(),
        Ok(Reply::Stream(watch)) => watch.served(move |event| {
            let answer = match event {
                Ok(value) => JsonRpcResponse::success(id.clone(), value),
                Err(error) => JsonRpcResponse::error(id.clone(), error.to_jsonrpc_error()),
            };
            serde_json::to_string(&answer).unwrap_or_default()
        }),
        Err(error) => failed(id, &error),
    }
}

/// Parses a request; an error carries the request's id, as far as it is known.
fn read(body: &[u8]) -> Result<JsonRpcRequest, (JsonRpcId, A2AError)> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| (JsonRpcId::Null, A2AError::parse_error(error.to_string())))?;
    let id = value.get("id").cloned().unwrap_or_default();
    let id = serde_json::from_value(id).unwrap_or(JsonRpcId::Null);
    if value.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err((id, A2AError::invalid_request("this is not JSON-RPC 2.0")));
    }
    if id == JsonRpcId::Null {
        return Err((id, A2AError::invalid_request("a request without an id gets no answer")));
    }
    serde_json::from_value(value)
        .map_err(|error| (id, A2AError::invalid_request(error.to_string())))
}

/// Checks the protocol version of the client; a missing version is accepted.
pub(crate) fn version(headers: &HeaderMap) -> Result<(), A2AError> {
    let named = headers.get(SVC_PARAM_VERSION).and_then(|version| version.to_str().ok());
    match named {
        Some(version) if !version.is_empty() && version.split('.').next() != Some("1") => {
            Err(A2AError::version_not_supported(version))
        }
        _ => Ok(()),
    }
}

fn failed(id: JsonRpcId, error: &A2AError) -> Response {
    Json(JsonRpcResponse::error(id, error.to_jsonrpc_error())).into_response()
}
