//! Metrics, alerts, search and reports, computed from the events.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::change::Change;
use stafette_core::{HandoffId, RunId};
use stafette_telemetry::Observer;
use stafette_telemetry::alerts::{Alert, Change as Turned};
use stafette_telemetry::export::Sent;
use stafette_telemetry::metrics::{Live, StoreTimes};
use stafette_telemetry::report;
use stafette_telemetry::search::Search;

use crate::answer::{Form, Raw};
use crate::openapi::operations;
use crate::request::{Asked, Named};
use crate::runs::{TheRun, find as find_run};
use crate::{Edge, Problem};

/// Sources of metrics, alerts and search results.
#[derive(Clone)]
pub struct Observed {
    /// Observer that counts the events.
    pub observer: Observer,
    /// Number of spans that were exported.
    pub sent: Arc<Sent>,
    /// Returns the counters of the store's writer.
    pub store: Arc<dyn Fn() -> StoreTimes + Send + Sync>,
    /// Full-text search; `None` without an index.
    pub search: Option<Search>,
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").finish_non_exhaustive()
    }
}

operations! {
    pub(crate) fn routes() in "telemetry";
    GET "/metrics" => metrics, Read, "metrics", "The page for Prometheus";
    GET "/v1/alerts" => alerts, Read, "listAlerts", "The alerts, and what began and stopped lately";
    GET "/v1/find" => find, Read, "find", "Find words in events, handoffs and transcripts";
    GET "/v1/runs/{run}/report" => tell, Read, "reportRun",
        "A run on one page that needs nothing else";
}

impl Edge {
    /// Returns the sources, after the observer has counted everything stored so far.
    async fn observed(&self) -> Result<&Observed, Problem> {
        let nobody = || Problem::new(404, "not_observed", "Nothing is counted here");
        let observed = self.observed.as_ref().ok_or_else(nobody)?;
        let head = self.engine.store().head().await;
        let head = head.map_err(stafette_engine::EngineError::from)?;
        observed.observer.reached(head).await;
        Ok(observed)
    }
}

/// Text format of Prometheus.
#[derive(Debug)]
pub(crate) struct Exposition;

impl Form for Exposition {
    const MEANS: (u16, &'static str) = (200, "Metrics in the text format of Prometheus.");
    const TYPES: &'static [&'static str] = &["text/plain"];
}

async fn metrics(State(edge): State<Edge>) -> Result<Raw<Exposition>, Problem> {
    let observed = edge.observed().await?;
    let locks = edge.engine.locks().now();
    let (spans_sent, spans_dropped) = observed.sent.counts();
    let page = observed.observer.page(Live {
        locks_held: locks.held.len(),
        locks_waiting: locks.waiting.len(),
        store: Some((observed.store)()),
        spans_sent,
        spans_dropped,
        position: 0,
    });
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response().into())
}

/// State of all alerts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AlertList {
    /// All four alerts, firing or not.
    alerts: Vec<Alert>,
    /// Recent starts and ends of alerts, the oldest first.
    changes: Vec<Turned>,
}

async fn alerts(State(edge): State<Edge>) -> Result<Json<AlertList>, Problem> {
    let observer = &edge.observed().await?.observer;
    Ok(Json(AlertList { alerts: observer.alerts(), changes: observer.changes() }))
}

/// Query of a full-text search.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Words that must all occur; the last one may be a prefix.
    q: String,
    /// Maximum number of hits.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 200))]
    limit: usize,
}

fn twenty() -> usize {
    20
}

/// A hit of a full-text search.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Hit {
    /// Run of the hit.
    run: RunId,
    /// Handoff that the text belongs to, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff: Option<HandoffId>,
    /// Event that contains the text, or that ended the turn in which it was shown.
    seq: u64,
    /// Time of the text (RFC 3339).
    at: String,
    /// Kind of text: the event's name, or `transcript`.
    kind: String,
    /// Author of the text.
    who: String,
    /// Excerpt with the matches in brackets.
    text: String,
}

async fn find(
    State(edge): State<Edge>,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<Vec<Hit>>, Problem> {
    let observed = edge.observed().await?;
    let none = || Problem::new(404, "no_index", "There is no index to search");
    let search = observed.search.as_ref().ok_or_else(none)?;
    let head = edge.engine.store().head().await.map_err(stafette_engine::EngineError::from)?;
    search.reached(head).await;
    let broken = |error: stafette_store::FindError| {
        Problem::new(500, "no_index", "The index cannot be searched").because(error.to_string())
    };
    let found = search.find(wanted.q, wanted.limit.clamp(1, 200)).await.map_err(broken)?;
    let mut hits = Vec::new();
    for text in found {
        let there = edge.engine.store().run(text.run).await;
        if there.map_err(stafette_engine::EngineError::from)?.is_none() {
            // The run was removed by retention.
            search.forget(text.run);
            continue;
        }
        // A sealed text is found only once it is open.
        if text.handoff.is_some() && edge.engine.log().is_sealed(text.run).await? {
            continue;
        }
        hits.push(Hit {
            run: text.run,
            handoff: text.handoff,
            seq: text.seq,
            at: text.at.rfc3339(),
            kind: text.kind,
            who: text.who,
            text: text.body,
        });
    }
    Ok(Json(hits))
}

/// Report as an HTML page.
#[derive(Debug)]
pub(crate) struct Html;

impl Form for Html {
    const MEANS: (u16, &'static str) = (200, "A page without scripts, to be kept or mailed.");
    const TYPES: &'static [&'static str] = &["text/html"];
}

async fn tell(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
) -> Result<Raw<Html>, Problem> {
    let run = find_run(&edge, &run).await?;
    let events = edge.engine.log().events(run, 0).await?;
    let sets = sets(&edge, run).await?;
    let diff = match sets.is_empty() {
        true => edge.engine.explain().diff(run).await,
        false => None,
    };
    let page = report::page(run, &events, diff.as_deref(), &sets);
    let mut answer = ([(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response();
    // Sent as a download: as a page of this server, its style would be blocked by the policy.
    let name = format!("attachment; filename=\"run-{}.html\"", run.short());
    if let Ok(name) = HeaderValue::from_str(&name) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(answer.into())
}

/// Returns the changes that were proposed in a run.
async fn sets(edge: &Edge, run: RunId) -> Result<Vec<report::Set>, Problem> {
    let look = async move |changes: stafette_engine::Changes| {
        let mut all = changes.list()?;
        all.retain(|change| change.is_of(run));
        let set = |change: Change| {
            let diff = changes.diff(&change)?;
            Ok(report::Set { change, diff })
        };
        all.into_iter().map(set).collect()
    };
    Ok(edge.engine.changes().with(look).await?)
}
