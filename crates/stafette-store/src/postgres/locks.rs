//! The tables of locks.

use std::collections::BTreeMap;

use stafette_model::Time;
use tokio_postgres::Row;

use super::fault::PostgresError;
use super::link::{
    BEGIN, Columns, LOOK, Link, Params, column, count, number, only, params, signed, text,
};
use super::query::checked;
use super::session::Deed;
use crate::{Damage, LOCK_ENTRIES, LockBatch, LockEntry, LockError, LockRow, LockStore, checksum};

const BOOK: &str = "SELECT version, fence, sum FROM lock_book";
const ROWS: &str = "SELECT id, held, body, sum FROM locks ORDER BY id";
const TURN: &str = "SELECT version, fence, sum FROM lock_book FOR UPDATE";
const ADD: &str = "INSERT INTO lock_entries (seq, at, name, body, sum) \
     SELECT * FROM unnest($1::int8[], $2::int8[], $3::bytea[], $4::bytea[], $5::int8[])";
const DROP: &str = "DELETE FROM lock_entries WHERE seq <= $1";
const REMOVE: &str = "DELETE FROM locks WHERE id = ANY($1)";
const PUT: &str = "INSERT INTO locks (id, held, body, sum) \
     SELECT * FROM unnest($1::int8[], $2::bool[], $3::bytea[], $4::int8[]) \
     ON CONFLICT (id) DO UPDATE SET held = excluded.held, body = excluded.body, \
         sum = excluded.sum";
const UPDATE: &str = "UPDATE lock_book SET version = $1, fence = $2, sum = $3";
const THERE: &str = "SELECT count(*) FROM lock_entries AS kept \
     JOIN unnest($1::int8[], $2::int8[], $3::bytea[], $4::bytea[]) AS ours (seq, at, name, body) \
     USING (seq, at, name, body)";

/// A change of the lock table.
pub(super) struct Change {
    batch: LockBatch,
    sent: bool,
}

impl Change {
    pub(super) fn new(batch: LockBatch) -> Self {
        Change { batch, sent: false }
    }
}

/// Columns of entries, the checksums last.
fn columns(entries: &[LockEntry]) -> Columns<'_> {
    let entries: Vec<&LockEntry> = entries.iter().collect();
    vec![
        column(&entries, |entry| signed(entry.seq)),
        column(&entries, |entry| entry.at.0),
        column(&entries, |entry| entry.name.as_bytes()),
        column(&entries, |entry| entry.body.as_bytes()),
        column(&entries, checksum::lock_entry),
    ]
}

impl Deed for Change {
    type Done = Result<u64, LockError>;

    async fn write(&mut self, link: &mut Link) -> Result<Self::Done, PostgresError> {
        self.sent = false;
        let batch = &self.batch;
        let turn = link.together(BEGIN, &[(TURN, &[])], "").await?;
        let (version, fence) = book(only(&turn[0])?)?;
        if let Err(error) = batch.fits(version, fence) {
            link.plain("ROLLBACK").await?;
            return Ok(Err(error));
        }
        let version = batch.version();
        // Entries beyond the limit would be deleted immediately, so they are not written.
        let kept = batch.entries.len().saturating_sub(LOCK_ENTRIES as usize);
        let added = columns(&batch.entries[kept..]);
        let old = signed(version.saturating_sub(LOCK_ENTRIES));
        let removed: Vec<i64> = batch.remove.iter().map(|id| signed(*id)).collect();
        let rows: BTreeMap<u64, &LockRow> = batch.put.iter().map(|row| (row.id, row)).collect();
        let rows: Vec<&LockRow> = rows.into_values().collect();
        let put: Columns<'_> = vec![
            column(&rows, |row| signed(row.id)),
            column(&rows, |row| row.held),
            column(&rows, |row| row.body.as_bytes()),
            column(&rows, checksum::lock),
        ];
        let book_sum = checksum::lock_book(version, batch.fence);
        let (last, fence) = (signed(version), signed(batch.fence));
        self.sent = true;
        link.together(
            "",
            &[
                (ADD, &params(&added)[..]),
                (DROP, &[&old]),
                (REMOVE, &[&removed]),
                (PUT, &params(&put)[..]),
                (UPDATE, &[&last, &fence, &book_sum]),
            ],
            "COMMIT",
        )
        .await?;
        Ok(Ok(version))
    }

    async fn landed(&mut self, link: &mut Link) -> Result<Option<Self::Done>, PostgresError> {
        if !std::mem::take(&mut self.sent) {
            return Ok(None);
        }
        let last = self.batch.entries.last().map(std::slice::from_ref).unwrap_or_default();
        let last = columns(last);
        // Once the row lock is ours, the lost connection's transaction has ended, one way or the
        // other.
        let steps: &[(_, Params<'_>)] = &[(TURN, &[]), (THERE, &params(&last)[..4])];
        let answers = link.together(BEGIN, steps, "COMMIT").await?;
        let found = number(only(&answers[1])?, 0)?;
        Ok((found > 0).then(|| Ok(self.batch.version())))
    }
}

fn book(row: &Row) -> Result<(u64, u64), PostgresError> {
    let read = || Ok((number(row, 0)?, number(row, 1)?));
    let sum = |(version, fence): &(u64, u64)| checksum::lock_book(*version, *fence);
    checked(row, 2, read(), sum, || Damage::Locks)
}

pub(super) async fn all(link: &mut Link) -> Result<LockStore, PostgresError> {
    // One transaction, so that the version matches the rows.
    let answers = link.together(LOOK, &[(BOOK, &[]), (ROWS, &[])], "COMMIT").await?;
    let (version, fence) = book(only(&answers[0])?)?;
    let row = |row: &Row| {
        let read =
            || Ok(LockRow { id: number(row, 0)?, held: row.try_get(1)?, body: text(row, 2)? });
        checked(row, 3, read(), checksum::lock, || Damage::Locks)
    };
    Ok(LockStore {
        version,
        fence,
        rows: answers[1].iter().map(row).collect::<Result<_, PostgresError>>()?,
    })
}

pub(super) async fn entries(
    link: &mut Link,
    after: u64,
    limit: usize,
) -> Result<Vec<LockEntry>, PostgresError> {
    const SQL: &str =
        "SELECT seq, at, name, body, sum FROM lock_entries WHERE seq > $1 ORDER BY seq LIMIT $2";
    let rows = link.ask(SQL, &[&signed(after), &count(limit)]).await?;
    let entry = |row: &Row| {
        let read = || {
            let (seq, at) = (number(row, 0)?, Time(row.try_get(1)?));
            Ok(LockEntry { seq, at, name: text(row, 2)?, body: text(row, 3)? })
        };
        checked(row, 4, read(), checksum::lock_entry, || Damage::Locks)
    };
    rows.iter().map(entry).collect()
}
