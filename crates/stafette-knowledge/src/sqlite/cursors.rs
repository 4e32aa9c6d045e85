//! The positions of followers, in the same file as the data they write.

use rusqlite::{OptionalExtension, params};
use thiserror::Error;

use super::{Base, SqliteError};

/// Stores positions by name.
#[derive(Clone, Debug)]
pub struct Cursors {
    base: Base,
}

/// A position could not be read or stored.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the position could not be kept: {why}")]
pub struct CursorError {
    /// The error message of the store.
    pub why: String,
}

impl From<SqliteError> for CursorError {
    fn from(fault: SqliteError) -> Self {
        CursorError { why: fault.to_string() }
    }
}

impl From<rusqlite::Error> for CursorError {
    fn from(error: rusqlite::Error) -> Self {
        SqliteError::from(error).into()
    }
}

impl Cursors {
    /// Opens the positions in this file.
    #[must_use]
    pub fn new(base: Base) -> Self {
        Cursors { base }
    }

    /// Returns the position of `name`; `None` before its first one.
    pub async fn get(&self, name: &str) -> Result<Option<u64>, CursorError> {
        let name = name.to_owned();
        let read = move |conn: &rusqlite::Connection| {
            let found = conn
                .prepare_cached("SELECT position FROM cursors WHERE name = ?1")?
                .query_row([name], |row| row.get(0))
                .optional()?;
            Ok::<_, CursorError>(found)
        };
        self.base.read(read).await
    }

    /// Stores the position of `name`.
    pub async fn set(&self, name: &str, position: u64) -> Result<(), CursorError> {
        let name = name.to_owned();
        let write = move |tx: &rusqlite::Transaction| {
            tx.prepare_cached(
                "INSERT INTO cursors (name, position) VALUES (?1, ?2) \
                 ON CONFLICT (name) DO UPDATE SET position = excluded.position",
            )?
            .execute(params![name, position])?;
            Ok::<_, CursorError>(())
        };
        self.base.write(write).await
    }
}
