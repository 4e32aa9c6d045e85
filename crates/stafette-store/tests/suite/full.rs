//! No room.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use stafette_model::RunId;
use stafette_store::conformance::Story;
use stafette_store::{AppendError, Batch, Options, Retention, SqliteStore, Store};

fn open(path: &Path, max_bytes: u64) -> SqliteStore {
    let busy_timeout = Duration::from_secs(60);
    let options = Options { max_bytes: Some(max_bytes), busy_timeout, ..Options::default() };
    SqliteStore::open(path, options).expect("a store")
}

fn large(story: &mut Story) -> Batch {
    let mut batch = story.tell(&["turn_ordered", "turn_accepted"]);
    batch.entries[1].body = "x".repeat(10_000);
    batch
}

/// Writes until there is no room; answers with the batch that was refused.
async fn fill(store: &SqliteStore, story: &mut Story) -> Batch {
    for _ in 0..1000 {
        let batch = large(story);
        match store.append(batch.clone()).await {
            Ok(_) => {}
            Err(AppendError::Full { .. }) => return batch,
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("the store takes more than it may");
}

async fn last(store: &SqliteStore, run: RunId) -> u64 {
    let loaded = store.load(run).await.expect("readable").expect("the run is there");
    assert!(
        loaded.entries.iter().map(|stored| stored.entry.seq).eq(1..=loaded.entries.len() as u64)
    );
    let row = store.run(run).await.expect("readable").expect("the row is there");
    assert_eq!(row.seq, loaded.entries.len() as u64);
    row.seq
}

#[tokio::test]
async fn b_01_a_full_store_refuses_clearly_loses_nothing_and_goes_on_after_the_limit_is_raised() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path, 512 << 10);
    let mut alice = Story::new(1);
    let refused = fill(&store, &mut alice).await;
    assert!(refused.expected_seq > 20, "{}", refused.expected_seq);
    assert_eq!(last(&store, alice.run()).await, refused.expected_seq);
    let health = store.check().await.expect("readable");
    assert!(health.is_sound(), "{:?}", health.problems);
    store.close().await;
    assert!(std::fs::metadata(&path).expect("the file").len() <= 512 << 10);

    let store = open(&path, 1 << 20);
    assert_eq!(last(&store, alice.run()).await, refused.expected_seq);
    store.append(refused).await.expect("there is room now");
    assert_eq!(last(&store, alice.run()).await, alice.row.seq);
}

#[tokio::test]
async fn b_01_a_full_store_goes_on_by_itself_once_old_runs_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&folder.path().join("store.db"), 512 << 10);
    let (mut old, mut alice) = (Story::new(1), Story::new(2));
    for _ in 0..10 {
        store.append(large(&mut old)).await.expect("there is room");
    }
    store.append(old.finish(9)).await.expect("there is room");
    let refused = fill(&store, &mut alice).await;
    store.append(refused.clone()).await.expect_err("there is still no room");
    let removed = store.retain(Retention { finished_before: None, keep_last: 0 }).await;
    assert_eq!(removed.expect("tidied").runs, 1);
    store.append(refused).await.expect("there is room now");
    assert_eq!(last(&store, alice.run()).await, alice.row.seq);
}

#[tokio::test(flavor = "current_thread")]
async fn b_01_a_group_that_finds_no_room_is_refused_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Arc::new(open(&path, 512 << 10));
    let mut alice = Story::new(1);
    let refused = fill(&store, &mut alice).await;
    let before = store.head().await.expect("readable");

    let other = Connection::open(&path).expect("a second connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let tasks: Vec<_> = (2..30)
        .map(|n| {
            let store = store.clone();
            let batch = large(&mut Story::new(n));
            tokio::spawn(async move { store.append(batch).await })
        })
        .collect();
    tokio::task::yield_now().await;
    other.execute_batch("COMMIT").expect("the lock is released");
    let mut written = 0;
    for task in tasks {
        match task.await.expect("the writer ends") {
            Ok(_) => written += 2,
            Err(AppendError::Full { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    // The writer may have gone to the lock with the first batch alone, and that one may fit.
    assert!(written <= 2, "{written}");
    assert_eq!(store.head().await.expect("readable"), before + written);
    assert_eq!(last(&store, alice.run()).await, refused.expected_seq);
}
