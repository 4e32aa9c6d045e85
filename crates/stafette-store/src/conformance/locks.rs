//! Cases for the lock table.

use std::sync::Arc;

use stafette_model::Time;

use crate::{LOCK_ENTRIES, LockBatch, LockEntry, LockError, LockRow, LockStore, Store};

/// A batch of one entry that puts or removes one lock.
fn batch(version: u64, fence: u64, put: Option<u64>, remove: Option<u64>) -> LockBatch {
    let seq = version + 1;
    let (at, name) = (Time(i64::try_from(seq).unwrap_or(0)), "lock_taken".to_owned());
    LockBatch {
        expected_version: version,
        entries: vec![LockEntry { seq, at, name, body: format!("{{\"seq\":{seq}}}") }],
        fence,
        put: put
            .map(|id| LockRow { id, held: true, body: format!("\"by {seq}\"") })
            .into_iter()
            .collect(),
        remove: remove.into_iter().collect(),
    }
}

async fn book(store: &dyn Store) -> LockStore {
    store.locks().await.expect("readable")
}

/// Locks are read back as written, without the removed ones.
pub async fn s5_04_locks_are_read_back_as_written(store: Arc<dyn Store>) {
    assert_eq!(book(&*store).await, LockStore::default());
    assert_eq!(store.write_locks(batch(0, 1, Some(1), None)).await.expect("written"), 1);
    assert_eq!(store.write_locks(batch(1, 2, Some(2), None)).await.expect("written"), 2);
    assert_eq!(store.write_locks(batch(2, 2, Some(2), Some(1))).await.expect("written"), 3);
    let row = LockRow { id: 2, held: true, body: "\"by 3\"".to_owned() };
    assert_eq!(book(&*store).await, LockStore { version: 3, fence: 2, rows: vec![row] });
    let entries = store.lock_entries(1, 10).await.expect("readable");
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(entries[0].body, "{\"seq\":2}");
    assert_eq!(store.head().await.expect("readable"), 0, "locks are no events of runs");
}

/// A batch is accepted only at the version that it was made for.
pub async fn s5_04_locks_change_only_from_the_version_that_was_known(store: Arc<dyn Store>) {
    store.write_locks(batch(0, 1, Some(1), None)).await.expect("written");
    let before = book(&*store).await;
    for version in [0, 2] {
        let late = store.write_locks(batch(version, 9, Some(9), Some(1))).await;
        let Err(LockError::Conflict { expected, found: 1 }) = late else { panic!("{late:?}") };
        assert_eq!(expected, version);
    }
    assert_eq!(book(&*store).await, before);
}

/// The fencing number never falls, and the entries of a batch are in order.
pub async fn s5_04_the_fencing_number_never_falls(store: Arc<dyn Store>) {
    store.write_locks(batch(0, 7, Some(1), None)).await.expect("written");
    let mut gap = batch(1, 8, None, None);
    gap.entries[0].seq = 3;
    let mut empty = batch(1, 8, None, None);
    empty.entries.clear();
    for bad in [batch(1, 6, Some(2), None), gap, empty] {
        let refused = store.write_locks(bad).await;
        assert!(matches!(refused, Err(LockError::Malformed { .. })), "{refused:?}");
    }
    assert_eq!(book(&*store).await.fence, 7);
}

/// Of many writers in parallel, none loses a lock and no number is given twice.
pub async fn s5_04_racing_writers_of_locks_lose_nothing(store: Arc<dyn Store>) {
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut given = Vec::new();
                while given.len() < 8 {
                    let book = book(&*store).await;
                    let fence = book.fence + 1;
                    match store.write_locks(batch(book.version, fence, Some(fence), None)).await {
                        Ok(_) => given.push(fence),
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
        given.extend(task.await.expect("the writer ends"));
    }
    given.sort_unstable();
    assert_eq!(given, (1..=64).collect::<Vec<_>>());
    let rows: Vec<u64> = book(&*store).await.rows.iter().map(|row| row.id).collect();
    assert_eq!(rows, given);
}

/// The entries are for people to look at, and only the newest are kept.
pub async fn s5_04_old_entries_of_locks_are_dropped(store: Arc<dyn Store>) {
    let mut many = batch(0, 1, Some(1), None);
    let entry = many.entries[0].clone();
    many.entries = (1..=LOCK_ENTRIES + 5).map(|seq| LockEntry { seq, ..entry.clone() }).collect();
    let version = store.write_locks(many).await.expect("written");
    store.write_locks(batch(version, 1, None, None)).await.expect("written");
    let entries = store.lock_entries(0, usize::MAX).await.expect("readable");
    assert_eq!(entries.len() as u64, LOCK_ENTRIES);
    assert_eq!(entries.last().map(|entry| entry.seq), Some(version + 1));
}
