//! Cases for retention, compaction and the integrity check.

use std::sync::Arc;

use stafette_model::Time;

use super::content::{Story, keep, run};
use crate::{Removed, Retention, RunFilter, Snapshot, Store};

/// Runs that ended before the given time are removed with all their data; the others stay.
pub async fn retention_removes_finished_runs_only(store: Arc<dyn Store>) {
    for n in 1..=4 {
        let mut story = Story::new(n);
        let mut batch = story.hand(1, "pending", n == 1);
        batch.snapshot = Some(story.snapshot());
        keep(&*store, batch).await;
        if n != 2 {
            keep(&*store, story.finish(10 * n as i64)).await;
        }
    }
    let rule = Retention { finished_before: Some(Time(40)), keep_last: 0 };
    let removed = store.retain(rule).await.expect("tidied");
    assert_eq!(removed, Removed { runs: 2, events: 4 });
    assert_eq!(listed(&*store).await, [4, 2]);
    for n in [1, 3] {
        assert_eq!(store.load(run(n)).await.expect("readable"), None);
        assert_eq!(store.handoffs(run(n)).await.expect("readable"), []);
        assert_eq!(store.entries(run(n), 0, 9).await.expect("readable"), []);
        assert_eq!(store.find_run(run(n).to_string()).await.expect("readable"), []);
    }
    assert_eq!(store.questions().await.expect("readable"), []);
    let feed = store.feed(0, 99).await.expect("readable");
    assert!(feed.iter().all(|stored| [run(2), run(4)].contains(&stored.run)));
    assert_eq!(feed.len(), 3);
    let health = store.check().await.expect("readable");
    assert_eq!((health.handoffs, health.snapshots), (2, 2));
    assert_eq!(store.retain(rule).await.expect("tidied"), Removed::default());

    let rule = Retention { finished_before: None, keep_last: 0 };
    assert_eq!(store.retain(rule).await.expect("tidied"), Removed { runs: 1, events: 2 });
    assert_eq!(store.unfinished().await.expect("readable"), [run(2)]);
}

/// The runs that ended last stay, regardless of their age.
pub async fn retention_keeps_the_last_ones(store: Arc<dyn Store>) {
    const RUNS: u64 = 40;
    for n in 1..=RUNS {
        keep(&*store, Story::new(n).finish(n as i64)).await;
    }
    let rule = Retention { finished_before: None, keep_last: RUNS as usize };
    assert_eq!(store.retain(rule).await.expect("tidied"), Removed::default());
    let rule = Retention { finished_before: Some(Time(6)), keep_last: 3 };
    assert_eq!(store.retain(rule).await.expect("tidied"), Removed { runs: 5, events: 5 });
    let rule = Retention { finished_before: Some(Time(1000)), keep_last: 3 };
    assert_eq!(store.retain(rule).await.expect("tidied"), Removed { runs: 32, events: 32 });
    assert_eq!(listed(&*store).await, [40, 39, 38]);
    let rule = Retention { finished_before: None, keep_last: usize::MAX };
    assert_eq!(store.retain(rule).await.expect("tidied"), Removed::default());
}

/// A reader whose cursor is at the end stays correct if the newest run is removed.
pub async fn positions_are_not_given_twice_after_retention(store: Arc<dyn Store>) {
    keep(&*store, Story::new(1).tell(&["run_created"])).await;
    let cursor = keep(&*store, Story::new(2).finish(5)).await;
    store.retain(Retention { finished_before: None, keep_last: 0 }).await.expect("tidied");
    assert_eq!(store.head().await.expect("readable"), cursor);
    let next = keep(&*store, Story::new(3).tell(&["run_created"])).await;
    assert!(next > cursor);
    let news = store.feed(cursor, 9).await.expect("readable");
    assert_eq!(news.iter().map(|stored| stored.run).collect::<Vec<_>>(), [run(3)]);
}

/// Only replaced snapshots are removed; everything else reads the same.
pub async fn compaction_keeps_the_content(store: Arc<dyn Store>) {
    let mut stories = [Story::new(1), Story::new(2), Story::new(3)];
    for round in 0..120 {
        for story in &mut stories {
            let mut batch = story.hand(round % 3, "pending", false);
            let body = format!("{round}").repeat(2000);
            batch.snapshot = Some(Snapshot { seq: story.row.seq, body });
            keep(&*store, batch).await;
        }
    }
    keep(&*store, stories[0].tell(&["turn_ordered"])).await;
    let content = async || {
        let mut all = Vec::new();
        for story in &stories {
            let loaded = store.load(story.run()).await.expect("readable");
            let handoffs = store.handoffs(story.run()).await.expect("readable");
            all.push((loaded, handoffs, store.run(story.run()).await.expect("readable")));
        }
        (all, store.feed(0, usize::MAX).await.expect("readable"))
    };
    let before = content().await;
    let done = store.compact().await.expect("tidied");
    assert_eq!(done.snapshots, 3 * 119);
    assert!(done.bytes_after < done.bytes_before, "{done:?}");
    assert!(content().await == before, "the content is the same");
    assert_eq!(store.compact().await.expect("tidied").snapshots, 0);
    assert!(store.check().await.expect("readable").is_sound());
    keep(&*store, stories[1].tell(&["turn_ordered"])).await;
}

/// The counts that `doctor` shows.
pub async fn a_check_up_counts_everything(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    keep(&*store, alice.hand(1, "pending", false)).await;
    let mut batch = alice.hand(2, "pending", false);
    batch.snapshot = Some(alice.snapshot());
    keep(&*store, batch).await;
    keep(&*store, Story::new(2).finish(9)).await;
    let health = store.check().await.expect("readable");
    assert!(health.is_sound(), "{:?}", health.problems);
    assert_eq!((health.runs, health.unfinished, health.events), (2, 1, 3));
    assert_eq!((health.handoffs, health.snapshots), (2, 1));
    assert!(health.bytes > 0);
}

async fn listed(store: &dyn Store) -> Vec<u64> {
    let rows =
        store.runs(RunFilter { limit: 999, ..RunFilter::default() }).await.expect("readable");
    rows.iter().map(|row| row.created_at.0.unsigned_abs()).collect()
}
