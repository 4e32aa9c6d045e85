//! Retention, compaction and the integrity check, in steps short enough to let writers in.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::{fault, locks, query, schema};
use crate::{Damage, Health, Removed, Retention, digits};

/// Maximum number of runs that one step removes.
const RUNS: u64 = 16;

/// Number of removed events after which a step removes no further run.
const EVENTS: u64 = 10_000;

/// Maximum number of snapshots that one step removes.
const SNAPSHOTS: u64 = 256;

/// Maximum number of pages that one step frees.
const PAGES: u64 = 1024;

/// Maximum number of problems of a kind that a check names.
const NAMED: usize = 16;

/// End time and id of a run: the order of removal.
type Ended = (i64, [u8; 16]);

/// Sorts after every run.
const END: Ended = (i64::MAX, [u8::MAX; 16]);

/// Removes the oldest runs that retention allows; none if there are no more.
pub(super) fn remove_some(conn: &mut Connection, rule: Retention) -> rusqlite::Result<Removed> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut removed = Removed::default();
    for run in candidates(&tx, rule)? {
        tx.prepare_cached("DELETE FROM runs WHERE run = ?1")?.execute([run])?;
        tx.prepare_cached("DELETE FROM handoffs WHERE run = ?1")?.execute([run])?;
        tx.prepare_cached("DELETE FROM snapshots WHERE run = ?1")?.execute([run])?;
        let events = tx.prepare_cached("DELETE FROM events WHERE run = ?1")?.execute([run])?;
        removed.runs += 1;
        removed.events += events as u64;
        if removed.events >= EVENTS {
            break;
        }
    }
    tx.commit()?;
    Ok(removed)
}

/// Returns the oldest runs that may be removed. The runs to keep begin at a bound, so that an index
/// finds them.
fn candidates(conn: &Connection, rule: Retention) -> rusqlite::Result<Vec<[u8; 16]>> {
    let Some(kept) = first_of_the_last(conn, rule.keep_last)? else { return Ok(Vec::new()) };
    let young = rule.finished_before.map_or(END, |before| (before.0, [0; 16]));
    let (at, run) = kept.min(young);
    let mut statement = conn.prepare_cached(
        "SELECT run FROM runs WHERE finished_at IS NOT NULL AND (finished_at, run) < (?1, ?2)
         ORDER BY finished_at, run LIMIT ?3",
    )?;
    statement.query_map(params![at, run, RUNS], |row| row.get(0))?.collect()
}

/// Returns the end of the oldest among the `count` runs that ended most recently; `None` if there
/// are fewer.
fn first_of_the_last(conn: &Connection, count: usize) -> rusqlite::Result<Option<Ended>> {
    let Some(skip) = count.checked_sub(1) else { return Ok(Some(END)) };
    conn.prepare_cached(
        "SELECT finished_at, run FROM runs WHERE finished_at IS NOT NULL
         ORDER BY finished_at DESC, run DESC LIMIT 1 OFFSET ?1",
    )?
    .query_row([i64::try_from(skip).unwrap_or(i64::MAX)], |row| Ok((row.get(0)?, row.get(1)?)))
    .optional()
}

/// Removes snapshots that a newer one replaced; 0 if there are no more.
pub(super) fn drop_old_snapshots(conn: &Connection) -> rusqlite::Result<u64> {
    let mut statement = conn.prepare_cached(
        "DELETE FROM snapshots WHERE rowid IN (
             SELECT old.rowid FROM snapshots AS old
             WHERE EXISTS (SELECT 1 FROM snapshots AS newer
                           WHERE newer.run = old.run AND newer.seq > old.seq)
             LIMIT ?1)",
    )?;
    statement.execute([SNAPSHOTS]).map(|rows| rows as u64)
}

/// Frees unused pages; 0 if there are no more.
pub(super) fn free_pages(conn: &Connection) -> rusqlite::Result<u64> {
    let before = number(conn, "PRAGMA page_count")?;
    let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    // One row per freed page: reading all rows does the work.
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(before.saturating_sub(number(conn, "PRAGMA page_count")?))
}

/// Moves the log into the file and empties it, unless a reader still needs it.
pub(super) fn checkpoint(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Returns the size on disk in bytes, including the log.
pub(super) fn bytes(conn: &Connection, path: &Path) -> rusqlite::Result<u64> {
    let file = number(conn, "PRAGMA page_count")? * number(conn, "PRAGMA page_size")?;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Ok(file + fs::metadata(PathBuf::from(log)).map_or(0, |log| log.len()))
}

/// Checks the whole file.
pub(super) fn health(
    conn: &Connection,
    path: &Path,
    max_bytes: Option<u64>,
) -> rusqlite::Result<Health> {
    Ok(Health {
        backend: "sqlite",
        schema: schema::version(conn)?,
        problems: problems(conn)?,
        bytes: bytes(conn, path)?,
        max_bytes,
        runs: number(conn, "SELECT count(*) FROM runs")?,
        unfinished: number(conn, "SELECT count(*) FROM runs WHERE finished_at IS NULL")?,
        events: number(conn, "SELECT count(*) FROM events")?,
        unchecked: number(conn, "SELECT count(*) FROM events WHERE sum IS NULL")?,
        handoffs: number(conn, "SELECT count(*) FROM handoffs")?,
        snapshots: number(conn, "SELECT count(*) FROM snapshots")?,
    })
}

fn problems(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    // Not only the structure: also whether each index says what its table says.
    let mut statement = conn.prepare(&format!("PRAGMA integrity_check({NAMED})"))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut problems = lines.collect::<rusqlite::Result<Vec<_>>>()?;
    problems.retain(|line| line != "ok");
    if !schema::is_whole(conn)? {
        problems.push("the description of the tables is damaged".to_owned());
    }
    damage(conn, &mut problems)?;
    let behind = number(
        conn,
        "SELECT count(*) FROM runs
         WHERE seq IS NOT (SELECT max(seq) FROM events WHERE events.run = runs.run)
            OR seq IS NOT (SELECT count(*) FROM events WHERE events.run = runs.run)",
    )?;
    if behind > 0 {
        problems.push(format!("{behind} runs disagree with their events"));
    }
    let strange = number(
        conn,
        "SELECT (SELECT count(*) FROM events WHERE run NOT IN (SELECT run FROM runs))
              + (SELECT count(*) FROM handoffs WHERE run NOT IN (SELECT run FROM runs))
              + (SELECT count(*) FROM snapshots WHERE run NOT IN (SELECT run FROM runs))",
    )?;
    if strange > 0 {
        problems.push(format!("{strange} rows belong to no run"));
    }
    let ahead = "SELECT count(*) FROM events WHERE position > ?1";
    let ahead: u64 = conn.query_row(ahead, [query::head(conn)?], |row| row.get(0))?;
    if ahead > 0 {
        problems.push(format!("{ahead} events have a position that was not given"));
    }
    Ok(problems)
}

/// Names the rows that are not what was written, some of each table.
fn damage(conn: &Connection, problems: &mut Vec<String>) -> rusqlite::Result<()> {
    let from = |columns: &str, table: &str| format!("SELECT {columns} FROM {table}");
    each(conn, &from(query::ENTRY, "events"), problems, |row| query::stored(row).map(drop))?;
    each(conn, &from(query::SNAPSHOT, "snapshots"), problems, |row| {
        query::snapshot(row).map(drop)
    })?;
    each(conn, &from(query::HANDOFF, "handoffs"), problems, |row| {
        query::handoff_row(row).map(drop)
    })?;
    each(conn, &format!("SELECT {}, tail FROM runs", query::RUN), problems, |row| {
        let (run, tail) = (query::run_row(row)?.run, row.get::<_, [u8; 16]>(11));
        match tail.is_ok_and(|tail| tail == digits::reversed(run)) {
            true => Ok(()),
            false => Err(fault::damaged(Damage::Run { run })),
        }
    })?;
    for locks in [locks::all(conn).map(drop), locks::entries(conn, 0, usize::MAX).map(drop)] {
        note(locks, problems)?;
    }
    Ok(())
}

/// Notes the damaged rows of a query, up to a limit.
fn each(
    conn: &Connection,
    sql: &str,
    problems: &mut Vec<String>,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let limit = problems.len() + NAMED;
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    while problems.len() < limit
        && let Some(row) = rows.next()?
    {
        note(read(row), problems)?;
    }
    Ok(())
}

fn note(found: rusqlite::Result<()>, problems: &mut Vec<String>) -> rusqlite::Result<()> {
    let Err(error) = found else { return Ok(()) };
    let damage = fault::damage(&error).ok_or(error)?;
    problems.push(damage.to_string());
    Ok(())
}

fn number(conn: &Connection, sql: &str) -> rusqlite::Result<u64> {
    conn.query_row(sql, [], |row| row.get(0))
}
