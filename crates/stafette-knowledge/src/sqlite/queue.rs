//! Batches that wait for a graph, in SQLite.

use rusqlite::{OptionalExtension, params};

use super::{Base, SqliteError};
use crate::graph::{Batch, GraphError, SetAside, corrupt};

/// The waiting batches, in order.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    base: Base,
}

impl From<SqliteError> for GraphError {
    fn from(fault: SqliteError) -> Self {
        GraphError::Failed { why: fault.to_string() }
    }
}

impl From<rusqlite::Error> for GraphError {
    fn from(error: rusqlite::Error) -> Self {
        SqliteError::from(error).into()
    }
}

impl Queue {
    pub(crate) fn new(base: Base) -> Self {
        Queue { base }
    }

    /// Appends a batch. One that already waits is not added again.
    pub(crate) async fn add(&self, batch: Batch, most: u64) -> Result<(), GraphError> {
        let write = move |tx: &rusqlite::Transaction| {
            let waiting: u64 =
                tx.query_row("SELECT count(*) FROM waiting", [], |row| row.get(0))?;
            if waiting >= most {
                return Err(GraphError::QueueFull { waiting });
            }
            let (digest, text) = (batch.digest(), json(&batch)?);
            let before: Option<String> = tx
                .query_row("SELECT digest FROM waiting WHERE key = ?1", [&batch.key], |r| r.get(0))
                .optional()?;
            match before {
                Some(before) if before == digest => return Ok(()),
                Some(_) => return Err(GraphError::KeyReused { key: batch.key }),
                None => {}
            }
            tx.prepare_cached("INSERT INTO waiting (key, digest, batch) VALUES (?1, ?2, ?3)")?
                .execute(params![batch.key, digest, text])?;
            Ok(())
        };
        self.base.write(write).await
    }

    /// Returns the next batch to write.
    pub(crate) async fn first(&self) -> Result<Option<(i64, Batch)>, GraphError> {
        let read = |conn: &rusqlite::Connection| {
            let found = conn
                .prepare_cached("SELECT n, batch FROM waiting ORDER BY n LIMIT 1")?
                .query_row([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))
                .optional()?;
            found.map(|(n, text)| Ok((n, parse(&text)?))).transpose()
        };
        self.base.read(read).await
    }

    pub(crate) async fn done(&self, place: i64) -> Result<(), GraphError> {
        let write = move |tx: &rusqlite::Transaction| {
            tx.prepare_cached("DELETE FROM waiting WHERE n = ?1")?.execute([place])?;
            Ok(())
        };
        self.base.write(write).await
    }

    pub(crate) async fn set_aside(&self, place: i64, why: String) -> Result<(), GraphError> {
        let write = move |tx: &rusqlite::Transaction| {
            tx.execute(
                "INSERT INTO set_aside (key, batch, why) \
                 SELECT key, batch, ?2 FROM waiting WHERE n = ?1",
                params![place, why],
            )?;
            tx.execute("DELETE FROM waiting WHERE n = ?1", [place])?;
            Ok(())
        };
        self.base.write(write).await
    }

    /// Returns the numbers of waiting batches and of those set aside.
    pub(crate) async fn count(&self) -> Result<(u64, u64), GraphError> {
        let read = |conn: &rusqlite::Connection| {
            let text = "SELECT (SELECT count(*) FROM waiting), (SELECT count(*) FROM set_aside)";
            let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
            Ok(conn.prepare_cached(text)?.query_row([], row)?)
        };
        self.base.read(read).await
    }

    pub(crate) async fn set_aside_ones(&self) -> Result<Vec<SetAside>, GraphError> {
        let read = |conn: &rusqlite::Connection| {
            let mut found =
                conn.prepare_cached("SELECT batch, why FROM set_aside ORDER BY n LIMIT 1000")?;
            let rows = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let rows = rows.collect::<Result<Vec<(String, String)>, _>>()?;
            rows.into_iter().map(|(text, why)| Ok(SetAside { batch: parse(&text)?, why })).collect()
        };
        self.base.read(read).await
    }
}

fn json(batch: &Batch) -> Result<String, GraphError> {
    serde_json::to_string(batch).map_err(|error| corrupt("a batch", error))
}

fn parse(text: &str) -> Result<Batch, GraphError> {
    serde_json::from_str(text).map_err(|error| corrupt("a batch", error))
}
