//! Full-text index: a separate file beside the store, built from the events and rebuilt if it is
//! lost.

use std::future::ready;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row, params};
use stafette_model::{HandoffId, RunId, Time};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::{BackendError, FindError, Finder, Finding, Text};

/// Version of the tables; a file of another version is rebuilt.
const VERSION: u32 = 1;
const TABLES: &str = "
    CREATE VIRTUAL TABLE texts USING fts5 (
        body, run UNINDEXED, seq UNINDEXED, handoff UNINDEXED, at UNINDEXED, kind UNINDEXED,
        who UNINDEXED, tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TABLE place (one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1), position INTEGER NOT NULL) STRICT;
    INSERT INTO place (one, position) VALUES (1, 0);
    CREATE TABLE files (path TEXT NOT NULL PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
";

/// Maximum number of words in one search.
const WORDS: usize = 32;

/// A full-text index in a separate file.
#[derive(Debug)]
pub struct SqliteFinder {
    path: PathBuf,
    conn: Arc<Mutex<Connection>>,
}

impl SqliteFinder {
    /// Opens the index, and rebuilds it if it is missing, broken or of another version. `head` is
    /// the last position of the store: an index that is ahead of it belongs to another store.
    pub fn open(path: &Path, head: u64) -> Result<Self, FindError> {
        let conn = match usable(path, head) {
            Ok(Some(conn)) => conn,
            Ok(None) | Err(_) => {
                for end in ["", "-wal", "-shm"] {
                    let mut name = path.as_os_str().to_owned();
                    name.push(end);
                    // A missing file is as good as a removed one.
                    let _ = std::fs::remove_file(PathBuf::from(name));
                }
                make(path).map_err(|error| trouble(path, error))?
            }
        };
        Ok(SqliteFinder { path: path.to_owned(), conn: Arc::new(Mutex::new(conn)) })
    }

    /// Runs work on a blocking thread.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Finding<'_, T> {
        let conn = self.conn.clone();
        let task =
            spawn_blocking(move || work(&mut conn.lock().unwrap_or_else(PoisonError::into_inner)));
        Box::pin(async move {
            // The task is never cancelled, and a panic there is resumed here.
            let answer = task.await;
            let answer = answer.unwrap_or_else(|error| resume_unwind(error.into_panic()));
            answer.map_err(|error| trouble(&self.path, error))
        })
    }
}

fn trouble(path: &Path, error: rusqlite::Error) -> FindError {
    FindError { place: path.display().to_string(), source: BackendError::new(error) }
}

impl Finder for SqliteFinder {
    fn position(&self) -> Finding<'_, u64> {
        self.run(|conn| conn.query_row("SELECT position FROM place", [], |row| row.get(0)))
    }

    fn add(&self, position: u64, texts: Vec<Text>) -> Finding<'_, ()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            for text in &texts {
                insert(&tx, text)?;
            }
            tx.execute("UPDATE place SET position = ?1", [position])?;
            tx.commit()
        })
    }

    fn read_of(&self, file: String) -> Finding<'_, u64> {
        self.run(move |conn| {
            let sql = "SELECT coalesce(max(bytes), 0) FROM files WHERE path = ?1";
            conn.query_row(sql, [file], |row| row.get(0))
        })
    }

    fn add_of(&self, file: String, bytes: u64, texts: Vec<Text>) -> Finding<'_, ()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            for text in &texts {
                insert(&tx, text)?;
            }
            let sql = "INSERT INTO files (path, bytes) VALUES (?1, ?2)
                       ON CONFLICT (path) DO UPDATE SET bytes = excluded.bytes";
            tx.execute(sql, params![file, bytes])?;
            tx.commit()
        })
    }

    fn find(&self, words: String, limit: usize) -> Finding<'_, Vec<Text>> {
        let Some(query) = query(&words) else { return Box::pin(ready(Ok(Vec::new()))) };
        self.run(move |conn| {
            let mut statement = conn.prepare_cached(
                "SELECT run, seq, handoff, at, kind, who, snippet(texts, 0, '[', ']', '…', 24)
                 FROM texts WHERE texts MATCH ?1 ORDER BY rank, rowid DESC LIMIT ?2",
            )?;
            statement
                .query_map(params![query, limit], found)?
                .collect::<rusqlite::Result<Vec<Text>>>()
        })
    }

    fn forget(&self, run: RunId) -> Finding<'_, ()> {
        self.run(move |conn| {
            conn.execute("DELETE FROM texts WHERE run = ?1", [run.0.as_bytes()]).map(drop)
        })
    }
}

fn usable(path: &Path, head: u64) -> rusqlite::Result<Option<Connection>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    tune(&conn)?;
    let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let position: u64 = conn.query_row("SELECT position FROM place", [], |row| row.get(0))?;
    Ok((version == VERSION && position <= head).then_some(conn))
}

fn make(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // SQLite itself would let others read it; why it cannot be made, it says better.
    drop(stafette_disk::private().write(true).create(true).truncate(false).open(path));
    let conn = Connection::open_with_flags(path, flags)?;
    tune(&conn)?;
    conn.execute_batch(TABLES)?;
    conn.pragma_update(None, "user_version", VERSION)?;
    Ok(conn)
}

fn tune(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // Data lost in a power failure is rebuilt from the events.
    conn.pragma_update(None, "synchronous", "NORMAL")
}

fn insert(conn: &Connection, text: &Text) -> rusqlite::Result<usize> {
    conn.prepare_cached(
        "INSERT INTO texts (body, run, seq, handoff, at, kind, who)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        text.body,
        text.run.0.as_bytes(),
        text.seq,
        text.handoff.map(|id| id.0),
        text.at.0,
        text.kind,
        text.who,
    ])
}

fn found(row: &Row<'_>) -> rusqlite::Result<Text> {
    let run: [u8; 16] = row.get(0)?;
    let handoff: Option<u32> = row.get(2)?;
    Ok(Text {
        run: RunId(Uuid::from_bytes(run)),
        seq: row.get(1)?,
        handoff: handoff.map(HandoffId),
        at: Time(row.get(3)?),
        kind: row.get(4)?,
        who: row.get(5)?,
        body: row.get(6)?,
    })
}

/// Quotes words for a query, so that nothing a person types is an operator.
fn query(words: &str) -> Option<String> {
    let words: Vec<String> = words
        .split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .take(WORDS)
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"").replace('\0', "")))
        .collect();
    (!words.is_empty()).then(|| format!("{} *", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn b_17_the_index_goes_on_where_it_was_or_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("find.db");
        let open = |head| SqliteFinder::open(&path, head).expect("opened");
        let position = async |head| open(head).position().await.expect("read");
        open(9).add(7, Vec::new()).await.expect("added");
        assert_eq!(position(9).await, 7);
        assert_eq!(position(5).await, 0, "the store is another one");
        std::fs::write(&path, "not a database, and long enough to be looked at").expect("broken");
        assert_eq!(position(9).await, 0);
    }
}
