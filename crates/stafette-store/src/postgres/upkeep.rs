//! Retention, compaction and the integrity check, in steps short enough to let writers in.

use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::PostgresError;
use super::link::{BEGIN, Link, count, number};
use super::session::Deed;
use super::writer::TURN;
use super::{locks, query, schema};
use crate::{Damage, Health, Removed, Retention};

/// Maximum number of runs that one step removes.
const RUNS: i64 = 16;

/// Number of removed events after which a step removes no further run.
const EVENTS: u64 = 10_000;

/// Maximum number of snapshots that one step removes.
const SNAPSHOTS: i64 = 256;

/// Number of damaged rows after which a check names no more.
const NAMED: usize = 16;

/// Number of events that a check reads at a time.
const PAGE: usize = 1024;

/// End time and id of a run: the order of removal.
type Ended = (i64, Uuid);

/// Sorts after every run.
const END: Ended = (i64::MAX, Uuid::max());

/// Removes the oldest runs that retention allows; none if there are no more.
pub(super) struct RemoveSome(pub(super) Retention);

impl Deed for RemoveSome {
    type Done = Removed;

    async fn write(&mut self, link: &mut Link) -> Result<Removed, PostgresError> {
        link.plain(BEGIN).await?;
        link.ask(TURN, &[]).await?;
        let mut removed = Removed::default();
        for run in candidates(link, self.0).await? {
            link.ask("DELETE FROM runs WHERE run = $1", &[&run]).await?;
            link.ask("DELETE FROM handoffs WHERE run = $1", &[&run]).await?;
            link.ask("DELETE FROM snapshots WHERE run = $1", &[&run]).await?;
            link.ask("DELETE FROM texts WHERE run = $1", &[&run]).await?;
            const GONE: &str = "WITH gone AS (DELETE FROM events WHERE run = $1 RETURNING 1) \
                                SELECT count(*) FROM gone";
            let events = link.one(GONE, &[&run]).await?;
            removed.runs += 1;
            removed.events += events.map_or(Ok(0), |row| number(&row, 0))?;
            if removed.events >= EVENTS {
                break;
            }
        }
        link.plain("COMMIT").await?;
        Ok(removed)
    }

    async fn landed(&mut self, _link: &mut Link) -> Result<Option<Removed>, PostgresError> {
        // Repeating removes nothing twice; the lost part is only not counted.
        Ok(None)
    }
}

/// Returns the oldest runs that may be removed. The runs to keep begin at a bound, so that an index
/// finds them.
pub(super) async fn candidates(
    link: &mut Link,
    rule: Retention,
) -> Result<Vec<Uuid>, PostgresError> {
    const SQL: &str = "SELECT run FROM runs \
         WHERE finished_at IS NOT NULL AND (finished_at, run) < ($1, $2) \
         ORDER BY finished_at, run LIMIT $3";
    let Some(kept) = first_of_the_last(link, rule.keep_last).await? else { return Ok(Vec::new()) };
    let young = rule.finished_before.map_or(END, |before| (before.0, Uuid::nil()));
    let (at, run) = kept.min(young);
    let rows = link.ask(SQL, &[&at, &run, &RUNS]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Returns the end of the oldest among the `last` runs that ended most recently; `None` if there
/// are fewer.
async fn first_of_the_last(link: &mut Link, last: usize) -> Result<Option<Ended>, PostgresError> {
    const SQL: &str = "SELECT finished_at, run FROM runs WHERE finished_at IS NOT NULL \
                       ORDER BY finished_at DESC, run DESC LIMIT 1 OFFSET $1";
    let Some(skip) = last.checked_sub(1) else { return Ok(Some(END)) };
    let row = link.one(SQL, &[&count(skip)]).await?;
    let ended = |row: Row| Ok((row.try_get(0)?, row.try_get(1)?));
    row.map(ended).transpose()
}

/// Removes snapshots that a newer one replaced; 0 if there are no more.
pub(super) struct DropOldSnapshots;

impl Deed for DropOldSnapshots {
    type Done = u64;

    async fn write(&mut self, link: &mut Link) -> Result<u64, PostgresError> {
        const SQL: &str = "WITH gone AS (DELETE FROM snapshots WHERE ctid = ANY(ARRAY( \
                 SELECT old.ctid FROM snapshots AS old \
                 WHERE EXISTS (SELECT 1 FROM snapshots AS newer \
                               WHERE newer.run = old.run AND newer.seq > old.seq) \
                 LIMIT $1)) RETURNING 1) SELECT count(*) FROM gone";
        let row = link.one(SQL, &[&SNAPSHOTS]).await?;
        row.map_or(Ok(0), |row| number(&row, 0))
    }

    async fn landed(&mut self, _link: &mut Link) -> Result<Option<u64>, PostgresError> {
        Ok(None)
    }
}

/// Frees unused space. Snapshots are rewritten in full, because most are gone and the rest is
/// small; in other tables, free space is reused and the end of the file is truncated.
pub(super) async fn free_room(link: &Link) -> Result<(), PostgresError> {
    for sql in [
        "VACUUM (FULL) snapshots",
        "VACUUM (ANALYZE) events",
        "VACUUM (ANALYZE) runs",
        "VACUUM (ANALYZE) handoffs",
        "VACUUM (ANALYZE) texts",
    ] {
        link.plain(sql).await?;
    }
    Ok(())
}

/// Returns the size of the tables and their indexes, in bytes.
pub(super) async fn bytes(link: &mut Link) -> Result<u64, PostgresError> {
    link.number(
        "SELECT coalesce(sum(pg_relation_size(oid) + \
                             CASE WHEN reltoastrelid = 0 THEN 0 \
                                  ELSE pg_total_relation_size(reltoastrelid) END), 0)::int8 \
         FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = \
             (SELECT relnamespace FROM pg_class WHERE oid = 'store'::regclass)",
    )
    .await
}

/// Checks the whole database.
pub(super) async fn health(link: &mut Link) -> Result<Health, PostgresError> {
    Ok(Health {
        backend: "postgres",
        schema: schema::version(link).await?.unwrap_or(0),
        problems: problems(link).await?,
        bytes: bytes(link).await?,
        // The administrator of the server decides about its size.
        max_bytes: None,
        runs: link.number("SELECT count(*) FROM runs").await?,
        unfinished: link.number("SELECT count(*) FROM runs WHERE finished_at IS NULL").await?,
        events: link.number("SELECT count(*) FROM events").await?,
        unchecked: link.number("SELECT count(*) FROM events WHERE sum IS NULL").await?,
        handoffs: link.number("SELECT count(*) FROM handoffs").await?,
        snapshots: link.number("SELECT count(*) FROM snapshots").await?,
    })
}

async fn problems(link: &mut Link) -> Result<Vec<String>, PostgresError> {
    let mut problems = Vec::new();
    // Reads every body to its end, so that damage is detected.
    for sql in [
        "SELECT coalesce(sum(length(md5(body))), 0)::int8 FROM events",
        "SELECT coalesce(sum(length(md5(body))), 0)::int8 FROM snapshots",
        "SELECT coalesce(sum(length(md5(body))), 0)::int8 FROM handoffs",
        "SELECT coalesce(sum(length(md5(body))), 0)::int8 FROM runs",
    ] {
        match link.number(sql).await {
            Err(PostgresError::Server(error))
                if error.code().is_some_and(|it| it.code() >= "XX") =>
            {
                problems.push(error.to_string());
            }
            answer => drop(answer?),
        }
    }
    damage(link, &mut problems).await?;
    let behind = link
        .number(
            "SELECT count(*) FROM runs LEFT JOIN ( \
                 SELECT run, max(seq) AS last, count(*) AS found FROM events GROUP BY run \
             ) AS told USING (run) \
             WHERE runs.seq IS DISTINCT FROM told.last OR runs.seq IS DISTINCT FROM told.found",
        )
        .await?;
    if behind > 0 {
        problems.push(format!("{behind} runs disagree with their events"));
    }
    let ahead = link
        .number("SELECT count(*) FROM events WHERE position > (SELECT head FROM store)")
        .await?;
    if ahead > 0 {
        problems.push(format!("{ahead} events have a position that was not given"));
    }
    let careless = "SELECT (current_setting('fsync') = 'off')::int::int8";
    if link.number(careless).await? > 0 {
        problems.push("the server does not sync (fsync = off): a power loss loses runs".to_owned());
    }
    Ok(problems)
}

/// Names the rows that are not what was written, some of them.
async fn damage(link: &mut Link, problems: &mut Vec<String>) -> Result<(), PostgresError> {
    let limit = problems.len() + NAMED;
    let mut after = 0;
    while problems.len() < limit {
        match query::feed(link, after, PAGE).await {
            Ok(page) => match page.last() {
                Some(last) => after = last.position,
                None => break,
            },
            Err(PostgresError::Row(damage @ Damage::Event { position: Some(at), .. })) => {
                problems.push(damage.to_string());
                after = at;
            }
            Err(error) => return Err(error),
        }
    }
    let mut run = Some(Uuid::nil());
    while let Some(after) = run.filter(|_| problems.len() < limit) {
        let found;
        (found, run) = query::damage_after(link, after).await?;
        problems.extend(found.iter().map(ToString::to_string));
    }
    for locks in
        [locks::all(link).await.map(drop), locks::entries(link, 0, usize::MAX).await.map(drop)]
    {
        match locks {
            Err(PostgresError::Row(damage)) => problems.push(damage.to_string()),
            locks => locks?,
        }
    }
    Ok(())
}
