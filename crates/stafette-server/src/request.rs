//! Extractors for requests; every error in a request becomes a problem document.

use std::convert::Infallible;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{
    HeaderStyle, Operation, Parameter, ParameterData, ParameterSchemaOrContent, SchemaObject,
};
use aide::operation::add_parameters;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use stafette_core::trace::Traceparent;

use crate::Problem;

/// JSON body of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<T>(pub(crate) T);

/// Query parameters of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

/// Parameters in the path of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        // Whoever gives a key relies on it.
        if request.headers().contains_key(KEY) {
            let problem = Problem::new(422, "bad_key", "This operation takes no idempotency key");
            return Err(problem
                .because("only `POST /v1/runs` and the webhooks of triggers know a request again by its key")
                .fix("look whether the first request was carried out before it is sent again"));
        }
        let bytes = Bytes::from_request(request, state).await?;
        let Json(body) = Json::<T>::from_bytes(&bytes)?;
        // Serde would also accept an array of the fields, which the API does not describe.
        match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => Ok(Body(body)),
            _ => Err(Problem::new(422, "bad_body", "The request's body is not a JSON object")),
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(asked) = Query::<T>::from_request_parts(parts, state).await?;
        Ok(Asked(asked))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(named) = Path::<T>::from_request_parts(parts, state).await?;
        Ok(Named(named))
    }
}

impl<T: JsonSchema> OperationInput for Body<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        Json::<T>::operation_input(context, operation);
    }
}

impl<T: JsonSchema> OperationInput for Asked<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        Query::<T>::operation_input(context, operation);
    }
}

impl<T: JsonSchema> OperationInput for Named<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        Path::<T>::operation_input(context, operation);
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let (status, code) = match &rejection {
            JsonRejection::JsonSyntaxError(_) => (400, "bad_json"),
            JsonRejection::JsonDataError(_) => (422, "bad_body"),
            _ => (400, "bad_body"),
        };
        Problem::new(status, code, "The request's body is not what is expected here")
            .because(rejection.body_text())
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        match rejection.status() == 413 {
            true => crate::guard::too_long(None),
            false => Problem::new(400, "bad_body", "The request's body cannot be read")
                .because(rejection.body_text()),
        }
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Problem::new(422, "bad_query", "The part of the address after `?` cannot be understood")
            .because(rejection.body_text())
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Problem::new(404, "bad_path", "There is nothing at this address")
            .because(rejection.body_text())
    }
}

/// Checks that a number is in a range.
pub(crate) fn within<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, Problem> {
    if range.contains(&value) {
        return Ok(value);
    }
    let title = format!("`{name}` is {value}");
    let why = format!("it may be {} to {}", range.start(), range.end());
    Err(Problem::new(422, "bad_query", title).because(why))
}

/// Name of the header with an idempotency key.
const KEY: &str = "idempotency-key";

/// Maximum length of an idempotency key, in bytes.
const LONGEST_KEY: usize = 255;

/// The header `Idempotency-Key`: a repeated key means the same request.
#[derive(Clone, Debug)]
pub(crate) struct Key(pub(crate) Option<String>);

impl<S: Sync> FromRequestParts<S> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // Taken out, because `Body` refuses a key that nobody reads.
        let Some(value) = parts.headers.remove(KEY) else { return Ok(Key(None)) };
        let text = value.to_str().unwrap_or_default().trim();
        if text.is_empty() || text.len() > LONGEST_KEY {
            let problem = Problem::new(422, "bad_key", "The idempotency key cannot be used");
            return Err(problem.because(format!("1 to {LONGEST_KEY} printable characters can")));
        }
        Ok(Key(Some(text.to_owned())))
    }
}

/// Schema of a key.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes")]
struct KeyText(#[schemars(length(min = 1, max = 255), regex(pattern = r"^[!-~]+$"))] String);

impl OperationInput for Key {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let about = "The same key again is the same request: nothing is begun twice.";
        header::<KeyText>(context, operation, "Idempotency-Key", about);
    }
}

/// The header `Last-Event-ID`: the last event that a browser received before it lost the
/// connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastEvent(pub(crate) Option<u64>);

impl<S: Sync> FromRequestParts<S> for LastEvent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get("last-event-id") else { return Ok(LastEvent(None)) };
        match value.to_str().ok().and_then(|text| text.trim().parse().ok()) {
            Some(number) => Ok(LastEvent(Some(number))),
            None => Err(Problem::new(422, "bad_cursor", "`Last-Event-ID` is not a number")),
        }
    }
}

impl OperationInput for LastEvent {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let about = "The number of the last event that was heard; counts more than `after`.";
        header::<u64>(context, operation, "Last-Event-ID", about);
    }
}

/// The header `traceparent`: the span of the caller that this request belongs to. An invalid value
/// is ignored, as the specification requires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within(pub(crate) Option<Traceparent>);

impl<S: Sync> FromRequestParts<S> for Within {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let mut all = parts.headers.get_all("traceparent").iter();
        let only = all.next().filter(|_| all.next().is_none());
        Ok(Within(only.and_then(|value| value.to_str().ok()?.trim().parse().ok())))
    }
}

impl OperationInput for Within {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let about = "The caller's span (W3C Trace Context), which this becomes a part of.";
        header::<String>(context, operation, "traceparent", about);
    }
}

pub(crate) fn header<T: JsonSchema>(
    context: &mut GenContext,
    operation: &mut Operation,
    name: &str,
    about: &str,
) {
    let schema = context.schema.subschema_for::<T>();
    let parameter_data = ParameterData {
        name: name.to_owned(),
        description: Some(about.to_owned()),
        required: false,
        deprecated: None,
        format: ParameterSchemaOrContent::Schema(SchemaObject {
            json_schema: schema,
            example: None,
            external_docs: None,
        }),
        example: None,
        examples: Default::default(),
        explode: None,
        extensions: Default::default(),
    };
    let style = HeaderStyle::Simple;
    add_parameters(context, operation, [Parameter::Header { parameter_data, style }]);
}
