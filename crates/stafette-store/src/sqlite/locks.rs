//! The tables of locks.

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use stafette_model::Time;

use super::{fault, query};
use crate::{Damage, LOCK_ENTRIES, LockBatch, LockEntry, LockError, LockRow, LockStore, checksum};

/// Writes a batch in one transaction.
pub(super) fn write(conn: &mut Connection, batch: &LockBatch) -> Result<u64, LockError> {
    try_write(conn, batch).unwrap_or_else(|error| Err(fault::append(error).into()))
}

fn try_write(conn: &mut Connection, batch: &LockBatch) -> rusqlite::Result<Result<u64, LockError>> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (version, fence) = book(&tx)?;
    if let Err(error) = batch.fits(version, fence) {
        return Ok(Err(error));
    }
    for entry in &batch.entries {
        tx.prepare_cached(
            "INSERT INTO lock_entries (seq, at, name, body, sum) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            entry.seq,
            entry.at.0,
            entry.name,
            entry.body,
            checksum::lock_entry(entry)
        ])?;
    }
    let version = batch.version();
    tx.prepare_cached("DELETE FROM lock_entries WHERE seq <= ?1")?
        .execute([version.saturating_sub(LOCK_ENTRIES)])?;
    for id in &batch.remove {
        tx.prepare_cached("DELETE FROM locks WHERE id = ?1")?.execute([id])?;
    }
    for row in &batch.put {
        tx.prepare_cached(
            "INSERT OR REPLACE INTO locks (id, held, body, sum) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![row.id, row.held, row.body, checksum::lock(row)])?;
    }
    tx.prepare_cached("UPDATE lock_book SET version = ?1, fence = ?2, sum = ?3")?
        .execute(params![version, batch.fence, checksum::lock_book(version, batch.fence)])?;
    tx.commit()?;
    Ok(Ok(version))
}

fn book(conn: &Connection) -> rusqlite::Result<(u64, u64)> {
    let book = |row: &Row<'_>| {
        let read = || Ok((row.get(0)?, row.get(1)?));
        let sum = |(version, fence): &(u64, u64)| checksum::lock_book(*version, *fence);
        query::checked(row, 2, read(), sum, || Damage::Locks)
    };
    let found =
        conn.prepare_cached("SELECT version, fence, sum FROM lock_book")?.query_row([], book);
    // Its only row is always there.
    found.optional()?.ok_or_else(|| fault::damaged(Damage::Locks))
}

pub(super) fn all(conn: &Connection) -> rusqlite::Result<LockStore> {
    // One transaction, so that the version matches the rows.
    let tx = conn.unchecked_transaction()?;
    let (version, fence) = book(&tx)?;
    let mut statement = tx.prepare_cached("SELECT id, held, body, sum FROM locks ORDER BY id")?;
    let row = |row: &Row<'_>| {
        let read = || Ok(LockRow { id: row.get(0)?, held: row.get(1)?, body: row.get(2)? });
        query::checked(row, 3, read(), checksum::lock, || Damage::Locks)
    };
    let rows = statement.query_map([], row)?.collect::<rusqlite::Result<_>>()?;
    Ok(LockStore { version, fence, rows })
}

pub(super) fn entries(
    conn: &Connection,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<LockEntry>> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, at, name, body, sum FROM lock_entries WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let entry = |row: &Row<'_>| {
        let read = || {
            let (seq, name, body) = (row.get(0)?, row.get(2)?, row.get(3)?);
            Ok(LockEntry { seq, at: Time(row.get(1)?), name, body })
        };
        query::checked(row, 4, read(), checksum::lock_entry, || Damage::Locks)
    };
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    statement.query_map(params![after, limit], entry)?.collect()
}
