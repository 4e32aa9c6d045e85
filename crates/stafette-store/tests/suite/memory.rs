//! The store that forgets.

use std::sync::Arc;

use stafette_store::conformance::Story;
use stafette_store::{AppendError, MemoryStore, Store};

async fn open() -> (Arc<dyn Store>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

stafette_store::conformance!(open);

#[test]
fn a_simulation_crashes_a_daemon_and_goes_on_without_a_runtime() {
    let disk = MemoryStore::new();
    let mut alice = Story::new(1);
    let daemon = disk.clone();
    daemon.append_now(alice.tell(&["run_created"])).expect("appended");
    drop(daemon);

    let daemon = disk.clone();
    assert_eq!(daemon.unfinished_now().expect("readable"), [alice.run()]);
    let loaded = daemon.load_now(alice.run()).expect("readable").expect("the run is there");
    assert_eq!(loaded.entries.len(), 1);
    daemon.append_now(alice.tell(&["run_adopted"])).expect("appended");
    let late = disk.append_now(Story::new(1).tell(&["run_created"]));
    assert!(matches!(late, Err(AppendError::Conflict { found: 2, .. })), "{late:?}");
}

#[tokio::test]
async fn closing_one_handle_leaves_the_other_open() {
    let one = MemoryStore::new();
    let other = one.clone();
    one.close().await;
    assert!(matches!(one.head().await, Err(stafette_store::ReadError::Closed)));
    assert_eq!(other.head().await.expect("readable"), 0);
}
