//! Events as they happen, one JSON object a line.

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use stafette_core::RunId;
use stafette_engine::{Feed, Stored};

use crate::{Edge, Problem};

#[derive(Debug, Deserialize)]
pub(crate) struct From {
    /// Only what comes after this: a position, or within a run a sequence number.
    #[serde(default)]
    after: u64,
    /// Whether to stay for what comes.
    #[serde(default)]
    follow: bool,
}

/// The events of all runs after a position.
pub(crate) async fn all(
    State(edge): State<Edge>,
    Query(from): Query<From>,
) -> Result<Response, Problem> {
    let mut feed = edge.engine.feed(from.after);
    if from.follow {
        return Ok(lines(Live { feed, run: None, after_seq: 0, over: false }));
    }
    let head = edge.engine.store().head().await.unwrap_or(0);
    let mut text = String::new();
    let mut cursor = from.after;
    while cursor < head {
        let Ok(Some(page)) = feed.next().await else { break };
        cursor = page.last().map_or(head, |last| last.position);
        page.iter().for_each(|stored| push_line(&mut text, stored));
    }
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], text).into_response())
}

/// The events of one run after a sequence number.
pub(crate) async fn of_run(
    State(edge): State<Edge>,
    Path(run): Path<String>,
    Query(from): Query<From>,
) -> Result<Response, Problem> {
    let run = crate::runs::find(&edge, &run).await?;
    // Read the past first; what happens meanwhile has a later position than what was read.
    let (view, _) = edge.engine.view(run).await?;
    let past = edge.engine.events(run, from.after).await?;
    let mut text = String::new();
    past.iter().for_each(|stored| push_line(&mut text, stored));
    if !from.follow || view.is_over() {
        return Ok(([(CONTENT_TYPE, "application/x-ndjson")], text).into_response());
    }
    let after_seq = past.last().map_or(from.after, |last| last.entry.seq);
    let position = match past.last() {
        Some(last) => last.position,
        None => edge.engine.store().head().await.unwrap_or(0),
    };
    let over = past.iter().any(ends);
    let live = Live { feed: edge.engine.feed(position), run: Some(run), after_seq, over };
    let first = stream::iter([Ok::<_, std::io::Error>(text)]);
    let rest = stream::unfold(live, Live::next);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

fn lines(live: Live) -> Response {
    let body = Body::from_stream(stream::unfold(live, Live::next));
    ([(CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

struct Live {
    feed: Feed,
    run: Option<RunId>,
    after_seq: u64,
    /// The one run that is followed has ended: nothing more comes.
    over: bool,
}

impl Live {
    async fn next(mut self) -> Option<(Result<String, std::io::Error>, Self)> {
        if self.over {
            return None;
        }
        let page = self.feed.next().await.ok()??;
        let mut text = String::new();
        for stored in &page {
            let wanted = self.run.is_none_or(|run| stored.run == run);
            if wanted && (self.run.is_none() || stored.entry.seq > self.after_seq) {
                push_line(&mut text, stored);
                self.over = self.run.is_some() && ends(stored);
            }
        }
        Some((Ok(text), self))
    }
}

fn ends(stored: &Stored) -> bool {
    stored.entry.name == "run_finished"
}

fn push_line(text: &mut String, stored: &Stored) {
    let mut line = json!({
        "position": stored.position,
        "run": stored.run,
        "seq": stored.entry.seq,
        "at": stored.entry.at.rfc3339(),
    });
    if let (Some(fields), Ok(Value::Object(event))) =
        (line.as_object_mut(), serde_json::from_str(&stored.entry.body))
    {
        fields.extend(event);
    }
    text.push_str(&line.to_string());
    text.push('\n');
}
