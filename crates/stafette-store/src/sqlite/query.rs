//! Queries that read.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use stafette_model::{HandoffId, RunId, Time};
use uuid::Uuid;

use super::fault;
use crate::record::Page;
use crate::{
    Damage, Entry, FIND_LIMIT, HandoffRow, Loaded, RunFilter, RunRow, Snapshot, Stored, checksum,
    digits,
};

pub(super) const ENTRY: &str = "position, run, seq, at, name, handoff, body, sum";
pub(super) const RUN: &str = "run, workflow, title, status, waiting_on, seq, created_at, \
                              updated_at, finished_at, body, sum";
pub(super) const HANDOFF: &str = "run, id, giver, taker, reason, state, question, opened_at, \
                                  updated_at, closed_at, body, sum";
pub(super) const SNAPSHOT: &str = "run, seq, body, sum";

pub(super) fn load_at(conn: &Connection, run: RunId, seq: u64) -> rusqlite::Result<Option<Loaded>> {
    // One transaction, so that snapshot and entries are of the same moment.
    let tx = conn.unchecked_transaction()?;
    let Some(last) = last(&tx, run)? else { return absent(&tx, run) };
    let snapshot = newest_snapshot(&tx, run, seq)?;
    let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
    let sql = format!(
        "SELECT {ENTRY} FROM events WHERE run = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq"
    );
    let entries = all(&tx, &sql, params![run.0.as_bytes(), after, cursor(seq)], stored)?;
    let end = Stored::until_gap(&entries, after);
    match end < entries.len() || after + end as u64 != last.min(seq).max(after) {
        true => Err(fault::damaged(Damage::missing(run, after + end as u64))),
        false => Ok(Some(Loaded { snapshot, entries })),
    }
}

/// Answers that there is no such run, unless it has events: then its row is lost.
fn absent<T>(conn: &Connection, run: RunId) -> rusqlite::Result<Option<T>> {
    let mut events = conn.prepare_cached("SELECT 1 FROM events WHERE run = ?1 LIMIT 1")?;
    match events.exists([run.0.as_bytes()])? {
        true => Err(fault::damaged(Damage::Run { run })),
        false => Ok(None),
    }
}

/// Returns the number of the last event of a run; `None` if there is no such run.
fn last(conn: &Connection, run: RunId) -> rusqlite::Result<Option<u64>> {
    conn.prepare_cached("SELECT seq FROM runs WHERE run = ?1")?
        .query_row([run.0.as_bytes()], |row| row.get(0))
        .optional()
}

/// Returns the newest snapshot up to `seq` that is as it was written. The events tell what a
/// damaged one does not.
fn newest_snapshot(conn: &Connection, run: RunId, seq: u64) -> rusqlite::Result<Option<Snapshot>> {
    let sql =
        format!("SELECT {SNAPSHOT} FROM snapshots WHERE run = ?1 AND seq <= ?2 ORDER BY seq DESC");
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map(params![run.0.as_bytes(), cursor(seq)], snapshot)?;
    sound(rows).next().transpose()
}

pub(super) fn entries(
    conn: &Connection,
    run: RunId,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Stored>> {
    let tx = conn.unchecked_transaction()?;
    let sql =
        format!("SELECT {ENTRY} FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
    let mut page = page(&tx, &sql, params![run.0.as_bytes(), cursor(after), count(limit)], limit)?;
    page.truncate(Stored::until_gap(&page, after));
    if page.is_empty() && limit > 0 && last(&tx, run)?.is_some_and(|last| last > after) {
        return Err(fault::damaged(Damage::missing(run, after)));
    }
    Ok(page)
}

pub(super) fn feed(conn: &Connection, after: u64, limit: usize) -> rusqlite::Result<Vec<Stored>> {
    let sql = format!("SELECT {ENTRY} FROM events WHERE position > ?1 ORDER BY position LIMIT ?2");
    page(conn, &sql, params![cursor(after), count(limit)], limit)
}

pub(super) fn head(conn: &Connection) -> rusqlite::Result<u64> {
    // The counter and not the newest event, which may have been removed.
    let counter = conn
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'events'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(counter.unwrap_or(0))
}

pub(super) fn entries_of(
    conn: &Connection,
    run: RunId,
    handoff: HandoffId,
) -> rusqlite::Result<Vec<Stored>> {
    let sql = format!("SELECT {ENTRY} FROM events WHERE run = ?1 AND handoff = ?2 ORDER BY seq");
    all(conn, &sql, params![run.0.as_bytes(), handoff.0], stored)
}

pub(super) fn run(conn: &Connection, run: RunId) -> rusqlite::Result<Option<RunRow>> {
    let tx = conn.unchecked_transaction()?;
    let sql = format!("SELECT {RUN} FROM runs WHERE run = ?1");
    match tx.prepare_cached(&sql)?.query_row([run.0.as_bytes()], run_row).optional() {
        Ok(None) => absent(&tx, run),
        row => row.map_err(|error| fault::instead(error, Damage::Run { run })),
    }
}

pub(super) fn runs(conn: &Connection, filter: &RunFilter) -> rusqlite::Result<Vec<RunRow>> {
    let order = "ORDER BY created_at DESC, run DESC LIMIT ?1";
    let after = "(created_at, run) < (SELECT created_at, run FROM runs WHERE run = ?2)";
    let limit = count(filter.limit);
    let last = filter.after.map(|run| run.0.into_bytes());
    match (&filter.status, last) {
        (None, None) => {
            list(conn, &format!("SELECT {RUN} FROM runs {order}"), params![limit], run_row)
        }
        (None, Some(last)) => {
            let sql = format!("SELECT {RUN} FROM runs WHERE {after} {order}");
            list(conn, &sql, params![limit, last], run_row)
        }
        (Some(status), None) => {
            let sql = format!("SELECT {RUN} FROM runs WHERE status = ?2 {order}");
            list(conn, &sql, params![limit, status], run_row)
        }
        (Some(status), Some(last)) => {
            let sql = format!("SELECT {RUN} FROM runs WHERE status = ?3 AND {after} {order}");
            list(conn, &sql, params![limit, last, status], run_row)
        }
    }
}

pub(super) fn find_run(conn: &Connection, text: &str) -> rusqlite::Result<Vec<RunId>> {
    let Some(digits) = digits::typed(text) else { return Ok(Vec::new()) };
    let limit = count(FIND_LIMIT);
    let (low, high) = digits::range(&digits);
    let sql = "SELECT run FROM runs WHERE run BETWEEN ?1 AND ?2 ORDER BY run DESC LIMIT ?3";
    let begins = all(conn, sql, params![low, high, limit], |row| id(row, 0))?;
    let (low, high) = digits::range(&digits.chars().rev().collect::<String>());
    let sql = "SELECT run FROM runs WHERE tail BETWEEN ?1 AND ?2 LIMIT ?3";
    let ends = all(conn, sql, params![low, high, limit], |row| id(row, 0))?;
    let mut found: BTreeSet<_> = begins.into_iter().chain(ends).collect();
    if let Some((low, high)) = digits::short_range(&digits) {
        let sql = "SELECT run FROM runs WHERE substr(run, 13) BETWEEN ?1 AND ?2 LIMIT ?3";
        found.extend(all(conn, sql, params![low, high, limit], |row| id(row, 0))?);
    }
    Ok(found.into_iter().rev().take(FIND_LIMIT).collect())
}

pub(super) fn handoffs(conn: &Connection, run: RunId) -> rusqlite::Result<Vec<HandoffRow>> {
    let sql = format!("SELECT {HANDOFF} FROM handoffs WHERE run = ?1 ORDER BY id");
    all(conn, &sql, [run.0.as_bytes()], handoff_row)
}

pub(super) fn handoff(
    conn: &Connection,
    run: RunId,
    id: HandoffId,
) -> rusqlite::Result<Option<HandoffRow>> {
    let sql = format!("SELECT {HANDOFF} FROM handoffs WHERE run = ?1 AND id = ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    statement.query_row(params![run.0.as_bytes(), id.0], handoff_row).optional()
}

pub(super) fn questions(conn: &Connection) -> rusqlite::Result<Vec<HandoffRow>> {
    let sql =
        format!("SELECT {HANDOFF} FROM handoffs WHERE question = 1 ORDER BY opened_at, run, id");
    list(conn, &sql, [], handoff_row)
}

pub(super) fn unfinished(conn: &Connection) -> rusqlite::Result<Vec<RunId>> {
    let sql = "SELECT run FROM runs WHERE finished_at IS NULL ORDER BY created_at, run";
    all(conn, sql, [], |row| id(row, 0))
}

fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Like [`all`], without damaged rows: the check names them, and the rest can be shown.
fn list<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    sound(conn.prepare_cached(sql)?.query_map(params, read)?).collect()
}

/// Leaves out damaged rows.
fn sound<T>(
    rows: impl Iterator<Item = rusqlite::Result<T>>,
) -> impl Iterator<Item = rusqlite::Result<T>> {
    rows.filter(|row| row.as_ref().err().and_then(fault::damage).is_none())
}

/// Collects a page. It ends before a damaged entry, which is the error of the next page.
fn page(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    limit: usize,
) -> rusqlite::Result<Vec<Stored>> {
    let mut page = Page::new(limit);
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    while !page.is_full()
        && let Some(row) = rows.next()?
    {
        match stored(row) {
            Err(_) if !page.is_empty() => break,
            entry => page.push(entry?),
        }
    }
    Ok(page.into_entries())
}

/// Converts a cursor. One past the maximum of SQLite finds nothing, as the maximum does.
fn cursor(after: u64) -> i64 {
    i64::try_from(after).unwrap_or(i64::MAX)
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<RunId> {
    row.get(column).map(|bytes| RunId(Uuid::from_bytes(bytes)))
}

fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    row.get::<_, Option<i64>>(column).map(|at| at.map(Time))
}

/// Reads a row with its checksum, which is in column `sum`. Damage is whatever does not match, and
/// whatever cannot be read at all.
pub(super) fn checked<T>(
    row: &Row<'_>,
    sum: usize,
    read: rusqlite::Result<T>,
    checksum: impl FnOnce(&T) -> i64,
    damage: impl FnOnce() -> Damage,
) -> rusqlite::Result<T> {
    match (read, row.get::<_, Option<i64>>(sum)) {
        (Ok(found), Ok(None)) => Ok(found),
        (Ok(found), Ok(Some(sum))) if sum == checksum(&found) => Ok(found),
        _ => Err(fault::damaged(damage())),
    }
}

/// The run of a row that may be damaged.
fn named(row: &Row<'_>, column: usize) -> RunId {
    id(row, column).unwrap_or(RunId(Uuid::nil()))
}

pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let read = || {
        let entry = Entry {
            seq: row.get(2)?,
            at: Time(row.get(3)?),
            name: row.get(4)?,
            handoff: row.get::<_, Option<u32>>(5)?.map(HandoffId),
            body: row.get(6)?,
        };
        Ok(Stored { position: row.get(0)?, run: id(row, 1)?, entry })
    };
    checked(
        row,
        7,
        read(),
        |it: &Stored| checksum::event(it.run, &it.entry),
        || Damage::Event {
            run: named(row, 1),
            seq: row.get(2).unwrap_or(0),
            position: row.get(0).ok(),
        },
    )
}

pub(super) fn snapshot(row: &Row<'_>) -> rusqlite::Result<Snapshot> {
    let read = || Ok(Snapshot { seq: row.get(1)?, body: row.get(2)? });
    let run = named(row, 0);
    checked(
        row,
        3,
        read(),
        |it| checksum::snapshot(run, it),
        || Damage::Snapshot { run, seq: row.get(1).unwrap_or(0) },
    )
}

pub(super) fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let read = || {
        Ok(RunRow {
            run: id(row, 0)?,
            workflow: row.get(1)?,
            title: row.get(2)?,
            status: row.get(3)?,
            waiting_on: row.get(4)?,
            seq: row.get(5)?,
            created_at: Time(row.get(6)?),
            updated_at: Time(row.get(7)?),
            finished_at: moment(row, 8)?,
            body: row.get(9)?,
        })
    };
    checked(row, 10, read(), checksum::run, || Damage::Run { run: named(row, 0) })
}

pub(super) fn handoff_row(row: &Row<'_>) -> rusqlite::Result<HandoffRow> {
    let read = || {
        Ok(HandoffRow {
            run: id(row, 0)?,
            id: HandoffId(row.get(1)?),
            from: row.get(2)?,
            to: row.get(3)?,
            reason: row.get(4)?,
            state: row.get(5)?,
            question: row.get(6)?,
            opened_at: Time(row.get(7)?),
            updated_at: Time(row.get(8)?),
            closed_at: moment(row, 9)?,
            body: row.get(10)?,
        })
    };
    checked(row, 11, read(), checksum::handoff, || Damage::Handoff {
        run: named(row, 0),
        id: HandoffId(row.get(1).unwrap_or(0)),
    })
}
