//! Errors in the form of RFC 9457.

mod fixes;

use std::time::Duration;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{
    MediaType, Operation, Response as Described, SchemaObject, StatusCode as Status,
};
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_engine::EngineError;
use stafette_store::ReadError;

/// A problem document: a title, a reason, and a stable code.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The code as a URN, for clients that identify problems by type.
    #[serde(default)]
    pub r#type: String,
    /// Stable code for programs.
    pub code: String,
    /// Short description of the error.
    pub title: String,
    /// HTTP status code, the same as in the response.
    pub status: u16,
    /// Cause of the error; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Suggested next step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// Response in the dialect of the request, if the request used one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<Value>>,
    #[serde(skip)]
    hint: Option<Box<Hint>>,
}

/// An additional response header.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Hint {
    /// Time to wait before trying again.
    RetryAfter(Duration),
    /// Methods that the path supports.
    Allow(&'static str),
}

impl Problem {
    /// Creates a problem without detail, and with the usual next step for its code.
    #[must_use]
    pub fn new(status: u16, code: &str, title: impl Into<String>) -> Self {
        Problem {
            r#type: format!("urn:stafette:problem:{code}"),
            code: code.to_owned(),
            title: title.into(),
            status,
            detail: String::new(),
            fix: fixes::usual(code).to_owned(),
            answer: None,
            hint: None,
        }
    }

    /// Adds the cause as `detail`.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> Self {
        Problem { detail: detail.into(), ..self }
    }

    /// Sets a better next step than the usual one, if there is one.
    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Self {
        match fix.into() {
            fix if fix.is_empty() => self,
            fix => Problem { fix, ..self },
        }
    }

    /// Adds a response in the dialect of the request.
    #[must_use]
    pub fn with_answer(self, answer: Value) -> Self {
        Problem { answer: Some(Box::new(answer)), ..self }
    }

    /// Adds the supported methods.
    #[must_use]
    pub(crate) fn allowing(self, methods: &'static str) -> Self {
        Problem { hint: Some(Box::new(Hint::Allow(methods))), ..self }
    }

    /// Adds the time to wait before trying again.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Problem { hint: Some(Box::new(Hint::RetryAfter(wait))), ..self }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let error = match error {
            EngineError::Change { source } => return source.into(),
            EngineError::Renewal { source } => return source.into(),
            error => error,
        };
        let (status, code) = error.code();
        let problem = Problem::new(status, code, error.to_string());
        match &error {
            EngineError::NobodyHears { change, .. } => problem.fix(format!(
                "start a run that makes the change again, and `stafette changes reject {change}`"
            )),
            EngineError::NoEvent { last, .. } => {
                problem.because(format!("its events are numbered from 1 to {last}"))
            }
            EngineError::Damaged { .. }
            | EngineError::Read { source: ReadError::Damaged { .. } } => {
                problem.because(causes(&error)).fix(
                    "restore the store from a backup; `stafette doctor` names everything that is \
                     damaged, and other runs are not affected",
                )
            }
            error => problem.because(causes(error)),
        }
    }
}

/// Returns the chain of causes of an error, as text.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut said = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        said.push(cause.to_string());
        next = cause.source();
    }
    said.join(": ")
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let hint = self.hint.clone();
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        match hint.as_deref() {
            Some(Hint::Allow(methods)) => {
                headers.insert(ALLOW, HeaderValue::from_static(methods));
            }
            Some(Hint::RetryAfter(wait)) => {
                let seconds = u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            None => {}
        }
        response
    }
}

impl OperationOutput for Problem {
    type Inner = Problem;

    fn operation_response(context: &mut GenContext, _: &mut Operation) -> Option<Described> {
        let schema = context.schema.subschema_for::<Problem>();
        let media = MediaType {
            schema: Some(SchemaObject { json_schema: schema, example: None, external_docs: None }),
            ..MediaType::default()
        };
        Some(Described {
            description: "What went wrong; `code` tells which.".to_owned(),
            content: [("application/problem+json".to_owned(), media)].into_iter().collect(),
            ..Described::default()
        })
    }

    /// The guard can refuse any operation, so that problems are described once for all.
    fn inferred_responses(
        context: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<Status>, Described)> {
        Self::operation_response(context, operation)
            .map(|answer| (None, answer))
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use stafette_core::RunId;
    use stafette_mcp::ToolError;
    use stafette_stages::StageError;

    use super::*;

    #[test]
    fn b_22_http_and_mcp_report_the_same_code() {
        let run = RunId(uuid::Uuid::nil());
        let errors = || {
            vec![
                EngineError::NothingOut { run },
                EngineError::Blocked { why: "no".to_owned() },
                EngineError::GoesOn { run },
                EngineError::Change { source: stafette_engine::ChangeError::Busy },
                EngineError::Stopping,
            ]
        };
        let http = errors().into_iter().map(|error| Problem::from(error).code);
        let mcp = errors().into_iter().map(|error| ToolError::from(error).code);
        let staged =
            errors().into_iter().map(|source| ToolError::from(StageError::Engine { source }).code);
        let http: Vec<_> = http.collect();
        assert_eq!(http, mcp.collect::<Vec<_>>());
        assert_eq!(http, staged.collect::<Vec<_>>());
        assert_eq!(http[0], "no_turn");
    }
}
