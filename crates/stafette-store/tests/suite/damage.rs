//! A store in which bytes changed: what it says is what was written, or it says that it is damaged.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use stafette_model::{HandoffId, Time};
use stafette_store::conformance::{Story, run};
use stafette_store::{
    Damage, HandoffRow, Loaded, LockBatch, LockEntry, LockRow, LockStore, Options, PostgresStore,
    ReadError, RunFilter, RunRow, SqliteStore, Store, Stored,
};
use stafette_testkit::postgres::Shared;

use super::postgres::{name, other, patient};

/// The runs of the store.
const RUNS: std::ops::RangeInclusive<u64> = 1..=6;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Options::default()).expect("a store")
}

/// Some runs with handoffs and snapshots, one of them long, and a lock.
async fn fill(store: &dyn Store) {
    for n in RUNS {
        let mut story = Story::new(n);
        store.append(story.hand(1, "pending", true)).await.expect("appended");
        for _ in 0..4 * n {
            let mut batch = story.tell(&["turn_ordered", "turn_finished"]);
            batch.entries[1].body = format!(r#"{{"said":"{}"}}"#, "words and words ".repeat(40));
            batch.snapshot = Some(story.snapshot());
            store.append(batch).await.expect("appended");
        }
        if n % 2 == 0 {
            store.append(story.finish(1000)).await.expect("appended");
        }
    }
    let body = r#"{"patterns":["src/**"]}"#.to_owned();
    let entry = LockEntry { seq: 1, at: Time(1), name: "taken".to_owned(), body: body.clone() };
    let locks = LockBatch {
        expected_version: 0,
        entries: vec![entry],
        fence: 1,
        put: vec![LockRow { id: 1, held: true, body }],
        remove: Vec::new(),
    };
    store.write_locks(locks).await.expect("written");
}

/// Everything that a store says, part by part.
#[derive(Clone, PartialEq, Debug)]
enum Part {
    Loaded(Option<Loaded>),
    Entries(Vec<Stored>),
    Run(Option<RunRow>),
    Handoffs(Vec<HandoffRow>),
    Handoff(Option<HandoffRow>),
    Locks(LockStore),
    LockEntries(Vec<LockEntry>),
}

/// What is asked about one run or lock is right, or an error.
async fn read(store: &dyn Store) -> Vec<Result<Part, ReadError>> {
    let mut parts = Vec::new();
    for n in RUNS.map(run) {
        parts.push(store.load(n).await.map(Part::Loaded));
        parts.push(store.load_at(n, 3).await.map(Part::Loaded));
        parts.push(all_entries(store, n).await.map(Part::Entries));
        parts.push(store.run(n).await.map(Part::Run));
        parts.push(store.handoffs(n).await.map(Part::Handoffs));
        parts.push(store.handoff(n, HandoffId(1)).await.map(Part::Handoff));
    }
    parts.push(store.locks().await.map(Part::Locks));
    parts.push(store.lock_entries(0, 100).await.map(Part::LockEntries));
    parts
}

async fn all_entries(
    store: &dyn Store,
    run: stafette_model::RunId,
) -> Result<Vec<Stored>, ReadError> {
    let mut all: Vec<Stored> = Vec::new();
    loop {
        let after = all.last().map_or(0, |last| last.entry.seq);
        let page = store.entries(run, after, 5).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// The lists that leave out what is damaged, and what indexes find.
async fn lists(store: &dyn Store) -> Result<impl PartialEq + use<>, ReadError> {
    let mut about = Vec::new();
    let mut found = Vec::new();
    for n in RUNS {
        about.push(store.entries_of(run(n), HandoffId(1)).await?);
        found.push(store.find_run(run(n).short()).await?);
    }
    let feed = store.feed(0, 1000).await?;
    let runs = store.runs(RunFilter::default()).await?;
    let running = RunFilter { status: Some("running".to_owned()), ..RunFilter::default() };
    let running = store.runs(running).await?;
    Ok((about, found, feed, runs, running, store.questions().await?, store.unfinished().await?))
}

/// Whether an answer is right. A load without its damaged snapshot comes from the events: the state
/// is the same. A handoff may be missing, of which the check knows.
fn agrees(found: &Part, written: &Part) -> bool {
    match (found, written) {
        (Part::Loaded(Some(found)), Part::Loaded(Some(written))) => {
            let last = |it: &Loaded| {
                let snapshot = it.snapshot.as_ref().map_or(0, |it| it.seq);
                it.entries.last().map_or(snapshot, |it| it.entry.seq)
            };
            let entries =
                |it: &Stored| written.entries.contains(it) || found.snapshot != written.snapshot;
            last(found) == last(written) && found.entries.iter().all(entries)
        }
        (Part::Handoffs(found), Part::Handoffs(written)) => {
            found.iter().all(|row| written.contains(row))
        }
        (Part::Handoff(None), Part::Handoff(_)) => true,
        (found, written) => found == written,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_01_no_flipped_byte_of_a_store_goes_unnoticed_or_does_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path);
    fill(&store).await;
    let written: Vec<Part> =
        read(&store).await.into_iter().map(|part| part.expect("readable")).collect();
    let listed = lists(&store).await.expect("readable");
    let health = store.check().await.expect("readable");
    assert!(health.is_sound() && health.unchecked == 0, "{health:?}");
    store.close().await;
    let bytes = fs::read(&path).expect("the file");

    let (mut noticed, mut harmless) = (0, 0);
    // Close to each other, and never at the same place of a page: headers, keys, bodies, sums.
    for place in (0..bytes.len()).step_by(331) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        let copy = folder.path().join("copy.db");
        for ending in ["db", "db-wal", "db-shm"] {
            let _ = fs::remove_file(copy.with_extension(ending));
        }
        fs::write(&copy, &flipped).expect("a copy");
        let Ok(store) = SqliteStore::open(&copy, Options::default()) else {
            noticed += 1;
            continue;
        };
        let sound = store.check().await.is_ok_and(|health| health.is_sound());
        let parts = read(&store).await;
        for (found, written) in parts.iter().zip(&written) {
            // An answer is right, or there is none, whoever looks first.
            if let Ok(found) = found {
                assert!(agrees(found, written), "byte {place}: {found:?}\nis not {written:?}");
            }
        }
        if sound {
            let same = parts
                .iter()
                .zip(&written)
                .all(|(found, it)| found.as_ref().is_ok_and(|found| found == it));
            assert!(same, "byte {place} went unnoticed by the check: {parts:?}");
            let same = lists(&store).await.is_ok_and(|lists| lists == listed);
            assert!(same, "byte {place} went unnoticed by the check");
            harmless += 1;
        } else {
            noticed += 1;
        }
        store.close().await;
    }

    assert!(noticed > 24, "{noticed} were noticed, {harmless} did no harm");
}

#[tokio::test]
async fn b_01_a_damaged_event_is_named_and_other_runs_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path);
    fill(&store).await;
    store.close().await;
    Connection::open(&path)
        .and_then(|conn| {
            conn.execute("DELETE FROM snapshots", [])?;
            let sql = "UPDATE events SET body = replace(body, 'words', 'lies!') WHERE run = ?1 AND seq = 3";
            conn.execute(sql, [run(2).0.as_bytes()])
        })
        .expect("damaged");
    names_event_3_of_run_2(&open(&path)).await;
}

#[tokio::test]
async fn b_01_a_damaged_event_of_a_database_is_named_too() {
    let server = Shared::get().expect("a server");
    let url = server.fresh();
    let store = PostgresStore::open(&url, patient()).await.expect("a store");
    fill(&store).await;
    assert_eq!(store.check().await.expect("readable").unchecked, 0);
    let client = other(&url).await;
    let schema = name(&url);
    let lie =
        format!("UPDATE {schema}.events SET body = body || '!'::bytea WHERE run = $1 AND seq = 3");
    client.execute(&format!("DELETE FROM {schema}.snapshots"), &[]).await.expect("removed");
    client.execute(&lie, &[&run(2).0]).await.expect("damaged");
    names_event_3_of_run_2(&store).await;
    for table in ["handoffs", "runs", "locks"] {
        let lie = format!("UPDATE {schema}.{table} SET body = body || '!'::bytea");
        client.execute(&lie, &[]).await.expect("damaged");
    }
    let refused = store.run(run(1)).await.expect_err("damaged");
    assert!(matches!(refused, ReadError::Damaged { source: Damage::Run { .. } }), "{refused:?}");
    let refused = store.handoff(run(1), HandoffId(1)).await.expect_err("damaged");
    assert!(
        matches!(refused, ReadError::Damaged { source: Damage::Handoff { .. } }),
        "{refused:?}"
    );
    let refused = store.locks().await.expect_err("damaged");
    assert!(matches!(refused, ReadError::Damaged { source: Damage::Locks }), "{refused:?}");
    assert_eq!(store.runs(RunFilter::default()).await.expect("readable"), []);
}

async fn names_event_3_of_run_2(store: &dyn Store) {
    let names = |error: &ReadError| {
        matches!(error, ReadError::Damaged { source: Damage::Event { run: it, seq: 3, position: Some(_) } }
                 if *it == run(2))
    };
    let refused = store.load(run(2)).await.expect_err("damaged");
    assert!(names(&refused), "{refused:?}");
    assert_eq!(store.entries(run(2), 0, 100).await.expect("readable").len(), 2, "up to it");
    let refused = store.entries(run(2), 2, 100).await.expect_err("damaged");
    assert!(names(&refused), "{refused:?}");
    let before = store.feed(0, 1000).await.expect("readable");
    let after = before.last().expect("some").position;
    let refused = store.feed(after, 1000).await.expect_err("damaged");
    assert!(names(&refused), "{refused:?}");
    assert!(!store.feed(after + 1, 1000).await.expect("readable").is_empty());
    let health = store.check().await.expect("readable");
    let named = format!("event 3 of run {} is damaged", run(2));
    assert!(health.problems.contains(&named), "{health:?}");
    store.load(run(1)).await.expect("readable").expect("another run");
}

#[tokio::test]
async fn b_01_a_damaged_snapshot_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path);
    fill(&store).await;
    store.close().await;
    let newest = "SELECT max(seq) FROM snapshots WHERE run = ?1";
    let lie = format!("UPDATE snapshots SET body = '{{}}' WHERE run = ?1 AND seq = ({newest})");
    Connection::open(&path)
        .and_then(|conn| conn.execute(&lie, [run(2).0.as_bytes()]))
        .expect("damaged");
    let store = open(&path);
    let loaded = store.load(run(2)).await.expect("readable").expect("the run");
    assert_eq!(loaded.snapshot.expect("an older one").seq, 15);
    assert_eq!(loaded.entries.len(), 3);
    let health = store.check().await.expect("readable");
    assert!(health.problems[0].starts_with("the snapshot of run"), "{health:?}");
}

#[tokio::test]
async fn b_01_events_of_older_versions_count_as_unchecked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path);
    fill(&store).await;
    store.close().await;
    // As the version before left it.
    let tables = ["events", "runs", "handoffs", "snapshots", "locks", "lock_entries", "lock_book"];
    let sql = tables.map(|table| format!("ALTER TABLE {table} DROP COLUMN sum;")).concat();
    Connection::open(&path)
        .and_then(|conn| {
            let sql = format!("{sql} DROP INDEX runs_by_short; PRAGMA user_version = 2;");
            conn.execute_batch(&sql)
        })
        .expect("an older store");
    let store = open(&path);
    let health = store.check().await.expect("readable");
    assert!(health.is_sound(), "{health:?}");
    assert_eq!(health.unchecked, health.events);
    let mut story = Story::new(9);
    store.append(story.tell(&["run_created"])).await.expect("appended");
    let health = store.check().await.expect("readable");
    assert_eq!(health.unchecked + 1, health.events);
}
