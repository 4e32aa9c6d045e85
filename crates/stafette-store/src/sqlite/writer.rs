//! The only thread that writes.

use std::time::Instant;

use rusqlite::{Connection, OptionalExtension, params};
use stafette_model::RunId;
use tokio::sync::mpsc;

use super::ground::Ground;
use super::{fault, query};
use crate::queue;
use crate::stats::Counters;
use crate::{AppendError, Batch, HandoffRow, RunRow, Snapshot, checksum, digits};

/// A request to the thread.
pub(super) type Job = queue::Job<Box<dyn FnOnce(&mut Connection) + Send>>;

/// Works until it is stopped or all senders are gone.
pub(super) fn work(
    mut conn: Connection,
    mut jobs: mpsc::Receiver<Job>,
    ground: &Ground,
    counters: &Counters,
) {
    let mut next = None;
    while let Some(job) = next.take().or_else(|| jobs.blocking_recv()) {
        match job {
            Job::Append(first) => {
                let group;
                (group, next) = queue::gather(*first, &mut jobs);
                let begun = Instant::now();
                let batches = group.iter().map(|append| &append.batch);
                let written = write_all(&conn, batches).map_err(fault::append);
                let written = written.and_then(|answers| standing(ground, answers));
                queue::answer(group, written, begun, counters);
            }
            Job::Upkeep(task) => task(&mut conn),
            Job::Stop(answer) => {
                // Pending callers learn from the dropped sender that the store is closed.
                drop(jobs);
                drop(conn);
                let _ = answer.send(());
                return;
            }
        }
    }
}

/// Returns what was written, unless it went to files that are gone.
pub(super) fn standing<T>(ground: &Ground, written: T) -> Result<T, AppendError> {
    match ground.lost() {
        None => Ok(written),
        Some(why) => Err(AppendError::Lost { why: why.to_owned() }),
    }
}

/// Writes a group in one transaction. A conflicting batch writes nothing, so it cannot harm the
/// others.
pub(super) fn write_all<'a>(
    conn: &Connection,
    group: impl Iterator<Item = &'a Batch>,
) -> rusqlite::Result<Vec<Result<u64, AppendError>>> {
    // A transaction of rusqlite compiles both ends of it anew, for every group.
    let execute = |sql: &str| conn.prepare_cached(sql)?.execute([]);
    execute("BEGIN IMMEDIATE")?;
    let answers: rusqlite::Result<Vec<_>> = group.map(|batch| write(conn, batch)).collect();
    let answers = answers.and_then(|answers| {
        if answers.iter().any(Result::is_ok) {
            execute("COMMIT")?;
        }
        Ok(answers)
    });
    if !conn.is_autocommit() {
        // What led here is the error to tell. If this fails as well, the next group cannot begin.
        let _ = execute("ROLLBACK");
    }
    answers
}

pub(super) fn write(
    conn: &Connection,
    batch: &Batch,
) -> rusqlite::Result<Result<u64, AppendError>> {
    let (run, expected) = (batch.run, batch.expected_seq);
    let stored = stored(conn, run)?;
    let found = stored.as_ref().map_or(0, |stored| stored.seq);
    if found != expected {
        return Ok(Err(AppendError::Conflict { run, expected, found }));
    }
    let position = write_entries(conn, batch)?;
    match stored {
        Some(stored) if stored.keys == Keys::of(&batch.row) => update_run(conn, &batch.row)?,
        _ => write_run(conn, &batch.row)?,
    };
    for row in &batch.handoffs {
        write_handoff(conn, row)?;
    }
    if let Some(snapshot) = &batch.snapshot {
        write_snapshot(conn, batch, snapshot)?;
    }
    position.map_or_else(|| query::head(conn), Ok).map(Ok)
}

/// What of a run's row is in indexes and can change.
#[derive(PartialEq, Eq)]
struct Keys {
    status: String,
    created_at: i64,
    finished_at: Option<i64>,
}

impl Keys {
    fn of(row: &RunRow) -> Self {
        Keys {
            status: row.status.clone(),
            created_at: row.created_at.0,
            finished_at: row.finished_at.map(|at| at.0),
        }
    }
}

/// The row of a run before a batch.
struct StoredRun {
    seq: u64,
    keys: Keys,
}

fn stored(conn: &Connection, run: RunId) -> rusqlite::Result<Option<StoredRun>> {
    conn.prepare_cached("SELECT seq, status, created_at, finished_at FROM runs WHERE run = ?1")?
        .query_row([run.0.as_bytes()], |row| {
            let keys =
                Keys { status: row.get(1)?, created_at: row.get(2)?, finished_at: row.get(3)? };
            Ok(StoredRun { seq: row.get(0)?, keys })
        })
        .optional()
}

/// Returns the position of the last event; `None` if there is none.
fn write_entries(conn: &Connection, batch: &Batch) -> rusqlite::Result<Option<u64>> {
    let mut position = None;
    let mut statement = conn.prepare_cached(
        "INSERT INTO events (run, seq, at, name, handoff, body, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for entry in &batch.entries {
        let inserted = statement.insert(params![
            batch.run.0.as_bytes(),
            entry.seq,
            entry.at.0,
            entry.name,
            entry.handoff.map(|id| id.0),
            entry.body,
            checksum::event(batch.run, entry),
        ])?;
        position = Some(inserted.cast_unsigned());
    }
    Ok(position)
}

fn write_run(conn: &Connection, row: &RunRow) -> rusqlite::Result<usize> {
    conn.prepare_cached(
        "INSERT INTO runs (run, tail, workflow, title, status, waiting_on, seq, created_at, \
                           updated_at, finished_at, body, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT (run) DO UPDATE SET
             workflow = excluded.workflow, title = excluded.title, status = excluded.status,
             waiting_on = excluded.waiting_on, seq = excluded.seq,
             created_at = excluded.created_at, updated_at = excluded.updated_at,
             finished_at = excluded.finished_at, body = excluded.body, sum = excluded.sum",
    )?
    .execute(params![
        row.run.0.as_bytes(),
        digits::reversed(row.run),
        row.workflow,
        row.title,
        row.status,
        row.waiting_on,
        row.seq,
        row.created_at.0,
        row.updated_at.0,
        row.finished_at.map(|at| at.0),
        row.body,
        checksum::run(row),
    ])
}

/// Updates a run whose [`Keys`] stay: SQLite writes every index anew that has a column which is set,
/// whatever its value.
fn update_run(conn: &Connection, row: &RunRow) -> rusqlite::Result<usize> {
    conn.prepare_cached(
        "UPDATE runs SET workflow = ?2, title = ?3, waiting_on = ?4, seq = ?5, updated_at = ?6, \
                         body = ?7, sum = ?8
         WHERE run = ?1",
    )?
    .execute(params![
        row.run.0.as_bytes(),
        row.workflow,
        row.title,
        row.waiting_on,
        row.seq,
        row.updated_at.0,
        row.body,
        checksum::run(row),
    ])
}

fn write_handoff(conn: &Connection, row: &HandoffRow) -> rusqlite::Result<usize> {
    conn.prepare_cached(
        "INSERT INTO handoffs (run, id, giver, taker, reason, state, question, opened_at, \
                               updated_at, closed_at, body, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT (run, id) DO UPDATE SET
             giver = excluded.giver, taker = excluded.taker, reason = excluded.reason,
             state = excluded.state, question = excluded.question,
             opened_at = excluded.opened_at, updated_at = excluded.updated_at,
             closed_at = excluded.closed_at, body = excluded.body, sum = excluded.sum",
    )?
    .execute(params![
        row.run.0.as_bytes(),
        row.id.0,
        row.from,
        row.to,
        row.reason,
        row.state,
        row.question,
        row.opened_at.0,
        row.updated_at.0,
        row.closed_at.map(|at| at.0),
        row.body,
        checksum::handoff(row),
    ])
}

fn write_snapshot(
    conn: &Connection,
    batch: &Batch,
    snapshot: &Snapshot,
) -> rusqlite::Result<usize> {
    conn.prepare_cached(
        "INSERT INTO snapshots (run, seq, body, sum) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (run, seq) DO UPDATE SET body = excluded.body, sum = excluded.sum",
    )?
    .execute(params![
        batch.run.0.as_bytes(),
        snapshot.seq,
        snapshot.body,
        checksum::snapshot(batch.run, snapshot),
    ])
}
