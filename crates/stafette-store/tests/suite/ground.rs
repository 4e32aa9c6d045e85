//! A store that is taken away, or replaced by another, acknowledges nothing more.

use std::fs;
use std::path::Path;

use stafette_model::Time;
use stafette_store::conformance::Story;
use stafette_store::{
    AppendError, LockBatch, LockEntry, LockError, Options, PostgresStore, ReadError, SqliteStore,
    Store,
};
use stafette_testkit::postgres::Shared;

use super::postgres::{name, other, patient};

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Options::default()).expect("a store")
}

fn files(path: &Path) -> [std::path::PathBuf; 3] {
    ["db", "db-wal", "db-shm"].map(|ending| path.with_extension(ending))
}

/// One lock is taken.
fn taken() -> LockBatch {
    let (name, body) = ("taken".to_owned(), "{}".to_owned());
    let entries = vec![LockEntry { seq: 1, at: Time(1), name, body }];
    LockBatch { expected_version: 0, entries, fence: 1, put: Vec::new(), remove: Vec::new() }
}

/// Nothing is acknowledged any more, neither runs nor locks, and nothing is read.
async fn is_lost(store: &dyn Store, story: &mut Story, how: &str) {
    let refused = store.append(story.tell(&["turn_ordered"])).await.expect_err("it is lost");
    assert!(matches!(&refused, AppendError::Lost { why } if why.contains(how)), "{refused:?}");
    let refused = store.write_locks(taken()).await.expect_err("it is lost");
    let why =
        |it: &LockError| matches!(it, LockError::NotWritten { source: AppendError::Lost { .. } });
    assert!(why(&refused), "{refused:?}");
    let refused = store.load(story.run()).await.expect_err("it is lost");
    assert!(matches!(&refused, ReadError::Lost { .. }), "{refused:?}");
    assert!(store.lost().is_some_and(|why| why.contains(how)), "{:?}", store.lost());
}

#[tokio::test]
async fn b_01_a_file_that_is_removed_takes_nothing_more() {
    for gone in [&[0, 1, 2][..], &[0], &[1], &[2]] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let store = open(&path);
        let mut alice = Story::new(1);
        store.append(alice.tell(&["run_created"])).await.expect("appended");
        assert_eq!(store.lost(), None);
        for index in gone {
            fs::remove_file(&files(&path)[*index]).expect("removed");
        }
        is_lost(&store, &mut alice, "was removed while it was in use").await;
    }
}

#[tokio::test]
async fn b_01_another_store_in_its_place_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state/store.db");
    fs::create_dir(folder.path().join("state")).expect("a folder");
    let store = open(&path);
    let mut alice = Story::new(1);
    store.append(alice.tell(&["run_created"])).await.expect("appended");
    fs::rename(folder.path().join("state"), folder.path().join("moved")).expect("moved");
    fs::create_dir(folder.path().join("state")).expect("a folder");
    let other = open(&path);
    let mut bob = Story::new(2);
    other.append(bob.tell(&["run_created"])).await.expect("appended");

    is_lost(&store, &mut alice, "was replaced while it was in use").await;
    store.close().await;
    other.append(bob.tell(&["turn_ordered"])).await.expect("the other one is as it was");
    drop(other);
    let other = open(&path);
    let loaded = other.load(bob.run()).await.expect("readable").expect("the run");
    assert_eq!(loaded.entries.len(), 2);
    assert_eq!(other.load(alice.run()).await.expect("readable"), None);
}

#[tokio::test]
async fn b_01_tables_that_are_dropped_or_replaced_take_nothing_more() {
    let server = Shared::get().expect("a server");
    let url = server.fresh();
    let store = PostgresStore::open(&url, patient()).await.expect("a store");
    let mut alice = Story::new(1);
    store.append(alice.tell(&["run_created"])).await.expect("appended");
    let client = other(&url).await;
    let drop_all = format!("DROP SCHEMA {} CASCADE", name(&url));
    client.batch_execute(&drop_all).await.expect("dropped");
    let refused = store.append(alice.tell(&["turn_ordered"])).await.expect_err("it is lost");
    assert!(matches!(&refused, AppendError::Lost { .. }), "{refused:?}");
    assert!(store.lost().is_some_and(|why| why.contains("removed")), "{:?}", store.lost());

    // Another one in its place would take new runs: they would be strangers there.
    let url = server.fresh();
    let store = PostgresStore::open(&url, patient()).await.expect("a store");
    store.append(Story::new(1).tell(&["run_created"])).await.expect("appended");
    client.batch_execute(&format!("DROP SCHEMA {} CASCADE", name(&url))).await.expect("dropped");
    let new = PostgresStore::open(&url, patient()).await.expect("another store");
    let refused = store.append(Story::new(2).tell(&["run_created"])).await.expect_err("lost");
    assert!(matches!(&refused, AppendError::Lost { .. }), "{refused:?}");
    assert!(store.lost().is_some_and(|why| why.contains("replaced")), "{:?}", store.lost());
    assert_eq!(new.head().await.expect("readable"), 0);
}
