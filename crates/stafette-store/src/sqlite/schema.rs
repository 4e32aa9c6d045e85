//! The tables and how older ones become these.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a SQLite file as a store: `STAF`.
pub(super) const APPLICATION_ID: i32 = 0x5354_4146;

/// Step n brings tables of version n to version n + 1. A step that was released never changes.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// The version of the tables that this program knows.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// The version of the tables in the file; 0 when there are none.
pub(super) fn version(conn: &Connection) -> rusqlite::Result<u32> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings the tables up to date, in one transaction.
pub(super) fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    if version(conn)? >= VERSION {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited for the lock.
    let found = version(&tx)?;
    for step in MIGRATIONS.iter().skip(found as usize) {
        tx.execute_batch(step)?;
    }
    if found < VERSION {
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", VERSION)?;
    }
    tx.commit()
}
