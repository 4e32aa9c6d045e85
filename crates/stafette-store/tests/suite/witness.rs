//! What tests of several stores look at alike.

use std::sync::Arc;

use stafette_store::conformance::{Story, run};
use stafette_store::{AppendError, Store};
use tokio::task::JoinHandle;

/// What the nth run's event with this number says.
pub(super) fn body(n: u64, seq: u64) -> String {
    format!("{n}:{seq}").repeat(50)
}

/// How many events the nth run has, each of which is there once and says what it should.
pub(super) async fn told(store: &dyn Store, n: u64) -> u64 {
    let (mut seq, mut after) = (0, 0);
    loop {
        let page = store.entries(run(n), after, 1000).await.expect("readable");
        let Some(last) = page.last() else { return seq };
        after = last.entry.seq;
        for stored in page {
            seq += 1;
            assert_eq!(stored.entry.seq, seq);
            assert_eq!(stored.entry.body, body(n, seq));
        }
    }
}

/// A hundred who begin a run each, of which the last ten are begun already.
pub(super) fn hundred(store: &Arc<impl Store>) -> Vec<JoinHandle<Result<u64, AppendError>>> {
    let begin = |n: u64| {
        let (store, batch) =
            (store.clone(), Story::new(n % 90).tell(&["run_created", "turn_ordered"]));
        tokio::spawn(async move { store.append(batch).await })
    };
    (0..100).map(begin).collect()
}

/// They shared commits, and those who were too late harmed nobody.
pub(super) async fn shared(store: &impl Store, tasks: Vec<JoinHandle<Result<u64, AppendError>>>) {
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
