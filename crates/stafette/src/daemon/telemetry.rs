//! The followers of events beside the runs: metrics, alerts, the event log, traces.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stafette_engine::Engine;
use stafette_hooks::{Alarms, Alert};
use stafette_server::Observed;
use stafette_store::{COMMIT_BOUNDS, Stats};
use stafette_telemetry::Observer;
use stafette_telemetry::alerts::Change;
use stafette_telemetry::export::Exporter;
use stafette_telemetry::journal::Journal;
use stafette_telemetry::metrics::StoreTimes;
use stafette_telemetry::rotation::Rotation;
use stafette_telemetry::search::Search;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::exit::Failure;
use crate::store::{self, Opened};

/// The time limit for sending the last spans.
const END: Duration = Duration::from_secs(3);

/// The followers that have something to finish.
#[derive(Debug)]
pub(super) struct Watch {
    observer: Observer,
    exporter: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Watch {
    /// The alerts that fire, for notifications.
    pub(super) fn alarms(&self) -> Alarms {
        let observer = self.observer.clone();
        let alert = |change: Change| Alert {
            name: change.condition.name().to_owned(),
            at: change.at,
            firing: change.firing,
            title: change.sentence(),
            text: change.condition.action().to_owned(),
        };
        let look = move || observer.standing().into_iter().map(alert).collect();
        Alarms { rung: self.observer.rung(), look: Arc::new(look) }
    }

    /// Stores the present state, and sends the rest.
    pub(super) async fn end(self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(END, self.exporter).await.is_err() {
            tracing::warn!("the last traces are sent when the daemon starts again");
        }
        self.observer.keep();
    }
}

/// Starts the followers. None of them can hold up a run.
pub(super) async fn observe(
    engine: &Engine,
    opened: Opened,
    state: &Path,
) -> Result<(Observed, Watch), Failure> {
    let head = engine.store().head().await.map_err(|error| store::unreadable(&error))?;
    let observer = Observer::open(state, head);
    let feed = engine.feed(observer.position());
    tokio::spawn(observer.clone().follow(feed, journal(state, head)));
    let exporter = Exporter::open(state, head);
    let sent = exporter.sent();
    let feed = engine.feed(exporter.position());
    let (stop, stopped) = watch::channel(false);
    let exporter = tokio::spawn(exporter.follow(feed, stopped));
    let watch = Watch { observer: observer.clone(), exporter, stop };
    let store = opened.store.clone();
    let search = search(engine, opened, state, head).await;
    let store = Arc::new(move || times(store.stats()));
    Ok((Observed { observer, sent, store, search }, watch))
}

async fn search(engine: &Engine, opened: Opened, state: &Path, head: u64) -> Option<Search> {
    let search = async { Search::open(opened.finder(state, head)?).await };
    match search.await {
        Ok(search) => {
            let feed = engine.feed(search.position());
            tokio::spawn(search.clone().follow(feed, engine.clone()));
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
