//! Cases for writing.

use std::sync::Arc;

use super::content::{Story, keep, run};
use crate::{AppendError, BATCH_BYTES, Batch, ReadError, RunFilter, Snapshot, Store, UpkeepError};

/// Entries come back with all their fields, in order, with growing positions.
pub async fn b_01_what_was_appended_is_read_back_as_written(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    let first = alice.tell(&["run_created", "turn_ordered"]);
    let second = alice.hand(1, "pending", false);
    let middle = keep(&*store, first.clone()).await;
    let last = keep(&*store, second.clone()).await;
    assert!(0 < middle && middle < last);

    let loaded = store.load(alice.run()).await.expect("readable").expect("the run is there");
    assert_eq!(loaded.snapshot, None);
    assert!(loaded.entries.iter().all(|stored| stored.run == alice.run()));
    assert_eq!(loaded.entries.last().map(|stored| stored.position), Some(last));
    let entries: Vec<_> = loaded.entries.into_iter().map(|stored| stored.entry).collect();
    assert_eq!(entries, [first.entries, second.entries].concat());
    assert_eq!(store.load(run(2)).await.expect("readable"), None);
}

/// A writer that is behind, ahead, or that creates a run twice, learns the run's sequence number.
pub async fn b_01_a_batch_lands_only_on_the_number_it_was_made_for(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    let mut bob = alice.clone();
    keep(&*store, alice.tell(&["run_created", "turn_ordered"])).await;

    let again = store.append(bob.tell(&["run_created"])).await;
    assert!(
        matches!(again, Err(AppendError::Conflict { run, expected: 0, found: 2 }) if run == alice.run()),
        "{again:?}"
    );
    let behind = store.append(bob.tell(&["run_paused"])).await;
    assert!(
        matches!(behind, Err(AppendError::Conflict { expected: 1, found: 2, .. })),
        "{behind:?}"
    );
    alice.tell(&["lost"]);
    let ahead = store.append(alice.tell(&["run_paused"])).await;
    assert!(matches!(ahead, Err(AppendError::Conflict { expected: 3, found: 2, .. })), "{ahead:?}");

    let mut ghost = Story::new(2);
    ghost.tell(&["lost"]);
    let nothing = store.append(ghost.tell(&["run_paused"])).await;
    assert!(
        matches!(nothing, Err(AppendError::Conflict { expected: 1, found: 0, .. })),
        "{nothing:?}"
    );
}

/// Eight writers race for one run: each number is won once, and every winner is stored.
pub async fn b_01_of_two_racing_writers_one_wins_each_number(store: Arc<dyn Store>) {
    const ROUNDS: u64 = 20;
    let mut story = Story::new(1);
    for round in 0..ROUNDS {
        let tasks: Vec<_> = (0..8)
            .map(|writer| {
                let mut batch = story.clone().tell(&["claimed"]);
                batch.entries[0].body = format!("{writer}");
                let store = store.clone();
                tokio::spawn(async move { (writer, store.append(batch).await) })
            })
            .collect();
        let mut winners = Vec::new();
        for task in tasks {
            match task.await.expect("the writer ends") {
                (writer, Ok(_)) => winners.push(writer),
                (_, Err(AppendError::Conflict { expected, found, .. })) => {
                    assert_eq!((expected, found), (round, round + 1));
                }
                (_, Err(error)) => panic!("{error:?}"),
            }
        }
        story.tell(&["claimed"]);
        let kept = store.entries(story.run(), round, 9).await.expect("readable");
        let kept: Vec<_> = kept.into_iter().map(|stored| stored.entry.body).collect();
        assert_eq!(kept, winners.iter().map(i32::to_string).collect::<Vec<_>>());
        assert_eq!(kept.len(), 1, "one winner in round {round}");
    }
}

/// A refused batch leaves no events, rows or snapshot behind.
pub async fn b_01_a_refused_batch_leaves_nothing_behind(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    let mut late = alice.clone();
    keep(&*store, alice.tell(&["run_created"])).await;
    let head = store.head().await.expect("readable");

    late.row.status = "paused".to_owned();
    let mut batch = late.hand(1, "pending", true);
    batch.snapshot = Some(late.snapshot());
    store.append(batch).await.expect_err("the number is taken");

    assert_eq!(store.head().await.expect("readable"), head);
    assert_eq!(store.run(alice.run()).await.expect("readable"), Some(alice.row.clone()));
    assert_eq!(store.handoffs(alice.run()).await.expect("readable"), []);
    assert_eq!(store.questions().await.expect("readable"), []);
    let loaded = store.load(alice.run()).await.expect("readable").expect("the run is there");
    assert_eq!((loaded.snapshot, loaded.entries.len()), (None, 1));
}

type Spoiler = fn(&mut Batch);

/// Gaps, rows of other runs and empty first batches never reach the disk.
pub async fn a_batch_that_contradicts_itself_is_refused(store: Arc<dyn Store>) {
    let good = Story::new(1).tell(&["run_created", "turn_ordered"]);
    let spoilers: [(&str, Spoiler); 8] = [
        ("a gap", |batch| batch.entries[1].seq = 3),
        ("a number twice", |batch| batch.entries[1].seq = 1),
        ("a late beginning", |batch| batch.expected_seq = 1),
        ("nothing to begin with", |batch| {
            batch.entries.clear();
            batch.row.seq = 0;
        }),
        ("a row that is behind", |batch| batch.row.seq = 1),
        ("another run's row", |batch| batch.row.run = run(2)),
        ("another run's handoff", |batch| {
            batch.handoffs.push(Story::new(2).handoff(1, "pending", false));
        }),
        ("a snapshot of the future", |batch| {
            batch.snapshot = Some(Snapshot { seq: 3, body: "{}".to_owned() });
        }),
    ];
    for (flaw, spoil) in spoilers {
        let mut batch = good.clone();
        spoil(&mut batch);
        let answer = store.append(batch).await;
        assert!(matches!(answer, Err(AppendError::Malformed { .. })), "{flaw}: {answer:?}");
    }
    let mut batch = good.clone();
    batch.entries[0].body = "x".repeat(BATCH_BYTES + 1);
    let answer = store.append(batch).await;
    assert!(matches!(answer, Err(AppendError::TooBig { .. })), "{answer:?}");
    assert_eq!(store.head().await.expect("readable"), 0);
    keep(&*store, good).await;
}

/// A run without new events can still get a snapshot and a new row.
pub async fn a_batch_without_entries_may_add_a_snapshot(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    let last = keep(&*store, alice.tell(&["run_created", "turn_ordered"])).await;
    alice.row.waiting_on = Some("human".to_owned());
    let mut batch = alice.tell(&[]);
    batch.snapshot = Some(alice.snapshot());
    assert_eq!(keep(&*store, batch).await, last);

    let loaded = store.load(alice.run()).await.expect("readable").expect("the run is there");
    assert_eq!((loaded.snapshot, loaded.entries.len()), (Some(alice.snapshot()), 0));
    assert_eq!(store.run(alice.run()).await.expect("readable"), Some(alice.row));
}

/// Large payloads, with every kind of character, are read back unchanged.
pub async fn bodies_of_a_mebibyte_are_kept(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    let mut batch = alice.tell(&["run_created", "turn_ordered"]);
    let body = "stafette \u{0} \" ' é 走 🏃\n".repeat((1 << 20) / 28);
    for entry in &mut batch.entries {
        entry.body.clone_from(&body);
    }
    batch.snapshot = Some(Snapshot { seq: 1, body: body.clone() });
    keep(&*store, batch.clone()).await;
    let loaded = store.load(alice.run()).await.expect("readable").expect("the run is there");
    assert_eq!(loaded.snapshot, batch.snapshot);
    assert_eq!(loaded.entries[0].entry, batch.entries[1]);
}

/// After closing, every call returns an error and none hangs.
pub async fn a_closed_store_says_so(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    keep(&*store, alice.tell(&["run_created"])).await;
    store.close().await;
    store.close().await;
    let answer = store.append(alice.tell(&["run_paused"])).await;
    assert!(matches!(answer, Err(AppendError::Closed)), "{answer:?}");
    let answer = store.runs(RunFilter::default()).await;
    assert!(matches!(answer, Err(ReadError::Closed)), "{answer:?}");
    let answer = store.compact().await;
    assert!(matches!(answer, Err(UpkeepError::Closed)), "{answer:?}");
}
