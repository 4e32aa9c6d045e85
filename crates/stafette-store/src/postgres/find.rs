//! Full-text index in the same database: words as a `tsvector`, found by a GIN index.

use std::sync::Arc;
use std::time::Duration;

use stafette_model::{HandoffId, RunId, Time};
use tokio_postgres::Row;

use super::fault::PostgresError;
use super::link::{
    BEGIN, Columns, Link, column, count, number, only, params, signed, text as read_text,
};
use super::pool::Pool;
use crate::words::{self, Query};
use crate::{BackendError, FindError, Finder, Finding, Reply, Text};

/// Time limit of a query or of adding texts.
const WITHIN: Duration = Duration::from_secs(30);

const PLACE: &str = "SELECT position FROM indexed FOR UPDATE";
const MOVE: &str = "UPDATE indexed SET position = $1";
const FILE: &str = "SELECT coalesce(max(bytes), 0) FROM indexed_files WHERE path = $1";
const NOTE: &str = "INSERT INTO indexed_files (path, bytes) VALUES ($1, $2) \
     ON CONFLICT (path) DO UPDATE SET bytes = excluded.bytes";
const ADD: &str = "INSERT INTO texts (run, seq, handoff, at, kind, who, body, words) \
     SELECT run, seq, handoff, at, kind, who, body, words::tsvector \
     FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::int8[], $5::bytea[], $6::bytea[], \
                 $7::bytea[], $8::text[]) \
         AS ours (run, seq, handoff, at, kind, who, body, words)";
const FIND: &str = "SELECT run, seq, handoff, at, kind, who, body \
     FROM texts, CAST($1::text AS tsquery) AS wanted WHERE words @@ wanted \
     ORDER BY ts_rank(words, wanted, 1) DESC, id DESC LIMIT $2";
const FORGET: &str = "DELETE FROM texts WHERE run = $1";

/// A full-text index in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresFinder {
    pool: Arc<Pool>,
}

impl PostgresFinder {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        PostgresFinder { pool }
    }

    /// Safe to repeat: the recorded position shows whether a write took place.
    fn run<T: Send + 'static>(
        &self,
        query: impl for<'a> Fn(&'a mut Link) -> Reply<'a, Result<T, PostgresError>>
        + Send
        + Sync
        + 'static,
    ) -> Finding<'_, T> {
        Box::pin(async move {
            let answer = self.pool.read(WITHIN, query).await;
            answer.map_err(|trouble| FindError {
                place: self.pool.place(),
                source: BackendError::new(trouble),
            })
        })
    }
}

impl Finder for PostgresFinder {
    fn position(&self) -> Finding<'_, u64> {
        self.run(|link| Box::pin(link.number("SELECT position FROM indexed")))
    }

    fn add(&self, position: u64, texts: Vec<Text>) -> Finding<'_, ()> {
        let texts = Arc::new(texts);
        self.run(move |link| {
            let texts = texts.clone();
            Box::pin(async move {
                let answers = link.together(BEGIN, &[(PLACE, &[])], "").await?;
                if number(only(&answers[0])?, 0)? >= position {
                    return link.plain("ROLLBACK").await;
                }
                let columns = columns(&texts);
                let position = signed(position);
                let steps = [(ADD, &params(&columns)[..]), (MOVE, &[&position])];
                link.together("", &steps, "COMMIT").await.map(drop)
            })
        })
    }

    fn read_of(&self, file: String) -> Finding<'_, u64> {
        self.run(move |link| {
            let file = file.clone();
            Box::pin(async move {
                let row = link.one(FILE, &[&file.as_bytes()]).await?;
                row.map_or(Ok(0), |row| number(&row, 0))
            })
        })
    }

    fn add_of(&self, file: String, bytes: u64, texts: Vec<Text>) -> Finding<'_, ()> {
        let given = Arc::new((file, texts));
        self.run(move |link| {
            let given = given.clone();
            Box::pin(async move {
                let (file, bytes) = (given.0.as_bytes(), signed(bytes));
                let answers = link.together(BEGIN, &[(PLACE, &[]), (FILE, &[&file])], "").await?;
                if only(&answers[1])?.try_get::<_, i64>(0)? == bytes {
                    return link.plain("ROLLBACK").await;
                }
                let columns = columns(&given.1);
                let steps = [(ADD, &params(&columns)[..]), (NOTE, &[&file, &bytes])];
                link.together("", &steps, "COMMIT").await.map(drop)
            })
        })
    }

    fn find(&self, words: String, limit: usize) -> Finding<'_, Vec<Text>> {
        let Some(query) = Query::of(&words) else {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        };
        let query = Arc::new(query);
        self.run(move |link| {
            let query = query.clone();
            Box::pin(async move {
                let rows = link.ask(FIND, &[&query.tsquery(), &count(limit)]).await?;
                let cut = |row| {
                    let text = text(row)?;
                    Ok(Text { body: query.excerpt(&text.body), ..text })
                };
                rows.iter().map(cut).collect()
            })
        })
    }

    fn forget(&self, run: RunId) -> Finding<'_, ()> {
        self.run(move |link| Box::pin(async move { link.ask(FORGET, &[&run.0]).await.map(drop) }))
    }
}

fn columns(texts: &[Text]) -> Columns<'_> {
    let texts: Vec<&Text> = texts.iter().collect();
    vec![
        column(&texts, |text| text.run.0),
        column(&texts, |text| signed(text.seq)),
        column(&texts, |text| text.handoff.map(|id| i64::from(id.0))),
        column(&texts, |text| text.at.0),
        column(&texts, |text| text.kind.as_bytes()),
        column(&texts, |text| text.who.as_bytes()),
        column(&texts, |text| text.body.as_bytes()),
        column(&texts, |text| words::vector(&text.body)),
    ]
}

fn text(row: &Row) -> Result<Text, PostgresError> {
    let handoff: Option<i64> = row.try_get(2)?;
    Ok(Text {
        run: RunId(row.try_get(0)?),
        seq: number(row, 1)?,
        handoff: handoff.and_then(|id| u32::try_from(id).ok()).map(HandoffId),
        at: Time(row.try_get(3)?),
        kind: read_text(row, 4)?,
        who: read_text(row, 5)?,
        body: read_text(row, 6)?,
    })
}
