//! Group commit.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use stafette_store::{Options, SqliteStore, Store};

use super::witness::{hundred, shared};

// One thread, so that yielding once lets every task that was spawned put its batch into the queue.
#[tokio::test(flavor = "current_thread")]
async fn b_01_writers_that_wait_share_a_commit_and_a_conflict_harms_no_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    // The lock is given back as soon as this one thread gets to it.
    let options = Options { busy_timeout: Duration::from_secs(60), ..Options::default() };
    let store = Arc::new(SqliteStore::open(&path, options).expect("a store"));

    // Someone else holds the lock, so the writer gets no further than its first group.
    let other = Connection::open(&path).expect("a second connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let tasks = hundred(&store);
    tokio::task::yield_now().await;
    assert_eq!(store.stats().commits, 0);
    other.execute_batch("COMMIT").expect("the lock is released");
    shared(&*store, tasks).await;
}
