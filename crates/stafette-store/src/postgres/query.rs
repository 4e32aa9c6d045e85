//! Queries that read.

use std::collections::BTreeSet;

use stafette_core::{HandoffId, RunId, Time};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::fault::PostgresError;
use super::link::{LOOK, Link, Params, count, damaged, maybe_text, number, signed, text};
use crate::record::Page;
use crate::{Entry, FIND_LIMIT, HandoffRow, Loaded, RunFilter, RunRow, Snapshot, Stored, digits};

/// Maximum number of entries per query: longer pages take several queries.
const AT_ONCE: usize = 512;

macro_rules! entry {
    () => {
        "position, run, seq, at, name, handoff, body"
    };
}
macro_rules! run {
    () => {
        "run, workflow, title, status, waiting_on, seq, created_at, updated_at, finished_at, body"
    };
}
macro_rules! handoff {
    () => {
        "run, id, giver, taker, reason, state, question, opened_at, updated_at, closed_at, body"
    };
}
/// Selects entries until their bodies reach a size. The server counts, so that no more is sent; the
/// size of a body is known without reading it.
macro_rules! page {
    ($condition:literal, $order:literal) => {
        concat!(
            "SELECT ",
            entry!(),
            " FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY ",
            $order,
            " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before",
            " FROM (SELECT ",
            entry!(),
            " FROM events WHERE ",
            $condition,
            " ORDER BY ",
            $order,
            " LIMIT $1) AS next) AS counted WHERE coalesce(before, 0) < $2 ORDER BY ",
            $order
        )
    };
}

const ENTRIES: &str = page!("run = $3 AND seq > $4", "seq");
const FEED: &str = page!("position > $3", "position");

pub(super) async fn load_at(
    link: &mut Link,
    run: RunId,
    seq: u64,
) -> Result<Option<Loaded>, PostgresError> {
    const KNOWN: &str = "SELECT 1 FROM runs WHERE run = $1";
    const NEWEST: &str = "SELECT seq, body FROM snapshots WHERE run = $1 AND seq <= $2 \
                          ORDER BY seq DESC LIMIT 1";
    const AFTER: &str = concat!(
        "SELECT ",
        entry!(),
        " FROM events WHERE run = $1 AND seq > ",
        "coalesce((SELECT max(seq) FROM snapshots WHERE run = $1 AND seq <= $2), 0) ",
        "AND seq <= $2 ORDER BY seq"
    );
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    // One transaction, so that snapshot and entries are of the same moment.
    let steps: &[(_, Params<'_>)] =
        &[(KNOWN, &[&run.0]), (NEWEST, &[&run.0, &seq]), (AFTER, &[&run.0, &seq])];
    let mut answers = link.together(LOOK, steps, "COMMIT").await?;
    if answers[0].is_empty() {
        return Ok(None);
    }
    let after = answers.pop().unwrap_or_default();
    let snapshot = answers[1]
        .first()
        .map(|row| Ok::<_, PostgresError>(Snapshot { seq: number(row, 0)?, body: text(row, 1)? }));
    Ok(Some(Loaded { snapshot: snapshot.transpose()?, entries: all(after, stored)? }))
}

pub(super) async fn entries(
    link: &mut Link,
    run: RunId,
    after: u64,
    limit: usize,
) -> Result<Vec<Stored>, PostgresError> {
    page(link, ENTRIES, Some(run), after, limit, |stored| stored.entry.seq).await
}

pub(super) async fn feed(
    link: &mut Link,
    after: u64,
    limit: usize,
) -> Result<Vec<Stored>, PostgresError> {
    page(link, FEED, None, after, limit, |stored| stored.position).await
}

pub(super) async fn head(link: &mut Link) -> Result<u64, PostgresError> {
    link.number("SELECT head FROM store").await
}

pub(super) async fn entries_of(
    link: &mut Link,
    run: RunId,
    handoff: HandoffId,
) -> Result<Vec<Stored>, PostgresError> {
    const SQL: &str =
        concat!("SELECT ", entry!(), " FROM events WHERE run = $1 AND handoff = $2 ORDER BY seq");
    all(link.ask(SQL, &[&run.0, &i64::from(handoff.0)]).await?, stored)
}

pub(super) async fn run(link: &mut Link, run: RunId) -> Result<Option<RunRow>, PostgresError> {
    const SQL: &str = concat!("SELECT ", run!(), " FROM runs WHERE run = $1");
    link.one(SQL, &[&run.0]).await?.as_ref().map(run_row).transpose()
}

pub(super) async fn runs(
    link: &mut Link,
    filter: &RunFilter,
) -> Result<Vec<RunRow>, PostgresError> {
    macro_rules! list {
        ($($condition:tt)*) => {
            concat!(
                "SELECT ", run!(), " FROM runs ", $($condition)*
                " ORDER BY created_at DESC, run DESC LIMIT $1"
            )
        };
    }
    macro_rules! after {
        () => {
            "(created_at, run) < (SELECT created_at, run FROM runs WHERE run = $2)"
        };
    }
    const ALL: &str = list!();
    const OF_STATUS: &str = list!("WHERE status = $2",);
    const AFTER: &str = list!("WHERE ", after!(),);
    const OF_STATUS_AFTER: &str = list!("WHERE status = $3 AND ", after!(),);
    let limit = count(filter.limit);
    let status = filter.status.as_ref().map(|status| status.as_bytes());
    let rows = match (&status, &filter.after) {
        (None, None) => link.ask(ALL, &[&limit]).await?,
        (None, Some(last)) => link.ask(AFTER, &[&limit, &last.0]).await?,
        (Some(status), None) => link.ask(OF_STATUS, &[&limit, status]).await?,
        (Some(status), Some(last)) => link.ask(OF_STATUS_AFTER, &[&limit, &last.0, status]).await?,
    };
    all(rows, run_row)
}

pub(super) async fn find_run(link: &mut Link, typed: &str) -> Result<Vec<RunId>, PostgresError> {
    const BEGINS: &str =
        "SELECT run FROM runs WHERE run BETWEEN $1 AND $2 ORDER BY run DESC LIMIT $3";
    const ENDS: &str = "SELECT run FROM runs WHERE tail BETWEEN $1 AND $2 LIMIT $3";
    let Some(digits) = digits::typed(typed) else {
        return Ok(Vec::new());
    };
    let mut found = BTreeSet::new();
    let backwards: String = digits.chars().rev().collect();
    for (sql, digits) in [(BEGINS, &digits), (ENDS, &backwards)] {
        let (low, high) = digits::range(digits);
        let (low, high) = (Uuid::from_bytes(low), Uuid::from_bytes(high));
        found.extend(all(link.ask(sql, &[&low, &high, &count(FIND_LIMIT)]).await?, id)?);
    }
    Ok(found.into_iter().rev().take(FIND_LIMIT).collect())
}

pub(super) async fn handoffs(
    link: &mut Link,
    run: RunId,
) -> Result<Vec<HandoffRow>, PostgresError> {
    const SQL: &str = concat!("SELECT ", handoff!(), " FROM handoffs WHERE run = $1 ORDER BY id");
    all(link.ask(SQL, &[&run.0]).await?, handoff_row)
}

pub(super) async fn handoff(
    link: &mut Link,
    run: RunId,
    id: HandoffId,
) -> Result<Option<HandoffRow>, PostgresError> {
    const SQL: &str = concat!("SELECT ", handoff!(), " FROM handoffs WHERE run = $1 AND id = $2");
    let row = link.one(SQL, &[&run.0, &i64::from(id.0)]).await?;
    row.as_ref().map(handoff_row).transpose()
}

pub(super) async fn questions(link: &mut Link) -> Result<Vec<HandoffRow>, PostgresError> {
    const SQL: &str =
        concat!("SELECT ", handoff!(), " FROM handoffs WHERE question ORDER BY opened_at, run, id");
    all(link.ask(SQL, &[]).await?, handoff_row)
}

pub(super) async fn unfinished(link: &mut Link) -> Result<Vec<RunId>, PostgresError> {
    const SQL: &str = "SELECT run FROM runs WHERE finished_at IS NULL ORDER BY created_at, run";
    all(link.ask(SQL, &[]).await?, id)
}

fn all<T>(
    rows: Vec<Row>,
    read: impl Fn(&Row) -> Result<T, PostgresError>,
) -> Result<Vec<T>, PostgresError> {
    rows.iter().map(read).collect()
}

/// Repeats until the page is full or there are no more entries; entries written meanwhile come
/// later.
async fn page(
    link: &mut Link,
    sql: &'static str,
    run: Option<RunId>,
    after: u64,
    limit: usize,
    cursor: impl Fn(&Stored) -> u64,
) -> Result<Vec<Stored>, PostgresError> {
    let mut page = Page::new(limit);
    let mut after = signed(after);
    while !page.is_full() {
        let (next, bytes) = (count(AT_ONCE.min(page.room())), count(page.bytes_left()));
        let of_run: &(dyn ToSql + Sync);
        let run = run.map(|run| run.0);
        let params: Params<'_> = match &run {
            Some(run) => {
                of_run = run;
                &[&next, &bytes, of_run, &after]
            }
            None => &[&next, &bytes, &after],
        };
        let rows = link.ask(sql, params).await?;
        let Some(last) = rows.last() else { break };
        after = signed(cursor(&stored(last)?));
        for row in &rows {
            page.push(stored(row)?);
        }
    }
    Ok(page.into_entries())
}

fn id(row: &Row) -> Result<RunId, PostgresError> {
    Ok(RunId(row.try_get(0)?))
}

fn moment(row: &Row, column: usize) -> Result<Time, PostgresError> {
    Ok(Time(row.try_get(column)?))
}

fn maybe_moment(row: &Row, column: usize) -> Result<Option<Time>, PostgresError> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Time))
}

fn handoff_id(number: i64) -> Result<HandoffId, PostgresError> {
    let id = u32::try_from(number).map_err(|_| damaged(format!("the handoff {number}")))?;
    Ok(HandoffId(id))
}

fn stored(row: &Row) -> Result<Stored, PostgresError> {
    let handoff: Option<i64> = row.try_get(5)?;
    Ok(Stored {
        position: number(row, 0)?,
        run: RunId(row.try_get(1)?),
        entry: Entry {
            seq: number(row, 2)?,
            at: moment(row, 3)?,
            name: text(row, 4)?,
            handoff: handoff.map(handoff_id).transpose()?,
            body: text(row, 6)?,
        },
    })
}

fn run_row(row: &Row) -> Result<RunRow, PostgresError> {
    Ok(RunRow {
        run: id(row)?,
        workflow: text(row, 1)?,
        title: text(row, 2)?,
        status: text(row, 3)?,
        waiting_on: maybe_text(row, 4)?,
        seq: number(row, 5)?,
        created_at: moment(row, 6)?,
        updated_at: moment(row, 7)?,
        finished_at: maybe_moment(row, 8)?,
        body: text(row, 9)?,
    })
}

fn handoff_row(row: &Row) -> Result<HandoffRow, PostgresError> {
    Ok(HandoffRow {
        run: id(row)?,
        id: handoff_id(row.try_get(1)?)?,
        from: text(row, 2)?,
        to: text(row, 3)?,
        reason: text(row, 4)?,
        state: text(row, 5)?,
        question: row.try_get(6)?,
        opened_at: moment(row, 7)?,
        updated_at: moment(row, 8)?,
        closed_at: maybe_moment(row, 9)?,
        body: text(row, 10)?,
    })
}
