//! Threads and messages in SQLite.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use stafette_core::Time;

use super::{Base, SqliteError, quoted};
use crate::graph::words;
use crate::history::{
    HistoryError, Hit, LONGEST_BODY, LONGEST_TITLE, Message, PAGE, Piece, Said, Thread,
    ThreadFilter,
};

/// The marks around a match in a snippet: characters that no text needs.
const MARKS: (char, char) = ('\u{2}', '\u{3}');

/// Threads and their messages in a SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteHistory {
    base: Base,
}

impl From<rusqlite::Error> for HistoryError {
    fn from(error: rusqlite::Error) -> Self {
        SqliteError::from(error).into()
    }
}

fn measured(what: &'static str, text: &str, limit: usize) -> Result<(), HistoryError> {
    match text.len() {
        bytes if (1..=limit).contains(&bytes) => Ok(()),
        bytes => Err(HistoryError::Length { what, bytes, limit }),
    }
}

/// Checks the lengths of a thread's texts; returns its extra data as text.
fn fit_thread(thread: &Thread) -> Result<String, HistoryError> {
    let meta = serde_json::to_string(&thread.meta)
        .map_err(|error| HistoryError::Failed { why: error.to_string() })?;
    for (what, text) in [("id", &thread.id), ("module", &thread.module), ("title", &thread.title)] {
        measured(what, text, LONGEST_TITLE)?;
    }
    measured("meta", &meta, LONGEST_BODY)?;
    Ok(meta)
}

fn fit_message(said: &Said) -> Result<(), HistoryError> {
    measured("id", &said.id, LONGEST_TITLE)?;
    measured("role", &said.role, LONGEST_TITLE)?;
    measured("body", &said.body, LONGEST_BODY)
}

fn put_thread(tx: &Transaction, thread: Thread, meta: &str) -> Result<Thread, HistoryError> {
    tx.prepare_cached(
        "INSERT INTO threads (id, module, title, created_at, meta) \
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO NOTHING",
    )?
    .execute(params![thread.id, thread.module, thread.title, thread.created_at.0, meta])?;
    let kept = find(tx, &thread.id)?;
    let same = kept.module == thread.module && kept.title == thread.title;
    if same { Ok(kept) } else { Err(HistoryError::Taken { id: thread.id }) }
}

fn put_message(tx: &Transaction, said: Said) -> Result<Message, HistoryError> {
    find(tx, &said.thread_id)?;
    tx.prepare_cached(
        "INSERT INTO messages (id, thread_id, seq, role, body, created_at) \
         SELECT ?1, ?2, coalesce(max(seq), 0) + 1, ?3, ?4, ?5 \
         FROM messages WHERE thread_id = ?2 \
         ON CONFLICT (id) DO NOTHING",
    )?
    .execute(params![said.id, said.thread_id, said.role, said.body, said.created_at.0])?;
    let kept = tx
        .prepare_cached(&format!("SELECT {MESSAGE} FROM messages WHERE id = ?1"))?
        .query_row([&said.id], message)?;
    let same = kept.thread_id == said.thread_id && kept.body == said.body;
    if same { Ok(kept) } else { Err(HistoryError::Taken { id: said.id }) }
}

impl SqliteHistory {
    /// Opens the history in this file.
    #[must_use]
    pub fn new(base: Base) -> Self {
        SqliteHistory { base }
    }

    /// Opens a thread; an existing one with this id stays as it is.
    ///
    /// # Errors
    /// If a text is empty or too long, or the id belongs to another thread.
    pub async fn open(&self, thread: Thread) -> Result<Thread, HistoryError> {
        let meta = fit_thread(&thread)?;
        self.base.write(move |tx: &Transaction| put_thread(tx, thread, &meta)).await
    }

    /// Opens a thread, if it does not exist, and appends a message: both or neither.
    ///
    /// # Errors
    /// As [`SqliteHistory::open`] and [`SqliteHistory::append`].
    pub async fn begin(&self, thread: Thread, said: Said) -> Result<Message, HistoryError> {
        let meta = fit_thread(&thread)?;
        fit_message(&said)?;
        let write = move |tx: &Transaction| {
            put_thread(tx, thread, &meta)?;
            put_message(tx, said)
        };
        self.base.write(write).await
    }

    /// Appends a message to its thread.
    ///
    /// # Errors
    /// If there is no such thread, a text is empty or too long, or the id belongs to another
    /// message.
    pub async fn append(&self, said: Said) -> Result<Message, HistoryError> {
        fit_message(&said)?;
        self.base.write(move |tx: &Transaction| put_message(tx, said)).await
    }

    /// Returns one thread.
    pub async fn thread(&self, id: &str) -> Result<Thread, HistoryError> {
        let id = id.to_owned();
        self.base.read(move |conn| find(conn, &id)).await
    }

    /// Returns threads, newest first.
    ///
    /// # Errors
    /// If the thread in `filter.after` does not exist.
    pub async fn threads(
        &self,
        filter: ThreadFilter,
        limit: usize,
    ) -> Result<Vec<Thread>, HistoryError> {
        let read = move |conn: &Connection| {
            let after = match &filter.after {
                Some(id) => find(conn, id).map(|thread| (thread.created_at.0, thread.id))?,
                None => (i64::MAX, String::new()),
            };
            let mut found = conn.prepare_cached(
                "SELECT id, module, title, created_at, meta FROM threads \
                 WHERE (created_at, id) < (?1, ?2) AND (?3 IS NULL OR module = ?3) \
                 ORDER BY created_at DESC, id DESC LIMIT ?4",
            )?;
            let rows =
                found.query_map(params![after.0, after.1, filter.module, page(limit)], thread)?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.base.read(read).await
    }

    /// Returns messages of a thread in order, those with a larger number than `after`.
    ///
    /// # Errors
    /// If there is no such thread.
    pub async fn messages(
        &self,
        thread: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Message>, HistoryError> {
        let thread = thread.to_owned();
        let read = move |conn: &Connection| {
            find(conn, &thread)?;
            let mut found = conn.prepare_cached(&format!(
                "SELECT {MESSAGE} FROM messages WHERE thread_id = ?1 AND seq > ?2 \
                 ORDER BY seq LIMIT ?3"
            ))?;
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            let rows = found.query_map(params![thread, after, page(limit)], message)?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.base.read(read).await
    }

    /// Returns messages that contain all of these words, the best first; the last word may be a
    /// prefix.
    ///
    /// # Errors
    /// If SQLite fails.
    pub async fn search(
        &self,
        text: &str,
        module: Option<&str>,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<Hit>, HistoryError> {
        let words = words(text);
        let module = module.map(str::to_owned);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let query = quoted(&words, !text.ends_with(char::is_whitespace));
        let read = move |conn: &Connection| {
            let mut found = conn.prepare_cached(
                "SELECT t.id, t.title, t.module, m.id, m.seq, m.role, m.created_at, \
                 snippet(message_words, 0, ?1, ?2, '…', 16) \
                 FROM message_words JOIN messages m ON m.n = message_words.rowid \
                 JOIN threads t ON t.id = m.thread_id \
                 WHERE message_words MATCH ?3 AND (?4 IS NULL OR t.module = ?4) \
                 ORDER BY message_words.rank, m.n DESC LIMIT ?5 OFFSET ?6",
            )?;
            let (begin, end) = (MARKS.0.to_string(), MARKS.1.to_string());
            let skip = i64::try_from(skip).unwrap_or(i64::MAX);
            let rows =
                found.query_map(params![begin, end, query, module, page(limit), skip], hit)?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.base.read(read).await
    }
}

const MESSAGE: &str = "id, thread_id, seq, role, body, created_at";

fn page(limit: usize) -> i64 {
    i64::try_from(limit.clamp(1, PAGE)).unwrap_or(1)
}

fn find(conn: &Connection, id: &str) -> Result<Thread, HistoryError> {
    let found = conn
        .prepare_cached("SELECT id, module, title, created_at, meta FROM threads WHERE id = ?1")?
        .query_row([id], thread)
        .optional()?;
    found.ok_or_else(|| HistoryError::NoThread { thread: id.to_owned() })
}

fn thread(row: &Row) -> rusqlite::Result<Thread> {
    let meta: String = row.get(4)?;
    Ok(Thread {
        id: row.get(0)?,
        module: row.get(1)?,
        title: row.get(2)?,
        created_at: Time(row.get(3)?),
        meta: serde_json::from_str(&meta).unwrap_or_default(),
    })
}

fn message(row: &Row) -> rusqlite::Result<Message> {
    Ok(Message {
        id: row.get(0)?,
        thread_id: row.get(1)?,
        seq: row.get(2)?,
        role: row.get(3)?,
        body: row.get(4)?,
        created_at: Time(row.get(5)?),
    })
}

fn hit(row: &Row) -> rusqlite::Result<Hit> {
    let snippet: String = row.get(7)?;
    Ok(Hit {
        thread_id: row.get(0)?,
        title: row.get(1)?,
        module: row.get(2)?,
        message: row.get(3)?,
        seq: row.get(4)?,
        role: row.get(5)?,
        created_at: Time(row.get(6)?),
        snippet: pieces(&snippet),
    })
}

fn pieces(marked: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut hit = false;
    for text in marked.split_inclusive([MARKS.0, MARKS.1]) {
        let plain = text.trim_end_matches([MARKS.0, MARKS.1]);
        if !plain.is_empty() {
            pieces.push(Piece { text: plain.to_owned(), hit });
        }
        hit = text.ends_with(MARKS.0) || (hit && !text.ends_with(MARKS.1));
    }
    pieces
}
