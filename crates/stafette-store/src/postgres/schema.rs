//! The tables, and their migrations.

use super::address::Address;
use super::fault::{self, PostgresError};
use super::link::Link;
use crate::ConnectError;

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

/// First server version that is known to work.
const SERVER: u64 = 130_000;

/// Advisory lock, so that one process at a time creates tables, in any schema: `STAF` and 0, which
/// no table has.
const TURN: &str = "SELECT pg_advisory_xact_lock(1398030662, 0)";

/// Checks that the database is usable, and migrates the tables in one transaction.
pub(super) async fn prepare(link: &mut Link, address: &Address) -> Result<(), ConnectError> {
    let wrap = |trouble| fault::connect(trouble, address);
    let refuse = |found: String| Err(ConnectError::NotAStore { place: address.to_string(), found });
    let server =
        link.number("SELECT current_setting('server_version_num')::int8").await.map_err(wrap)?;
    if server < SERVER {
        return refuse(format!("its server is version {server}, at least {SERVER} is needed"));
    }
    let encoding = link.number("SELECT (getdatabaseencoding() = 'UTF8')::int::int8").await;
    if encoding.map_err(wrap)? == 0 {
        return refuse("its encoding is not UTF8".to_owned());
    }
    match version(link).await.map_err(wrap)? {
        Some(found) if found == VERSION => Ok(()),
        Some(found) if found > VERSION => {
            Err(ConnectError::Newer { place: address.to_string(), found, known: VERSION })
        }
        Some(_) => migrate(link, address).await.map_err(wrap),
        None => {
            let others = "SELECT count(*) FROM pg_class \
                          WHERE relnamespace = (SELECT oid FROM pg_namespace \
                                                WHERE nspname = current_setting('search_path'))";
            match link.number(others).await.map_err(wrap)? {
                0 => migrate(link, address).await.map_err(wrap),
                _ => refuse(format!("its schema {} is another program's", address.schema)),
            }
        }
    }
}

/// Returns the version of the tables; `None` if there are none.
pub(super) async fn version(link: &mut Link) -> Result<Option<u32>, PostgresError> {
    const THERE: &str = "SELECT (to_regclass('store') IS NOT NULL)::int::int8";
    if link.number(THERE).await? == 0 {
        return Ok(None);
    }
    // Queried only if it exists: a statement that names a missing table cannot be prepared.
    let version = link.number("SELECT version::int8 FROM store").await?;
    Ok(Some(u32::try_from(version).unwrap_or(u32::MAX)))
}

async fn migrate(link: &mut Link, address: &Address) -> Result<(), PostgresError> {
    link.plain("BEGIN").await?;
    let done = steps(link, address).await;
    link.plain(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    done
}

async fn steps(link: &mut Link, address: &Address) -> Result<(), PostgresError> {
    link.ask(TURN, &[]).await?;
    const THERE: &str =
        "SELECT (to_regnamespace(current_setting('search_path')) IS NOT NULL)::int::int8";
    // The owner of a schema need not be allowed to create others.
    if link.number(THERE).await? == 0 {
        link.plain(&format!("CREATE SCHEMA {}", address.schema)).await?;
    }
    // Another process may have migrated while this one waited.
    let found = version(link).await?.unwrap_or(0);
    for step in MIGRATIONS.iter().skip(found as usize) {
        link.plain(step).await?;
    }
    if found < VERSION {
        link.plain(&format!("UPDATE store SET version = {VERSION}")).await?;
    }
    Ok(())
}
