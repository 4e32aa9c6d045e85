//! Queries that read.

use std::collections::BTreeSet;

use stafette_model::{HandoffId, RunId, Time};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::fault::PostgresError;
use super::link::{LOOK, Link, Params, count, damaged, maybe_text, number, signed, text};
use crate::record::Page;
use crate::{
    Damage, Entry, FIND_LIMIT, HandoffRow, Loaded, RunFilter, RunRow, Snapshot, Stored, checksum,
    digits,
};

/// Maximum number of entries per query: longer pages take several queries.
const AT_ONCE: usize = 512;

macro_rules! entry {
    () => {
        "position, run, seq, at, name, handoff, body, sum"
    };
}
macro_rules! run {
    () => {
        "run, workflow, title, status, waiting_on, seq, created_at, updated_at, finished_at, body, sum"
    };
}
macro_rules! handoff {
    () => {
        "run, id, giver, taker, reason, state, question, opened_at, updated_at, closed_at, body, sum"
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
    let loaded = load_after(link, run, seq, u64::MAX).await;
    match loaded {
        // The events tell what a damaged snapshot does not.
        Err(PostgresError::Row(Damage::Snapshot { seq: at, .. })) => {
            load_before(link, run, seq, at).await
        }
        loaded => loaded,
    }
}

/// Loads with the newest snapshot before the damaged one at event `at` that is sound.
async fn load_before(
    link: &mut Link,
    run: RunId,
    seq: u64,
    mut at: u64,
) -> Result<Option<Loaded>, PostgresError> {
    loop {
        match load_after(link, run, seq, at).await {
            Err(PostgresError::Row(Damage::Snapshot { seq: older, .. })) if older < at => {
                at = older
            }
            loaded => return loaded,
        }
    }
}

/// Loads a run as of event `seq`, with the newest snapshot up to there and before event `before`.
async fn load_after(
    link: &mut Link,
    run: RunId,
    seq: u64,
    before: u64,
) -> Result<Option<Loaded>, PostgresError> {
    const KNOWN: &str = "SELECT seq FROM runs WHERE run = $1";
    const NEWEST: &str = "SELECT run, seq, body, sum FROM snapshots \
                          WHERE run = $1 AND seq <= $2 AND seq < $3 ORDER BY seq DESC LIMIT 1";
    const AFTER: &str = concat!(
        "SELECT ",
        entry!(),
        " FROM events WHERE run = $1 AND seq > ",
        "coalesce((SELECT max(seq) FROM snapshots WHERE run = $1 AND seq <= $2 AND seq < $3), 0) ",
        "AND seq <= $2 ORDER BY seq"
    );
    let (until, before) = (signed(seq), signed(before));
    // One transaction, so that snapshot and entries are of the same moment.
    let steps: &[(_, Params<'_>)] = &[
        (KNOWN, &[&run.0]),
        (NEWEST, &[&run.0, &until, &before]),
        (AFTER, &[&run.0, &until, &before]),
    ];
    let answers = link.together(LOOK, steps, "COMMIT").await?;
    let Some(known) = answers[0].first() else { return Ok(None) };
    let last = number(known, 0)?;
    let snapshot = answers[1].first().map(snapshot).transpose()?;
    let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
    let entries = all(answers[2].iter(), stored)?;
    let end = Stored::until_gap(&entries, after);
    match end < entries.len() || after + end as u64 != last.min(seq).max(after) {
        true => Err(PostgresError::Row(Damage::missing(run, after + end as u64))),
        false => Ok(Some(Loaded { snapshot, entries })),
    }
}

pub(super) async fn entries(
    link: &mut Link,
    run: RunId,
    after: u64,
    limit: usize,
) -> Result<Vec<Stored>, PostgresError> {
    // Read before the page: events that come meanwhile are not missing.
    const KNOWN: &str = "SELECT seq FROM runs WHERE run = $1";
    let known = link.one(KNOWN, &[&run.0]).await?;
    let last = known.map_or(Ok(0), |row| number(&row, 0))?;
    let mut page = page(link, ENTRIES, Some(run), after, limit, |stored| stored.entry.seq).await?;
    page.truncate(Stored::until_gap(&page, after));
    match page.is_empty() && limit > 0 && last > after {
        true => Err(PostgresError::Row(Damage::missing(run, after))),
        false => Ok(page),
    }
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
    all(&link.ask(SQL, &[&run.0, &i64::from(handoff.0)]).await?, stored)
}

pub(super) async fn run(link: &mut Link, run: RunId) -> Result<Option<RunRow>, PostgresError> {
    const SQL: &str = concat!("SELECT ", run!(), " FROM runs WHERE run = $1");
    let row = link.one(SQL, &[&run.0]).await?;
    row.as_ref().map(run_row).transpose()
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
    sound(&rows, run_row)
}

pub(super) async fn find_run(link: &mut Link, typed: &str) -> Result<Vec<RunId>, PostgresError> {
    const BEGINS: &str =
        "SELECT run FROM runs WHERE run BETWEEN $1 AND $2 ORDER BY run DESC LIMIT $3";
    const ENDS: &str = "SELECT run FROM runs WHERE tail BETWEEN $1 AND $2 LIMIT $3";
    const SHORT: &str =
        "SELECT run FROM runs WHERE substr(uuid_send(run), 13) BETWEEN $1 AND $2 LIMIT $3";
    let Some(digits) = digits::typed(typed) else { return Ok(Vec::new()) };
    let mut found = BTreeSet::new();
    let backwards: String = digits.chars().rev().collect();
    for (sql, digits) in [(BEGINS, &digits), (ENDS, &backwards)] {
        let (low, high) = digits::range(digits);
        let (low, high) = (Uuid::from_bytes(low), Uuid::from_bytes(high));
        found.extend(all(&link.ask(sql, &[&low, &high, &count(FIND_LIMIT)]).await?, id)?);
    }
    if let Some((low, high)) = digits::short_range(&digits) {
        let (low, high) = (low.as_slice(), high.as_slice());
        found.extend(all(&link.ask(SHORT, &[&low, &high, &count(FIND_LIMIT)]).await?, id)?);
    }
    Ok(found.into_iter().rev().take(FIND_LIMIT).collect())
}

pub(super) async fn handoffs(
    link: &mut Link,
    run: RunId,
) -> Result<Vec<HandoffRow>, PostgresError> {
    const SQL: &str = concat!("SELECT ", handoff!(), " FROM handoffs WHERE run = $1 ORDER BY id");
    all(&link.ask(SQL, &[&run.0]).await?, handoff_row)
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
    sound(&link.ask(SQL, &[]).await?, handoff_row)
}

pub(super) async fn unfinished(link: &mut Link) -> Result<Vec<RunId>, PostgresError> {
    const SQL: &str = "SELECT run FROM runs WHERE finished_at IS NULL ORDER BY created_at, run";
    all(&link.ask(SQL, &[]).await?, id)
}

fn all<'a, T>(
    rows: impl IntoIterator<Item = &'a Row>,
    read: impl Fn(&Row) -> Result<T, PostgresError>,
) -> Result<Vec<T>, PostgresError> {
    rows.into_iter().map(read).collect()
}

/// Like [`all`], without damaged rows: the check names them, and the rest can be shown.
fn sound<T>(
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, PostgresError>,
) -> Result<Vec<T>, PostgresError> {
    let sound = |row: &Result<T, PostgresError>| !matches!(row, Err(PostgresError::Row(_)));
    rows.iter().map(read).filter(sound).collect()
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
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            match stored(row) {
                // It is the error of the next page.
                Err(PostgresError::Row(_)) if !page.is_empty() => return Ok(page.into_entries()),
                entry => {
                    let entry = entry?;
                    after = signed(cursor(&entry));
                    page.push(entry);
                }
            }
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

/// Reads a row with its checksum, which is in column `sum`. Damage is whatever does not match, and
/// whatever cannot be read at all.
pub(super) fn checked<T>(
    row: &Row,
    sum: usize,
    read: Result<T, PostgresError>,
    checksum: impl FnOnce(&T) -> i64,
    damage: impl FnOnce() -> Damage,
) -> Result<T, PostgresError> {
    match (read, row.try_get::<_, Option<i64>>(sum)) {
        (Ok(found), Ok(None)) => Ok(found),
        (Ok(found), Ok(Some(sum))) if sum == checksum(&found) => Ok(found),
        _ => Err(PostgresError::Row(damage())),
    }
}

/// The run of a row that may be damaged.
fn named(row: &Row, column: usize) -> RunId {
    RunId(row.try_get(column).unwrap_or_default())
}

fn stored(row: &Row) -> Result<Stored, PostgresError> {
    let read = || {
        let handoff: Option<i64> = row.try_get(5)?;
        let entry = Entry {
            seq: number(row, 2)?,
            at: moment(row, 3)?,
            name: text(row, 4)?,
            handoff: handoff.map(handoff_id).transpose()?,
            body: text(row, 6)?,
        };
        Ok(Stored { position: number(row, 0)?, run: RunId(row.try_get(1)?), entry })
    };
    checked(
        row,
        7,
        read(),
        |it: &Stored| checksum::event(it.run, &it.entry),
        || Damage::Event {
            run: named(row, 1),
            seq: number(row, 2).unwrap_or(0),
            position: number(row, 0).ok(),
        },
    )
}

pub(super) fn snapshot(row: &Row) -> Result<Snapshot, PostgresError> {
    let read = || Ok(Snapshot { seq: number(row, 1)?, body: text(row, 2)? });
    let run = named(row, 0);
    checked(
        row,
        3,
        read(),
        |it| checksum::snapshot(run, it),
        || Damage::Snapshot { run, seq: number(row, 1).unwrap_or(0) },
    )
}

pub(super) fn run_row(row: &Row) -> Result<RunRow, PostgresError> {
    let read = || {
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
    };
    checked(row, 10, read(), checksum::run, || Damage::Run { run: named(row, 0) })
}

fn handoff_row(row: &Row) -> Result<HandoffRow, PostgresError> {
    let read = || {
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
    };
    checked(row, 11, read(), checksum::handoff, || Damage::Handoff {
        run: named(row, 0),
        id: row.try_get(1).ok().and_then(|id| handoff_id(id).ok()).unwrap_or(HandoffId(0)),
    })
}

/// Returns the damage among the runs after one of them, in the order of their ids, and the last one
/// that was looked at: their rows, handoffs and snapshots.
pub(super) async fn damage_after(
    link: &mut Link,
    after: Uuid,
) -> Result<(Vec<Damage>, Option<Uuid>), PostgresError> {
    const RUNS: &str =
        concat!("SELECT ", run!(), " FROM runs WHERE run > $1 ORDER BY run LIMIT 64");
    const SNAPSHOTS: &str = "SELECT run, seq, body, sum FROM snapshots WHERE run = $1";
    const HANDOFFS: &str = concat!("SELECT ", handoff!(), " FROM handoffs WHERE run = $1");
    let (mut found, mut last) = (Vec::new(), None);
    let mut note = |read: Result<(), PostgresError>| match read {
        Err(PostgresError::Row(damage)) => {
            found.push(damage);
            Ok(())
        }
        read => read,
    };
    for row in link.ask(RUNS, &[&after]).await? {
        let run: Uuid = row.try_get(0)?;
        note(run_row(&row).map(drop))?;
        for row in link.ask(SNAPSHOTS, &[&run]).await? {
            note(snapshot(&row).map(drop))?;
        }
        for row in link.ask(HANDOFFS, &[&run]).await? {
            note(handoff_row(&row).map(drop))?;
        }
        last = Some(run);
    }
    Ok((found, last))
}
