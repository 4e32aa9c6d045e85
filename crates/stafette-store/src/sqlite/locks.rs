//! The tables of locks.

use rusqlite::{Connection, TransactionBehavior, params};
use stafette_core::Time;

use super::fault;
use crate::{LOCK_ENTRIES, LockBatch, LockEntry, LockError, LockRow, LockStore};

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
            "INSERT INTO lock_entries (seq, at, name, body) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![entry.seq, entry.at.0, entry.name, entry.body])?;
    }
    let version = batch.version();
    tx.prepare_cached("DELETE FROM lock_entries WHERE seq <= ?1")?
        .execute([version.saturating_sub(LOCK_ENTRIES)])?;
    for id in &batch.remove {
        tx.prepare_cached("DELETE FROM locks WHERE id = ?1")?.execute([id])?;
    }
    for row in &batch.put {
        tx.prepare_cached("INSERT OR REPLACE INTO locks (id, held, body) VALUES (?1, ?2, ?3)")?
            .execute(params![row.id, row.held, row.body])?;
    }
    tx.prepare_cached("UPDATE lock_book SET version = ?1, fence = ?2")?
        .execute([version, batch.fence])?;
    tx.commit()?;
    Ok(Ok(version))
}

fn book(conn: &Connection) -> rusqlite::Result<(u64, u64)> {
    conn.prepare_cached("SELECT version, fence FROM lock_book")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

pub(super) fn all(conn: &Connection) -> rusqlite::Result<LockStore> {
    // One transaction, so that the version matches the rows.
    let tx = conn.unchecked_transaction()?;
    let (version, fence) = book(&tx)?;
    let mut query = tx.prepare_cached("SELECT id, held, body FROM locks ORDER BY id")?;
    let row = |row: &rusqlite::Row<'_>| {
        Ok(LockRow { id: row.get(0)?, held: row.get(1)?, body: row.get(2)? })
    };
    let rows = query.query_map([], row)?.collect::<rusqlite::Result<_>>()?;
    Ok(LockStore { version, fence, rows })
}

pub(super) fn entries(
    conn: &Connection,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<LockEntry>> {
    let mut query = conn.prepare_cached(
        "SELECT seq, at, name, body FROM lock_entries WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let entry = |row: &rusqlite::Row<'_>| {
        let (seq, name, body) = (row.get(0)?, row.get(2)?, row.get(3)?);
        Ok(LockEntry { seq, at: Time(row.get(1)?), name, body })
    };
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    query.query_map(params![after, limit], entry)?.collect()
}
