//! The tables, and their migrations.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a SQLite file as a store: `STAF`.
pub(super) const APPLICATION_ID: i32 = 0x5354_4146;

/// Step n migrates tables of version n to version n + 1. A released step never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
];

/// Version of the tables that this program knows.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// Returns the version of the tables in the file; 0 if there are none.
pub(super) fn version(conn: &Connection) -> rusqlite::Result<u32> {
    conn.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Migrates the tables in one transaction.
pub(super) fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    if version(conn)? >= VERSION {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated while this one waited for the lock.
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

/// True if the tables and indexes are described as this program describes them.
pub(super) fn is_whole(conn: &Connection) -> rusqlite::Result<bool> {
    let mut new = Connection::open_in_memory()?;
    migrate(&mut new)?;
    Ok(description(conn)? == description(&new)?)
}

fn description(conn: &Connection) -> rusqlite::Result<Vec<(String, String, Option<String>)>> {
    let sql = "SELECT type || ' ' || name, tbl_name, sql FROM sqlite_schema ORDER BY 1";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    conn.prepare(sql)?.query_map([], row)?.collect()
}
