//! Opens a file: checks that it is a store, is writable, and has known tables.
//!
//! Only SQLite opens the file: closing any other descriptor of it would drop the locks that SQLite
//! holds for the whole process.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use super::{Options, fault, schema};
use crate::{BackendError, OpenError};

/// The first SQLite whose write-ahead log cannot be damaged by a checkpoint beside a writer.
const NEEDED: (i32, &str) = (3_051_003, "3.51.3");

/// Size that a log is truncated to after a burst of writes, in bytes.
const LOG_BYTES: i64 = 16 << 20;

/// Pause between two attempts to open a file that others are opening too.
const PAUSE: Duration = Duration::from_millis(5);

/// Returns the absolute path of the file, whose folder exists.
pub(super) fn place(path: &Path) -> Result<PathBuf, OpenError> {
    let not_a_file = || OpenError::NotAStore {
        path: path.to_owned(),
        found: "the path does not name a file".to_owned(),
    };
    let name = path.file_name().ok_or_else(not_a_file)?;
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let no_folder = || OpenError::NoFolder { folder: folder.to_owned() };
    let folder = folder.canonicalize().map_err(|_| no_folder())?;
    if !folder.is_dir() {
        return Err(no_folder());
    }
    let path = folder.join(name);
    if path.is_dir() {
        return Err(not_a_file());
    }
    Ok(path)
}

/// Opens the connection that writes.
pub(super) fn writer(path: &Path, options: &Options) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < NEEDED.0 {
        let found = rusqlite::version().to_owned();
        return Err(OpenError::OldSqlite { found, needed: NEEDED.1 });
    }
    let patience = Instant::now() + options.busy_timeout;
    loop {
        match attempt(path, options) {
            // SQLite itself waits for most locks, but not for the one that starts the log.
            Err(OpenError::Busy { .. }) if Instant::now() < patience => thread::sleep(PAUSE),
            answer => return answer,
        }
    }
}

fn attempt(path: &Path, options: &Options) -> Result<Connection, OpenError> {
    let wrap = |error| fault::open(error, path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(wrap)?;
    conn.busy_timeout(options.busy_timeout).map_err(wrap)?;
    // A refused file stays unchanged: not even its log is merged into it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(wrap)?;
    if conn.is_readonly(MAIN_DB).map_err(wrap)? {
        return Err(OpenError::ReadOnly { path: path.to_owned() });
    }
    let fresh = identify(&conn, path)?;
    if fresh {
        protect(path)?;
        // Takes effect only before the first table, and before the log.
        conn.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(wrap)?;
    }
    let mode: String = conn
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(wrap)?;
    if mode != "wal" {
        return Err(OpenError::NoLog { path: path.to_owned(), mode });
    }
    tune(&conn, options.max_bytes).map_err(wrap)?;
    schema::migrate(&mut conn).map_err(wrap)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(wrap)?;
    Ok(conn)
}

/// Opens a connection that reads.
pub(super) fn reader(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

/// Returns true if the file is new; refuses a file that is not usable.
fn identify(conn: &Connection, path: &Path) -> Result<bool, OpenError> {
    let wrap = |error| fault::open(error, path);
    // One transaction, because another process may be creating the tables at this moment.
    let tx = conn.unchecked_transaction().map_err(wrap)?;
    let version = schema::version(&tx).map_err(wrap)?;
    let owner: i32 =
        tx.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(wrap)?;
    let tables: u64 =
        tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(wrap)?;
    if owner == 0 && version == 0 && tables == 0 {
        return Ok(true);
    }
    let path = path.to_owned();
    if owner != schema::APPLICATION_ID {
        let found = "it is another program's database".to_owned();
        return Err(OpenError::NotAStore { path, found });
    }
    if version > schema::VERSION {
        return Err(OpenError::Newer { path, found: version, known: schema::VERSION });
    }
    Ok(false)
}

/// Restricts a new file to its owner; the log beside it inherits that.
fn protect(path: &Path) -> Result<(), OpenError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(|error| {
            OpenError::Failed { path: path.to_owned(), source: BackendError::new(error) }
        })?;
    }
    Ok(())
}

fn tune(conn: &Connection, max_bytes: Option<u64>) -> rusqlite::Result<()> {
    conn.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain sync does not reach the disk; elsewhere these two do nothing.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    if let Some(bytes) = max_bytes {
        let page: u64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = (bytes / page).clamp(1, u64::from(u32::MAX - 1));
        conn.pragma_update(None, "max_page_count", pages)?;
    }
    conn.set_prepared_statement_cache_capacity(32);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_01_every_commit_is_synced_to_the_log_before_it_is_acknowledged() {
        let folder = tempfile::tempdir().expect("a folder");
        let conn = writer(&folder.path().join("store.db"), &Options::default()).expect("a store");
        let number = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        assert_eq!(number("synchronous"), Ok(2), "FULL");
        assert_eq!(number("auto_vacuum"), Ok(2), "INCREMENTAL");
        assert_eq!(number("busy_timeout"), Ok(5000));
        let mode = conn.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
        assert_eq!(mode.as_deref(), Ok("wal"));
    }
}
