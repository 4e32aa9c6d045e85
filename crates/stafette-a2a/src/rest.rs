//! The HTTP+JSON binding: paths and verbs instead of method names.

use a2a_types::{A2AError, error_reason, methods};
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};

use crate::method::{self, Reply};
use crate::{A2a, Caller, rpc};

/// The parameters of a query, in order.
type Pairs = Vec<(String, String)>;

pub(crate) async fn serve(
    State(a2a): State<A2a>,
    caller: Option<Extension<Caller>>,
    Path(path): Path<String>,
    query: Result<Query<Pairs>, QueryRejection>,
    verb: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let caller = caller.map(|Extension(caller)| caller).unwrap_or_default();
    let asked = rpc::version(&headers).and_then(|()| {
        let Query(query) = query.map_err(|e| A2AError::parse_error(e.to_string()))?;
        read(&verb, &path, query, &body)
    });
    let reply = match asked {
        Ok((method, _)) if let Err(denied) = method::may(&caller, method) => {
            let error = problem(&A2AError::invalid_request(denied.to_string()));
            return (StatusCode::FORBIDDEN, Json(error)).into_response();
        }
        Ok((method, params)) => method::call(&a2a, &caller, method, params).await,
        Err(error) => Err(error),
    };
    match reply {
        Ok(Reply::Value(value)) => Json(value).into_response(),
        Ok(Reply::Stream(watch)) => watch.served(|event| match event {
            Ok(value) => value.to_string(),
            Err(error) => problem(&error).to_string(),
        }),
        Err(error) => {
            let status = StatusCode::from_u16(error.http_status_code());
            (status.unwrap_or(StatusCode::BAD_REQUEST), Json(problem(&error))).into_response()
        }
    }
}

fn problem(error: &A2AError) -> Value {
    let said = error.to_jsonrpc_error();
    let status = error.http_status_code();
    let word = match status {
        404 => "NOT_FOUND",
        500.. => "INTERNAL",
        _ if error_reason(error.code).starts_with("INVALID") => "INVALID_ARGUMENT",
        _ => "FAILED_PRECONDITION",
    };
    json!({ "error": { "code": status, "status": word, "message": said.message, "details": said.data } })
}

/// Returns the method for a path and a verb, with its parameters.
fn read(
    verb: &Method,
    path: &str,
    query: Pairs,
    body: &[u8],
) -> Result<(&'static str, Value), A2AError> {
    let mut params = match body {
        [] => Map::new(),
        body => serde_json::from_slice(body).map_err(|e| A2AError::parse_error(e.to_string()))?,
    };
    params.extend(query.into_iter().map(|(name, value)| (name, plain(value))));
    let steps: Vec<&str> = path.split('/').collect();
    let (get, post) = (*verb == Method::GET, *verb == Method::POST);
    let mut put = |name: &str, value: &str| {
        params.insert(name.to_owned(), Value::String(value.to_owned()));
    };
    let method = match steps.as_slice() {
        ["message:send"] if post => methods::SEND_MESSAGE,
        ["message:stream"] if post => methods::SEND_STREAMING_MESSAGE,
        ["extendedAgentCard"] if get => methods::GET_EXTENDED_AGENT_CARD,
        ["tasks"] if get => methods::LIST_TASKS,
        ["tasks", step] => {
            let (id, action) = step.split_once(':').unwrap_or((step, ""));
            put("id", id);
            match action {
                "" if get => methods::GET_TASK,
                "cancel" if post => methods::CANCEL_TASK,
                "subscribe" if post || get => methods::SUBSCRIBE_TO_TASK,
                _ => return Err(A2AError::method_not_found(path)),
            }
        }
        ["tasks", id, "pushNotificationConfigs"] => {
            put("taskId", id);
            match (get, post) {
                (true, _) => methods::LIST_PUSH_CONFIGS,
                (_, true) => methods::CREATE_PUSH_CONFIG,
                _ => return Err(A2AError::method_not_found(path)),
            }
        }
        ["tasks", id, "pushNotificationConfigs", config] => {
            put("taskId", id);
            put("id", config);
            match get {
                true => methods::GET_PUSH_CONFIG,
                false if *verb == Method::DELETE => methods::DELETE_PUSH_CONFIG,
                false => return Err(A2AError::method_not_found(path)),
            }
        }
        _ => return Err(A2AError::method_not_found(path)),
    };
    Ok((method, Value::Object(params)))
}

/// Parses a query value: numbers and booleans keep their type.
fn plain(value: String) -> Value {
    match serde_json::from_str(&value) {
        Ok(plain @ (Value::Number(_) | Value::Bool(_))) => plain,
        _ => Value::String(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_11_a_path_stands_for_a_method() {
        let asked = |verb: Method, path: &str, query: &str| {
            let uri = format!("/{path}?{query}").parse().expect("an address");
            let Query(query) = Query::try_from_uri(&uri).expect("a query");
            read(&verb, path, query, b"").unwrap()
        };
        let (method, params) = asked(Method::POST, "tasks/7:cancel", "");
        assert_eq!((method, &params["id"]), (methods::CANCEL_TASK, &json!("7")));
        let (method, params) = asked(Method::GET, "tasks", "pageSize=3&contextId=a%20b");
        assert_eq!(method, methods::LIST_TASKS);
        assert_eq!(params, json!({"pageSize": 3, "contextId": "a b"}));
        assert!(read(&Method::PUT, "tasks/7", vec![], b"").is_err());
        assert!(read(&Method::POST, "message:send", vec![], b"[").is_err());
    }
}
