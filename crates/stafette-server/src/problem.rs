//! What went wrong, in the form of RFC 9457.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use stafette_engine::EngineError;

use crate::locks;

/// Something went wrong: what, why, and under which stable code.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// A stable word for programs.
    pub code: String,
    /// What happened.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Why, and what to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl Problem {
    /// A problem without detail.
    #[must_use]
    pub fn new(status: u16, code: &str, title: impl Into<String>) -> Self {
        Problem { code: code.to_owned(), title: title.into(), status, detail: String::new() }
    }

    /// The same with its reason.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> Self {
        Problem { detail: detail.into(), ..self }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let (status, code) = match &error {
            EngineError::NoRun { .. } => (404, "no_run"),
            EngineError::NoHandoff { .. } => (404, "no_handoff"),
            EngineError::Ambiguous { .. } => (409, "ambiguous"),
            EngineError::Over { .. } => (409, "run_over"),
            EngineError::Store { .. } => (507, "not_stored"),
            EngineError::Read { .. } | EngineError::Restore { .. } => (500, "not_readable"),
            EngineError::NotYours => (403, "not_yours"),
            EngineError::Taken { .. } => (409, "taken"),
            EngineError::Late { .. } => (409, "late"),
            EngineError::NothingOut { .. } => (404, "no_turn"),
            EngineError::StartedHere { .. } => (409, "started_here"),
            EngineError::NoTurn { .. } => (409, "no_turn"),
            EngineError::Mistaken { .. } => (422, "mistaken"),
            EngineError::Refused { .. } => (409, "refused"),
            EngineError::Lock { refusal } => locks::refused(refusal),
            EngineError::MayNotWrite { conflict } => locks::in_the_way(conflict),
            EngineError::LockStore { .. } => (507, "not_stored"),
            EngineError::Stopping => (503, "stopping"),
        };
        let causes = causes(&error);
        Problem::new(status, code, error.to_string()).because(causes)
    }
}

/// The chain of reasons behind an error.
fn causes(error: &dyn std::error::Error) -> String {
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
        let mut response = (status, Json(self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}
