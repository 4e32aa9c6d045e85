//! Cost of each call, counted instead of timed: in statements, and in steps of SQLite's virtual
//! machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use stafette_model::{HandoffId, Time};

use super::{Options, open, query, upkeep, writer};
use crate::conformance::{Story, run};
use crate::{Batch, Retention, RunFilter};

/// The run that is read, the same in every history.
const ALICE: u64 = 0x1_2345_6789;

/// Creates a store with that many other, finished runs of ten events each.
fn history(runs: u64) -> (Connection, Story, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let conn = open::writer(&folder.path().join("store.db"), &Options::default());
    let conn = conn.expect("a store");
    let keep = |batch: Batch| {
        writer::write(&conn, &batch).expect("written").expect("no conflict");
    };
    conn.execute_batch("BEGIN").expect("one transaction");
    let mut alice = Story::new(ALICE);
    keep(alice.hand(1, "pending", true));
    for n in 1..=runs {
        let mut story = Story::new(n);
        keep(story.tell(&["turn_ordered"; 8]));
        let mut batch = story.hand(1, "closed", false);
        batch.snapshot = Some(story.snapshot());
        keep(batch);
        keep(story.finish(1000));
    }
    for seq in 2..=runs {
        let mut batch = alice.tell(&["turn_ordered"]);
        batch.snapshot = (seq == runs).then(|| alice.snapshot());
        keep(batch);
    }
    keep(alice.hand(2, "pending", false));
    conn.execute_batch("COMMIT").expect("one transaction");
    (conn, alice, folder)
}

/// Returns the steps that each call takes.
fn costs(runs: u64) -> Vec<(&'static str, u64)> {
    let (mut conn, mut alice, _folder) = history(runs);
    let steps = Arc::new(AtomicU64::new(0));
    let counter = steps.clone();
    conn.progress_handler(
        1,
        Some(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        }),
    )
    .expect("a handler");
    let (id, last) = (run(ALICE), alice.row.seq);
    let head = query::head(&conn).expect("readable");
    let named = |status: Option<&str>| RunFilter {
        status: status.map(str::to_owned),
        after: None,
        limit: 5,
    };
    let after = |status| RunFilter { after: Some(id), ..named(status) };
    let batch = alice.hand(3, "pending", true);
    let rule = Retention { finished_before: Some(Time(1000)), keep_last: 3 };
    type Call<'a> = Box<dyn FnMut(&mut Connection) -> rusqlite::Result<usize> + 'a>;
    let calls: Vec<(&str, Call<'_>)> = vec![
        (
            "load",
            Box::new(|conn| {
                Ok(query::load_at(conn, id, u64::MAX)?.map_or(0, |it| it.entries.len()))
            }),
        ),
        ("entries", Box::new(|conn| Ok(query::entries(conn, id, last - 1, 5)?.len()))),
        ("feed", Box::new(|conn| Ok(query::feed(conn, head - 1, 5)?.len()))),
        ("head", Box::new(|conn| query::head(conn).map(|_| 1))),
        ("entries_of", Box::new(|conn| Ok(query::entries_of(conn, id, HandoffId(2))?.len()))),
        ("run", Box::new(|conn| Ok(query::run(conn, id)?.iter().len()))),
        ("runs", Box::new(|conn| Ok(query::runs(conn, &named(None))?.len() - 4))),
        ("runs after one", Box::new(|conn| Ok(query::runs(conn, &after(None))?.len() - 4))),
        (
            "runs by status after one",
            Box::new(|conn| Ok(query::runs(conn, &after(Some("succeeded")))?.len() - 4)),
        ),
        ("runs by status", Box::new(|conn| Ok(query::runs(conn, &named(Some("running")))?.len()))),
        ("find_run", Box::new(|conn| Ok(query::find_run(conn, &id.short())?.len()))),
        (
            "find_run by a part",
            Box::new(|conn| Ok(query::find_run(conn, &id.short()[..7])?.len().min(1))),
        ),
        ("handoffs", Box::new(|conn| Ok(query::handoffs(conn, id)?.len() - 1))),
        ("handoff", Box::new(|conn| Ok(query::handoff(conn, id, HandoffId(1))?.iter().len()))),
        ("questions", Box::new(|conn| Ok(query::questions(conn)?.len()))),
        ("unfinished", Box::new(|conn| Ok(query::unfinished(conn)?.len()))),
        ("append", Box::new(|conn| writer::write(conn, &batch).map(|it| it.iter().len()))),
        ("retain", Box::new(|conn| upkeep::remove_some(conn, rule).map(|it| 1 + it.runs as usize))),
    ];
    let cost = |(name, mut call): (&'static str, Call<'_>)| {
        let before = steps.load(Ordering::Relaxed);
        assert_eq!(call(&mut conn), Ok(1), "{name}");
        (name, steps.load(Ordering::Relaxed) - before)
    };
    calls.into_iter().map(cost).collect()
}

#[test]
fn no_call_costs_more_after_a_long_history() {
    for ((name, short), (_, long)) in costs(20).into_iter().zip(costs(400)) {
        assert!(short > 0, "{name} is counted");
        // A deeper index costs no step; a scan would cost twenty times as many.
        assert!(long <= short + short / 4, "{name}: {short} steps, then {long}");
    }
}

/// Returns a batch as a handoff leads to: five events, two handoffs, and a run whose status stays.
fn handoff(story: &mut Story, id: u32) -> Batch {
    let mut batch = story.tell(&["receipt_given", "turn_finished", "turn_ordered"]);
    let closed = story.hand(id, "closed", false);
    let admitted = story.hand(id + 1, "pending", false);
    batch.entries.extend(closed.entries.into_iter().chain(admitted.entries));
    batch.handoffs = [closed.handoffs, admitted.handoffs].concat();
    batch.row = admitted.row;
    batch
}

/// Returns the first words of each statement that an append runs, and how many it compiles.
fn append(runs: u64) -> (Vec<String>, u64) {
    let (mut conn, mut alice, _folder) = history(runs);
    let mut keep = |conn: &Connection, id| {
        let batch = handoff(&mut alice, id);
        let answers = writer::write_all(conn, [&batch].into_iter()).expect("written");
        let head = query::head(conn).expect("readable");
        assert!(matches!(&answers[..], [Ok(position)] if *position == head), "{answers:?}");
    };
    let (ran, compiled) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
    let (statements, counter) = (ran.clone(), compiled.clone());
    // It is asked whenever a statement is compiled. All are compiled anew once it is there.
    let authorizer = move |_: AuthContext<'_>| {
        counter.fetch_add(1, Ordering::Relaxed);
        Authorization::Allow
    };
    conn.authorizer(Some(authorizer)).expect("an authorizer");
    // The first one compiles the statements.
    keep(&conn, 2);
    assert!(compiled.swap(0, Ordering::Relaxed) > 0, "compiling is counted");
    let trace = move |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(_, sql) = event {
            let words = sql.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
            statements.lock().expect("nobody panicked").push(words);
        }
    };
    conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(trace)).expect("traced");
    keep(&conn, 3);
    let ran = std::mem::take(&mut *ran.lock().expect("nobody panicked"));
    (ran, compiled.load(Ordering::Relaxed))
}

#[test]
fn an_append_runs_each_statement_once_and_compiles_none() {
    let mut expected = vec!["BEGIN IMMEDIATE", "SELECT seq, status,"];
    expected.extend(["INSERT INTO events"; 5]);
    // Not the statement that writes the indexes over runs, too.
    expected.push("UPDATE runs SET");
    expected.extend(["INSERT INTO handoffs"; 2]);
    expected.push("COMMIT");
    // The test itself asks for the last position.
    expected.push("SELECT seq FROM");
    for runs in [20, 400] {
        let (ran, compiled) = append(runs);
        assert_eq!(ran, expected, "after {runs} runs");
        assert_eq!(compiled, 0, "after {runs} runs");
    }
}
