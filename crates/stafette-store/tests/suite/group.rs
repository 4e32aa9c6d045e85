//! Group commit.

use std::sync::Arc;

use rusqlite::Connection;
use stafette_store::conformance::Story;
use stafette_store::{AppendError, Options, SqliteStore, Store};

// One thread, so that yielding once lets every task that was spawned put its batch into the queue.
#[tokio::test(flavor = "current_thread")]
async fn b_01_writers_that_wait_share_a_commit_and_a_conflict_harms_no_one() {
    const WRITERS: u64 = 100;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Arc::new(SqliteStore::open(&path, Options::default()).expect("a store"));

    // Someone else holds the lock, so the writer gets no further than its first group.
    let other = Connection::open(&path).expect("a second connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let tasks: Vec<_> = (0..WRITERS)
        .map(|n| {
            let store = store.clone();
            // The last ten begin runs that the first ten begin as well.
            let batch = Story::new(n % 90).tell(&["run_created", "turn_ordered"]);
            tokio::spawn(async move { store.append(batch).await })
        })
        .collect();
    tokio::task::yield_now().await;
    assert_eq!(store.stats().commits, 0);
    other.execute_batch("COMMIT").expect("the lock is released");

    let mut conflicts = 0;
    for task in tasks {
        match task.await.expect("the writer ends") {
            Ok(_) => {}
            Err(AppendError::Conflict { expected: 0, found: 2, .. }) => conflicts += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(conflicts, 10);
    let stats = store.stats();
    assert_eq!(stats.batches, 90);
    assert!(stats.commits <= 2, "{stats:?}");
    assert!(stats.largest_group >= 45, "{stats:?}");
    assert_eq!(store.head().await.expect("readable"), 180);
}
