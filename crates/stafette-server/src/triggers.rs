//! Triggers: events that start runs automatically.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stafette_core::RunId;
use stafette_hooks::{Delivery, Fired, TriggerError, TriggerView, Triggers};

use crate::clock::now;
use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Body, Named, Within, header};
use crate::{Edge, Problem};

/// Maximum length of a delivery id, in bytes.
const LONGEST: usize = 255;

operations! {
    pub(crate) fn routes() in "triggers";
    GET "/v1/triggers" => list, Read, "listTriggers", "List the triggers with their next times";
    POST "/v1/triggers/{trigger}" => deliver, Public, "deliverWebhook",
        "Begin a run by a webhook, signed with its secret";
    POST "/v1/triggers/{trigger}/fire" => fire, Run, "fireTrigger",
        "Begin a run of a trigger by hand";
}

/// A trigger, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheTrigger {
    /// Name of the trigger.
    trigger: String,
}

/// Result of a trigger.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pulled {
    /// The started run; left out for a GitHub ping.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    /// True if an earlier delivery had already started it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repeated: bool,
}

fn triggers(edge: &Edge) -> Result<&Triggers, Problem> {
    edge.around.as_ref().map(|(triggers, _)| &**triggers).ok_or_else(unavailable)
}

pub(crate) fn unavailable() -> Problem {
    Problem::new(503, "unavailable", "This daemon has no triggers and tells no news")
}

async fn list(State(edge): State<Edge>) -> Result<Json<Vec<TriggerView>>, Problem> {
    Ok(Json(triggers(&edge)?.list(now())?))
}

async fn deliver(
    State(edge): State<Edge>,
    Named(TheTrigger { trigger }): Named<TheTrigger>,
    Within(within): Within,
    Signed { delivery, body }: Signed,
) -> Result<Json<Pulled>, Problem> {
    let delivery = Delivery { within, ..delivery };
    let fired = triggers(&edge)?.deliver(&trigger, &delivery, &body, now()).await?;
    let Fired { run, repeated } = fired;
    Ok(Json(Pulled { run, repeated }))
}

/// Request to fire a trigger by hand.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Fire {
    /// Payload, as a webhook would send it.
    payload: Value,
    /// Name of the person who fires it, for the record.
    by: String,
}

async fn fire(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheTrigger { trigger }): Named<TheTrigger>,
    Body(Fire { payload, by }): Body<Fire>,
) -> Result<Json<Pulled>, Problem> {
    let by = principal.signed(by);
    let run = triggers(&edge)?.fire(&trigger, by, &payload, now()).await?;
    Ok(Json(Pulled { run: Some(run), repeated: false }))
}

/// A webhook's raw body with its signature headers.
pub(crate) struct Signed {
    delivery: Delivery,
    body: Bytes,
}

impl<S: Send + Sync> FromRequest<S> for Signed {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let headers = request.headers().clone();
        let text = |name: &str| one(&headers, name);
        let signature = text("x-hub-signature-256")?.unwrap_or_default();
        let id = match text("x-github-delivery")? {
            Some(id) => Some(id),
            None => text("idempotency-key")?,
        };
        if id.as_ref().is_some_and(|id| id.is_empty() || id.len() > LONGEST) {
            let problem = Problem::new(422, "bad_key", "The delivery's name cannot be used");
            return Err(problem.because(format!("1 to {LONGEST} printable characters can")));
        }
        let is_ping = text("x-github-event")?.as_deref() == Some("ping");
        let body = Bytes::from_request(request, state).await?;
        let delivery = Delivery { signature, id, is_ping, ..Delivery::default() };
        Ok(Signed { delivery, body })
    }
}

/// Returns the value of a header that may occur only once.
fn one(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => Ok(Some(value.to_str().unwrap_or_default().trim().to_owned())),
        _ => Err(Problem::new(400, "header_twice", format!("The header `{name}` is there twice"))),
    }
}

impl OperationInput for Signed {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        Json::<Map<String, Value>>::operation_input(context, operation);
        let about = "`sha256=` and the HMAC of the body with the trigger's secret, in hex.";
        header::<String>(context, operation, "X-Hub-Signature-256", about);
        let about = "The sender's name for this delivery; the same again begins nothing.";
        header::<String>(context, operation, "X-GitHub-Delivery", about);
    }
}

impl From<TriggerError> for Problem {
    fn from(error: TriggerError) -> Self {
        let (status, code) = match error {
            TriggerError::Engine { source } => return source.into(),
            TriggerError::NoSuch { .. } => (404, "no_trigger"),
            TriggerError::Workflow { .. } => (409, "usage_workflow"),
            TriggerError::NoSecret { .. } => (503, "no_secret"),
            TriggerError::BadSignature => (401, "bad_signature"),
            TriggerError::Replayed { .. } => (409, "replayed"),
            TriggerError::NotJson { .. } => (400, "bad_json"),
            TriggerError::Request { .. } => (422, "bad_payload"),
            TriggerError::Times { .. } | TriggerError::Zone { .. } => (409, "bad_trigger"),
        };
        Problem::new(status, code, error.to_string())
    }
}
