//! The book of locks in a file: by two daemons, over restarts, in a file of an older version.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use stafette_model::Time;
use stafette_store::{LockBatch, LockEntry, LockError, LockRow, Options, SqliteStore, Store};

fn open(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, Options::default()).expect("a store"))
}

fn take(version: u64, fence: u64) -> LockBatch {
    let body = "{}".to_owned();
    LockBatch {
        expected_version: version,
        entries: vec![LockEntry {
            seq: version + 1,
            at: Time(0),
            name: "lock_taken".to_owned(),
            body: body.clone(),
        }],
        fence,
        put: vec![LockRow { id: fence, held: true, body }],
        remove: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_04_two_daemons_on_one_file_never_give_a_fencing_number_twice() {
    const EACH: usize = 25;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let tasks: Vec<_> = [open(&path), open(&path)]
        .into_iter()
        .map(|store| {
            tokio::spawn(async move {
                let mut given = Vec::new();
                while given.len() < EACH {
                    let book = store.locks().await.expect("readable");
                    match store.write_locks(take(book.version, book.fence + 1)).await {
                        Ok(_) => given.push(book.fence + 1),
                        Err(LockError::Conflict { .. }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
                given
            })
        })
        .collect();
    let mut given = Vec::new();
    for task in tasks {
        given.extend(task.await.expect("the daemon ends"));
    }
    given.sort_unstable();
    assert_eq!(given, (1..=2 * EACH as u64).collect::<Vec<_>>());
    let book = open(&path).locks().await.expect("readable");
    assert_eq!((book.fence, book.rows.len()), (2 * EACH as u64, 2 * EACH));
}

#[tokio::test]
async fn s5_04_the_fencing_number_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    for fence in 1..=3 {
        let store = open(&path);
        let book = store.locks().await.expect("readable");
        assert_eq!(book.fence, fence - 1);
        store.write_locks(take(book.version, fence)).await.expect("written");
        // Once closed in order, once not.
        if fence == 2 {
            store.close().await;
        }
    }
}

#[tokio::test]
async fn s5_04_a_store_from_before_there_were_locks_gets_an_empty_book() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    open(&path).close().await;
    let old = Connection::open(&path).expect("a connection");
    let sums = ["events", "runs", "handoffs", "snapshots"]
        .map(|table| format!("ALTER TABLE {table} DROP COLUMN sum;"))
        .concat();
    let tables = "DROP TABLE lock_book; DROP TABLE locks; DROP TABLE lock_entries; \
                  DROP INDEX runs_by_short;";
    old.execute_batch(&format!("{sums}{tables}"))
        .and_then(|()| old.pragma_update(None, "user_version", 1))
        .expect("as it was");
    drop(old);
    let store = open(&path);
    assert_eq!(store.locks().await.expect("readable").version, 0);
    store.write_locks(take(0, 1)).await.expect("written");
}
