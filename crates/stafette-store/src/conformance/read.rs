//! Cases for reading.

use std::sync::Arc;

use stafette_model::{HandoffId, RunId};

use super::content::{Story, keep, run};
use crate::{FIND_LIMIT, PAGE_BYTES, RunFilter, Store, Stored};

/// Rows are those of the last batch, for the run and for each handoff.
pub async fn rows_follow_the_events(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    keep(&*store, alice.tell(&["run_created"])).await;
    keep(&*store, alice.hand(2, "pending", false)).await;
    let second = alice.handoff(2, "pending", false);
    keep(&*store, alice.hand(1, "pending", false)).await;
    alice.row.status = "waiting".to_owned();
    alice.row.waiting_on = Some("lock".to_owned());
    keep(&*store, alice.hand(1, "closed", false)).await;
    let first = alice.handoff(1, "closed", false);

    assert_eq!(store.run(alice.run()).await.expect("readable"), Some(alice.row.clone()));
    let rows = store.handoffs(alice.run()).await.expect("readable");
    assert_eq!(rows, [first.clone(), second]);
    let row = store.handoff(alice.run(), HandoffId(1)).await.expect("readable");
    assert_eq!(row, Some(first));
    assert_eq!(store.handoff(alice.run(), HandoffId(3)).await.expect("readable"), None);
    assert_eq!(store.handoff(run(2), HandoffId(1)).await.expect("readable"), None);
    assert_eq!(store.run(run(2)).await.expect("readable"), None);
}

/// Only entries after the newest snapshot are loaded; the others can still be read.
pub async fn a_snapshot_shortens_the_load(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    for round in 0..30 {
        let mut batch = alice.tell(&["turn_ordered"]);
        batch.snapshot = (round % 10 == 0).then(|| alice.snapshot());
        keep(&*store, batch).await;
    }
    let loaded = store.load(alice.run()).await.expect("readable").expect("the run is there");
    assert_eq!(loaded.snapshot.map(|snapshot| snapshot.seq), Some(21));
    assert_eq!(numbers(&loaded.entries), (22..=30).collect::<Vec<_>>());
    let all = store.entries(alice.run(), 0, 100).await.expect("readable");
    assert_eq!(numbers(&all), (1..=30).collect::<Vec<_>>());
}

/// At any event, no more is loaded than the entries after the snapshot before it.
pub async fn a_run_is_loaded_as_it_was_after_any_event(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    for round in 0..30 {
        let mut batch = alice.tell(&["turn_ordered"]);
        batch.snapshot = (round % 10 == 0 && round > 0).then(|| alice.snapshot());
        keep(&*store, batch).await;
    }
    for (seq, snapshot, entries) in
        [(0, None, 1..1), (5, None, 1..6), (11, Some(11), 12..12), (25, Some(21), 22..26)]
    {
        let loaded = store.load_at(alice.run(), seq).await.expect("readable");
        let loaded = loaded.expect("the run is there");
        assert_eq!(loaded.snapshot.map(|snapshot| snapshot.seq), snapshot, "after {seq}");
        assert_eq!(numbers(&loaded.entries), entries.collect::<Vec<_>>(), "after {seq}");
    }
    let now = store.load(alice.run()).await.expect("readable");
    assert_eq!(store.load_at(alice.run(), 99).await.expect("readable"), now);
    let nobody = Story::new(2);
    assert_eq!(store.load_at(nobody.run(), 1).await.expect("readable"), None);
}

/// A reader that follows the cursor sees every entry of every run once.
pub async fn the_feed_is_in_order_and_its_cursor_misses_nothing(store: Arc<dyn Store>) {
    let mut stories = [Story::new(1), Story::new(2), Story::new(3)];
    let mut told = Vec::new();
    for _ in 0..5 {
        for story in &mut stories {
            let batch = story.tell(&["turn_ordered", "turn_accepted"]);
            told.extend(batch.entries.iter().map(|entry| (story.run(), entry.seq)));
            keep(&*store, batch).await;
        }
    }
    let (mut seen, mut cursor) = (Vec::new(), 0);
    loop {
        let page = store.feed(cursor, 4).await.expect("readable");
        let Some(last) = page.last() else { break };
        assert!(page.iter().is_sorted_by(|a, b| a.position < b.position));
        assert!(page[0].position > cursor);
        cursor = last.position;
        seen.extend(page.iter().map(|stored| (stored.run, stored.entry.seq)));
    }
    assert_eq!(seen, told);
    assert_eq!(store.head().await.expect("readable"), cursor);
    assert_eq!(store.feed(u64::MAX, 4).await.expect("readable"), []);

    keep(&*store, stories[0].tell(&["run_paused"])).await;
    let news = store.feed(cursor, 4).await.expect("readable");
    assert_eq!(news.len(), 1);
    assert_eq!(news[0].entry.name, "run_paused");
}

/// A page is as long as requested, and shorter if its bodies are large.
pub async fn a_page_ends_at_its_limit(store: Arc<dyn Store>) {
    let mut alice = Story::new(1);
    let mut batch = alice.tell(&["a", "b", "c", "d"]);
    for entry in &mut batch.entries[..3] {
        entry.body = "x".repeat(PAGE_BYTES / 2);
    }
    keep(&*store, batch).await;
    let page = |after, limit| store.entries(alice.run(), after, limit);
    assert_eq!(page(0, 0).await.expect("readable"), []);
    assert_eq!(numbers(&page(0, 1).await.expect("readable")), [1]);
    assert_eq!(numbers(&page(0, 9).await.expect("readable")), [1, 2]);
    assert_eq!(numbers(&page(2, 9).await.expect("readable")), [3, 4]);
    assert_eq!(page(4, 9).await.expect("readable"), []);
    assert_eq!(page(u64::MAX, usize::MAX).await.expect("readable"), []);
    assert_eq!(numbers(&store.feed(0, 9).await.expect("readable")), [1, 2]);
    assert_eq!(store.entries(run(2), 0, 9).await.expect("readable"), []);
}

/// `why h1` reads the entries about h1 and nothing else.
pub async fn the_entries_of_a_handoff_are_found(store: Arc<dyn Store>) {
    let (mut alice, mut bob) = (Story::new(1), Story::new(2));
    keep(&*store, alice.tell(&["run_created"])).await;
    keep(&*store, alice.hand(1, "pending", false)).await;
    keep(&*store, alice.hand(2, "pending", false)).await;
    keep(&*store, bob.hand(1, "pending", false)).await;
    keep(&*store, alice.hand(1, "closed", false)).await;
    let about = store.entries_of(alice.run(), HandoffId(1)).await.expect("readable");
    assert_eq!(numbers(&about), [2, 4]);
    assert!(about.iter().all(|stored| stored.run == alice.run()));
    assert_eq!(store.entries_of(alice.run(), HandoffId(9)).await.expect("readable"), []);
}

/// The inbox: questions of all runs, the oldest first, gone once answered.
pub async fn questions_are_listed_until_they_are_answered(store: Arc<dyn Store>) {
    let (mut old, mut young) = (Story::new(1), Story::new(2));
    keep(&*store, young.hand(1, "pending", true)).await;
    keep(&*store, old.hand(1, "pending", true)).await;
    keep(&*store, old.hand(2, "pending", false)).await;
    let inbox = store.questions().await.expect("readable");
    assert_eq!(inbox.iter().map(|row| row.run).collect::<Vec<_>>(), [old.run(), young.run()]);

    keep(&*store, old.hand(1, "closed", false)).await;
    let inbox = store.questions().await.expect("readable");
    assert_eq!(inbox, [young.handoff(1, "pending", true)]);
}

/// Ordered by start, with and without a status, as many as requested.
pub async fn runs_are_listed_the_newest_first(store: Arc<dyn Store>) {
    for n in [3, 1, 5, 2, 4] {
        let mut story = Story::new(n);
        keep(&*store, story.tell(&["run_created"])).await;
        if n % 2 == 0 {
            keep(&*store, story.finish(100)).await;
        }
    }
    let list = async |status: Option<&str>, limit| {
        let filter = RunFilter { status: status.map(str::to_owned), after: None, limit };
        let rows = store.runs(filter).await.expect("readable");
        rows.into_iter().map(|row| row.run).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 9).await, [5, 4, 3, 2, 1].map(run));
    assert_eq!(list(None, 2).await, [5, 4].map(run));
    assert_eq!(list(Some("succeeded"), 9).await, [4, 2].map(run));
    assert_eq!(list(Some("running"), 2).await, [5, 3].map(run));
    assert_eq!(list(Some("paused"), 9).await, []);
    let page = async |status: Option<&str>, after: u64| {
        let status = status.map(str::to_owned);
        let filter = RunFilter { status, after: Some(run(after)), limit: 2 };
        let rows = store.runs(filter).await.expect("readable");
        rows.into_iter().map(|row| row.run).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 4).await, [3, 2].map(run));
    assert_eq!(page(None, 2).await, [1].map(run));
    assert_eq!(page(None, 1).await, []);
    assert_eq!(page(Some("running"), 4).await, [3, 1].map(run));
    assert_eq!(page(None, 77).await, [], "nothing comes after a run that is not there");
}

/// A person types the last eight digits or some of them, or copies the first ones of the id.
pub async fn a_run_is_found_by_its_first_or_last_digits(store: Arc<dyn Store>) {
    for n in [0xa1, 0xb1, 0xa2] {
        keep(&*store, Story::new(n).tell(&["run_created"])).await;
    }
    let find = async |digits: &str| store.find_run(digits.to_owned()).await.expect("readable");
    for n in [0xa1, 0xb1, 0xa2] {
        assert_eq!(find(&run(n).short()).await, [run(n)]);
        assert_eq!(find(&run(n).short().to_uppercase()).await, [run(n)]);
        assert_eq!(find(&run(n).to_string()).await, [run(n)]);
        assert_eq!(find(&run(n).to_string()[..14]).await, [run(n)]);
    }
    assert_eq!(find("1").await, [0xb1, 0xa1].map(run));
    assert_eq!(find("0000").await, [0xb1, 0xa2, 0xa1].map(run));
    for nonsense in ["", "-", "zz", "%", "c3", "0198c0de-1234-7abc-8def-0123456789abc"] {
        assert_eq!(find(nonsense).await, [], "{nonsense}");
    }
    // People shorten what they are shown: the last eight digits.
    for n in [0xabcd_0001, 0x1_abcd] {
        keep(&*store, Story::new(n).tell(&["run_created"])).await;
    }
    assert_eq!(find("ABCD00").await, [run(0xabcd_0001)]);
    assert_eq!(find("abcd").await, [0xabcd_0001, 0x1_abcd].map(run), "both are meant");
    assert_eq!(find("bcd0").await, [], "in the middle of a name");
    for n in 0x100..0x100 + 2 * FIND_LIMIT as u64 {
        keep(&*store, Story::new(n).tell(&["run_created"])).await;
    }
    assert_eq!(find("0000").await.len(), FIND_LIMIT);
    assert_eq!(find("abcd00").await, [run(0xabcd_0001)], "however many are newer");
}

/// After a restart, unfinished runs are resumed in the order in which they began.
pub async fn unfinished_runs_are_listed_to_be_taken_up(store: Arc<dyn Store>) {
    for n in [2, 3, 1] {
        keep(&*store, Story::new(n).tell(&["run_created"])).await;
    }
    let mut done = Story::new(4);
    keep(&*store, done.tell(&["run_created"])).await;
    keep(&*store, done.finish(50)).await;
    assert_eq!(store.unfinished().await.expect("readable"), [1, 2, 3].map(run));
}

/// Two hundred runs are written in parallel, and none is mixed up with another.
pub async fn many_runs_live_side_by_side(store: Arc<dyn Store>) {
    const RUNS: u64 = 200;
    let tasks: Vec<_> = (0..RUNS)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut story = Story::new(n);
                for _ in 0..5 {
                    keep(&*store, story.tell(&["turn_ordered", "turn_accepted"])).await;
                }
                story
            })
        })
        .collect();
    for task in tasks {
        let story = task.await.expect("the writer ends");
        let loaded = store.load(story.run()).await.expect("readable").expect("the run is there");
        assert_eq!(numbers(&loaded.entries), (1..=10).collect::<Vec<_>>());
        assert!(loaded.entries.is_sorted_by(|a, b| a.position < b.position));
        assert_eq!(store.run(story.run()).await.expect("readable"), Some(story.row));
    }
    let filter = RunFilter { limit: usize::MAX, ..RunFilter::default() };
    assert_eq!(store.runs(filter).await.expect("readable").len() as u64, RUNS);
    let mut unfinished: Vec<RunId> = store.unfinished().await.expect("readable");
    unfinished.dedup();
    assert_eq!(unfinished.len() as u64, RUNS);
}

fn numbers(entries: &[Stored]) -> Vec<u64> {
    entries.iter().map(|stored| stored.entry.seq).collect()
}
