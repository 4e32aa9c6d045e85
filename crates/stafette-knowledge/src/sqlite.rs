//! One SQLite file for all knowledge: history, graph, the queue for another graph, and the versions
//! of learned parameters. The only place that knows `rusqlite`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use thiserror::Error;

mod cursors;
mod graph;
mod history;
mod proposals;
mod queue;
mod versions;

pub use cursors::{CursorError, Cursors};
pub use graph::SqliteGraph;
pub use history::SqliteHistory;
pub use proposals::{SqliteProposals, Wish};
pub(crate) use queue::Queue;
pub use versions::{Versions, VersionsError};

/// Marks the file as ours: `STAK`.
const APPLICATION_ID: i32 = 0x5354_414b;

/// Step n migrates tables of version n to version n + 1. A released step never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("sqlite/schema/1.sql"),
    include_str!("sqlite/schema/2.sql"),
    include_str!("sqlite/schema/3.sql"),
];

/// The time that another process may lock the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// The number of parallel readers.
const READERS: usize = 4;

/// The file could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{} is another program's database", path.display())]
    NotOurs { path: PathBuf },
    /// A newer version of the program wrote the file. It was not changed.
    #[error("{} was written by a newer version: its tables are {found}, known are {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("{} could not be opened: {why}", path.display())]
    Failed { path: PathBuf, why: String },
}

/// The error message of SQLite, for callers that wrap it into their own errors.
#[derive(Debug)]
pub(crate) struct SqliteError(String);

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        SqliteError(error.to_string())
    }
}

/// The open database file. Clones share it.
#[derive(Clone)]
pub struct Base(Arc<Inner>);

struct Inner {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Base").field(&self.0.path).finish()
    }
}

impl Base {
    /// Opens the file, and creates it if there is none.
    ///
    /// # Errors
    /// If it is not ours, newer than this program, or unusable.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |error: rusqlite::Error| OpenError::Failed {
            path: path.to_owned(),
            why: error.to_string(),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut conn = Connection::open_with_flags(path, flags).map_err(failed)?;
        conn.busy_timeout(PATIENCE).map_err(failed)?;
        identify(&conn, path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(path, mode).map_err(|error| OpenError::Failed {
                path: path.to_owned(),
                why: error.to_string(),
            })?;
        }
        conn.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        conn.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        conn.pragma_update(None, "fullfsync", true).map_err(failed)?;
        conn.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        conn.pragma_update(None, "journal_size_limit", 16 << 20).map_err(failed)?;
        conn.set_prepared_statement_cache_capacity(64);
        migrate(&mut conn).map_err(failed)?;
        let inner = Inner {
            path: path.to_owned(),
            writer: Mutex::new(conn),
            readers: Mutex::new(Vec::new()),
        };
        Ok(Base(Arc::new(inner)))
    }

    /// Runs `work` on a blocking thread with a read-only connection.
    async fn read<T, E>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<SqliteError> + Send + 'static,
    {
        let base = self.0.clone();
        blocking(move || {
            let free = base.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let conn = match free {
                Some(conn) => conn,
                None => reader(&base.path).map_err(SqliteError::from)?,
            };
            // One transaction: all queries see the same state.
            let answer = conn
                .unchecked_transaction()
                .map_err(|error| E::from(SqliteError::from(error)))
                .and_then(|tx| work(&tx));
            let mut free = base.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if free.len() < READERS {
                free.push(conn);
            }
            answer
        })
        .await
    }

    /// Runs `work` in a transaction on the one connection that writes: all of it is stored, or
    /// nothing.
    async fn write<T, E>(
        &self,
        work: impl FnOnce(&Transaction) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<SqliteError> + Send + 'static,
    {
        let base = self.0.clone();
        blocking(move || {
            // A panic in between has rolled its transaction back, so the connection is still
            // usable.
            let mut conn = base.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let behavior = TransactionBehavior::Immediate;
            let tx = conn.transaction_with_behavior(behavior).map_err(SqliteError::from)?;
            let answer = work(&tx)?;
            tx.commit().map_err(SqliteError::from)?;
            Ok(answer)
        })
        .await
    }
}

async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<SqliteError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(error) => Err(SqliteError(format!("the work broke off: {error}")).into()),
    }
}

fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(PATIENCE)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

fn identify(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| OpenError::Failed {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let number = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (owner, found) =
        (number("application_id").map_err(failed)?, number("user_version").map_err(failed)?);
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    match owner {
        0 if tables == 0 => Ok(()),
        APPLICATION_ID if found > known => {
            Err(OpenError::Newer { path: path.to_owned(), found, known })
        }
        APPLICATION_ID => Ok(()),
        _ => Err(OpenError::NotOurs { path: path.to_owned() }),
    }
}

fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: u32 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in MIGRATIONS.iter().skip(found as usize) {
        tx.execute_batch(step)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX))?;
    tx.commit()
}

/// Quotes words for FTS5, so that nothing in them is read as its syntax.
fn quoted(words: &[String], last_begins: bool) -> String {
    let mut query: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    if let Some(last) = query.last_mut().filter(|_| last_begins) {
        last.push('*');
    }
    query.join(" ")
}
