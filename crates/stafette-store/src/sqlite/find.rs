//! Full text: a file of its own beside the store, made from the events and made again when it is
//! gone.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row, params};
use stafette_core::{HandoffId, RunId, Time};
use thiserror::Error;
use uuid::Uuid;

use crate::Fault;

/// The tables; another version is made anew.
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

/// The most words that are looked for at once.
const WORDS: usize = 32;

/// A text that can be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// The run that it belongs to.
    pub run: RunId,
    /// The event that it is from.
    pub seq: u64,
    /// The handoff that it is about.
    pub handoff: Option<HandoffId>,
    /// When it was said.
    pub at: Time,
    /// What it is, such as the event's name.
    pub kind: String,
    /// Who said it.
    pub who: String,
    /// The words.
    pub body: String,
}

/// The index cannot be used.
#[derive(Debug, Error)]
#[error("{} cannot be searched", path.display())]
pub struct FindError {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    pub source: Fault,
}

/// An index of texts.
#[derive(Debug)]
pub struct Finder {
    path: PathBuf,
    conn: Mutex<Connection>,
}

impl Finder {
    /// Opens the index and makes it when it is missing, broken or of another version. `head` is
    /// the last event of the store: an index that knows more is of another one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(path: &Path, head: u64) -> Result<Self, FindError> {
        let wrap = |error| FindError { path: path.to_owned(), source: Fault::new(error) };
        let conn = match usable(path, head) {
            Ok(Some(conn)) => conn,
            Ok(None) | Err(_) => {
                for end in ["", "-wal", "-shm"] {
                    let mut name = path.as_os_str().to_owned();
                    name.push(end);
                    // Missing is as good as removed.
                    let _ = std::fs::remove_file(PathBuf::from(name));
                }
                make(path).map_err(wrap)?
            }
        };
        Ok(Finder { path: path.to_owned(), conn: Mutex::new(conn) })
    }

    /// The last event that is in it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn position(&self) -> Result<u64, FindError> {
        let conn = self.lock();
        conn.query_row("SELECT position FROM place", [], |row| row.get(0)).map_err(self.wrap())
    }

    /// Adds texts, and notes that everything up to `position` is in it.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is noted.
    pub fn add(&self, position: u64, texts: &[Text]) -> Result<(), FindError> {
        let mut conn = self.lock();
        let write = |conn: &mut Connection| {
            let tx = conn.transaction()?;
            for text in texts {
                insert(&tx, text)?;
            }
            tx.execute("UPDATE place SET position = ?1", [position])?;
            tx.commit()
        };
        write(&mut conn).map_err(self.wrap())
    }

    /// How many bytes of a file are in it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_of(&self, file: &str) -> Result<u64, FindError> {
        let conn = self.lock();
        let sql = "SELECT coalesce(max(bytes), 0) FROM files WHERE path = ?1";
        conn.query_row(sql, [file], |row| row.get(0)).map_err(self.wrap())
    }

    /// Adds a text of a file, and notes how many bytes of that are in it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_of(&self, file: &str, bytes: u64, text: &Text) -> Result<(), FindError> {
        let mut conn = self.lock();
        let write = |conn: &mut Connection| {
            let tx = conn.transaction()?;
            insert(&tx, text)?;
            let sql = "INSERT INTO files (path, bytes) VALUES (?1, ?2)
                       ON CONFLICT (path) DO UPDATE SET bytes = excluded.bytes";
            tx.execute(sql, params![file, bytes])?;
            tx.commit()
        };
        write(&mut conn).map_err(self.wrap())
    }

    /// Texts with all of these words, the best first, each cut to the part with the words, which
    /// stand in brackets. The last word may be unfinished.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn find(&self, words: &str, limit: usize) -> Result<Vec<Text>, FindError> {
        let Some(query) = query(words) else { return Ok(Vec::new()) };
        let conn = self.lock();
        let read = || {
            let mut statement = conn.prepare_cached(
                "SELECT run, seq, handoff, at, kind, who, snippet(texts, 0, '[', ']', '…', 24)
                 FROM texts WHERE texts MATCH ?1 ORDER BY rank, rowid DESC LIMIT ?2",
            )?;
            statement
                .query_map(params![query, limit], found)?
                .collect::<rusqlite::Result<Vec<Text>>>()
        };
        read().map_err(self.wrap())
    }

    /// Drops the texts of a run that is gone.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn forget(&self, run: RunId) -> Result<(), FindError> {
        let conn = self.lock();
        let done = conn.execute("DELETE FROM texts WHERE run = ?1", [run.0.as_bytes()]);
        done.map(drop).map_err(self.wrap())
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrap(&self) -> impl Fn(rusqlite::Error) -> FindError + '_ {
        |error| FindError { path: self.path.clone(), source: Fault::new(error) }
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
    let conn = Connection::open_with_flags(path, flags)?;
    tune(&conn)?;
    conn.execute_batch(TABLES)?;
    conn.pragma_update(None, "user_version", VERSION)?;
    Ok(conn)
}

fn tune(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // What is lost by a power failure is made again from the events.
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

/// Words as a query: what people type is never an operator.
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

    fn text(run: u128, seq: u64, body: &str) -> Text {
        Text {
            run: RunId(Uuid::from_u128(run)),
            seq,
            handoff: Some(HandoffId(2)),
            at: Time(7),
            kind: "handoff_admitted".into(),
            who: "planner".into(),
            body: body.into(),
        }
    }

    #[test]
    fn b_17_all_words_are_found_in_any_order_and_the_last_may_be_unfinished() {
        let folder = tempfile::tempdir().expect("a folder");
        let finder = Finder::open(&folder.path().join("find.db"), 9).expect("opened");
        let texts = [text(1, 3, "Add JWT login to the café"), text(1, 4, "The login is slow")];
        finder.add(4, &texts).expect("added");
        let found = finder.find("login jw", 10).expect("found");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].seq, found[0].handoff), (3, Some(HandoffId(2))));
        assert_eq!(found[0].body, "Add [JWT] [login] to the café");
        assert_eq!(finder.find("cafe", 10).expect("found").len(), 1);
        for odd in ["\"", "a AND", "NEAR(", "-x *", "* ^", "body:login", "' OR 1=1 --", ""] {
            finder.find(odd, 10).unwrap_or_else(|error| panic!("{odd}: {error:?}"));
        }
        finder.forget(RunId(Uuid::from_u128(1))).expect("forgotten");
        assert_eq!(finder.find("login", 10).expect("found"), []);
    }

    #[test]
    fn b_17_the_index_goes_on_where_it_was_or_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("find.db");
        let open = |head| Finder::open(&path, head).expect("opened");
        open(9).add(7, &[text(1, 3, "x")]).expect("added");
        assert_eq!(open(9).position().expect("read"), 7);
        assert_eq!(open(5).position().expect("read"), 0, "the store is another one");
        std::fs::write(&path, "not a database, and long enough to be looked at").expect("broken");
        assert_eq!(open(9).position().expect("read"), 0);
    }
}
