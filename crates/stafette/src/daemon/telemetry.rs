//! What follows the events beside the runs: metrics, alerts, the event log, traces.

use std::path::Path;
use std::sync::Arc;

use stafette_core::AgentName;
use stafette_engine::Engine;
use stafette_server::Observed;
use stafette_store::{COMMIT_BOUNDS, SqliteStore, Stats};
use stafette_telemetry::Observer;
use stafette_telemetry::export::Exporter;
use stafette_telemetry::journal::{Journal, Rotation};
use stafette_telemetry::metrics::StoreTimes;
use stafette_telemetry::search::Search;

use crate::exit::Failure;

/// Begins to follow. None of it can hold up a run.
pub(super) async fn observe(
    engine: &Engine,
    store: Arc<SqliteStore>,
    state: &Path,
) -> Result<Observed, Failure> {
    let head = engine
        .store()
        .head()
        .await
        .map_err(|error| Failure::failed("The events cannot be counted").because(&error))?;
    let observer = Observer::open(state, head);
    let feed = engine.feed(observer.position());
    tokio::spawn(observer.clone().follow(feed, journal(state, head)));
    let exporter = Exporter::open(state, head);
    let sent = exporter.sent();
    let feed = engine.feed(exporter.position());
    tokio::spawn(exporter.follow(feed));
    let search = search(engine, state, head);
    Ok(Observed { observer, sent, store: Arc::new(move || times(store.stats())), search })
}

fn search(engine: &Engine, state: &Path, head: u64) -> Option<Search> {
    match Search::open(state, head) {
        Ok(search) => {
            let (feed, recordings) = (engine.feed(search.position()), engine.clone());
            let recordings = move |run, agent: &AgentName| recordings.recording(run, agent);
            tokio::spawn(search.clone().follow(feed, Arc::new(recordings)));
            Some(search)
        }
        Err(error) => {
            tracing::warn!(%error, "nothing can be found");
            None
        }
    }
}

fn journal(state: &Path, head: u64) -> Option<Journal> {
    match Journal::open(&state.join("logs/events.jsonl"), Rotation::default()) {
        Ok(mut journal) => {
            if journal.last() > head {
                journal.begin_again();
            }
            Some(journal)
        }
        Err(error) => {
            tracing::warn!(%error, "the event log cannot be written");
            None
        }
    }
}

fn times(stats: Stats) -> StoreTimes {
    let mut so_far = 0;
    let cumulative = COMMIT_BOUNDS.into_iter().zip(stats.took).map(|(bound, count)| {
        so_far += count;
        (bound, so_far)
    });
    StoreTimes {
        cumulative: cumulative.filter(|(bound, _)| *bound < u64::MAX).collect(),
        commits: stats.commits,
        micros: stats.micros,
        batches: stats.batches,
    }
}
