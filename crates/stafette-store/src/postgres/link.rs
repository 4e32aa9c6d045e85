//! One connection, and its prepared statements.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::address::Address;
use super::fault::PostgresError;
use super::tls::Tls;
use crate::Reply;

/// Maximum wait for a lock.
const LOCK: &str = "5s";

/// Idle time after which the server ends an open transaction.
const SILENCE: &str = "30s";

/// First and longest pause between two attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Begins a transaction in which each statement sees everything committed before it began, whatever
/// the server's default is.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Begins a transaction in which all statements see the same snapshot.
pub(super) const LOOK: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Parameters of a statement.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection. It is closed when dropped.
pub(super) struct Link {
    client: Client,
    known: HashMap<&'static str, Statement>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("closed", &self.client.is_closed()).finish_non_exhaustive()
    }
}

impl Link {
    /// Connects, and retries until the deadline while the server may still be starting.
    pub(super) async fn open(address: &Address, deadline: Instant) -> Result<Self, PostgresError> {
        let (mut pause, longest) = PAUSES;
        loop {
            match Self::attempt(address, deadline).await {
                Err(trouble) if trouble.is_lost() && Instant::now() + pause < deadline => {
                    sleep(pause).await;
                    pause = (pause * 2).min(longest);
                }
                answer => return answer,
            }
        }
    }

    async fn attempt(address: &Address, deadline: Instant) -> Result<Self, PostgresError> {
        let place = || address.to_string();
        let within = deadline.saturating_duration_since(Instant::now()).max(PAUSES.1);
        let connect = async {
            let (client, connection) = address
                .config
                .connect(Tls)
                .await
                .map_err(|source| PostgresError::Unreachable { place: place(), source })?;
            // Pending queries report how the connection ended.
            tokio::spawn(async move { drop(connection.await) });
            let link = Link { client, known: HashMap::new() };
            // The schema's name was checked with the address. Keepalives detect a daemon whose
            // machine is gone, so that the next one need not wait for hours. Synchronous commit is
            // set again in case the server's default is weaker: an acknowledged commit must be on
            // disk.
            link.plain(&format!(
                "SET search_path = {}; SET lock_timeout = '{LOCK}'; \
                 SET idle_in_transaction_session_timeout = '{SILENCE}'; \
                 SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; \
                 SET tcp_keepalives_count = 3; \
                 SELECT set_config('synchronous_commit', 'on', false) \
                 WHERE current_setting('synchronous_commit') = 'off'",
                address.schema
            ))
            .await?;
            Ok(link)
        };
        let silent = |_| PostgresError::Silent { place: place(), after: within };
        timeout(within, connect).await.map_err(silent)?
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements without parameters, and ignores their results.
    pub(super) async fn plain(&self, sql: &str) -> Result<(), PostgresError> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Prepares statements, so that they can be sent one after the other without waiting.
    async fn learn(&mut self, statements: &[&'static str]) -> Result<(), PostgresError> {
        for sql in statements {
            if !self.known.contains_key(sql) {
                self.known.insert(sql, self.client.prepare(sql).await?);
            }
        }
        Ok(())
    }

    /// Sends a statement, at the first poll if it is prepared.
    async fn send(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, PostgresError> {
        Ok(match self.known.get(sql) {
            Some(statement) => self.client.query(statement, params).await?,
            None => self.client.query(sql, params).await?,
        })
    }

    /// Sends a transaction in one go, without waiting between its statements, and returns the rows
    /// of each. With an empty `end` the transaction stays open. If one statement fails, nothing is
    /// committed.
    pub(super) async fn together(
        &mut self,
        begin: &str,
        steps: &[(&'static str, Params<'_>)],
        end: &str,
    ) -> Result<Vec<Vec<Row>>, PostgresError> {
        let statements: Vec<&'static str> = steps.iter().map(|(sql, _)| *sql).collect();
        self.learn(&statements).await?;
        let link = &*self;
        let plain = |sql| async move {
            if str::is_empty(sql) {
                Ok(Vec::new())
            } else {
                link.plain(sql).await.map(|()| Vec::new())
            }
        };
        let mut all: Vec<Reply<'_, Result<Vec<Row>, PostgresError>>> = vec![Box::pin(plain(begin))];
        for (sql, params) in steps {
            all.push(Box::pin(link.send(sql, params)));
        }
        all.push(Box::pin(plain(end)));
        // `join_all` polls so few futures in order, and each statement is sent once it is polled.
        debug_assert!(all.len() <= 16);
        let answers: Result<Vec<_>, _> = join_all(all).await.into_iter().collect();
        answers.map(|mut answers| {
            answers.pop();
            answers.split_off(1)
        })
    }

    /// Prepares a statement and sends it.
    pub(super) async fn ask(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, PostgresError> {
        self.learn(&[sql]).await?;
        self.send(sql, params).await
    }

    /// Returns the first row of a result, if any.
    pub(super) async fn one(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Option<Row>, PostgresError> {
        Ok(self.ask(sql, params).await?.into_iter().next())
    }

    /// Returns the number in the first row of a result; 0 if there is none.
    pub(super) async fn number(&mut self, sql: &'static str) -> Result<u64, PostgresError> {
        let row = self.one(sql, &[]).await?;
        row.map_or(Ok(0), |row| number(&row, 0))
    }
}

/// Reads a number that is never negative.
pub(super) fn number(row: &Row, column: usize) -> Result<u64, PostgresError> {
    let value: i64 = row.try_get(column)?;
    u64::try_from(value).map_err(|_| damaged(format!("the number {value}")))
}

/// Reads text that is stored as bytes.
pub(super) fn text(row: &Row, column: usize) -> Result<String, PostgresError> {
    let bytes: Vec<u8> = row.try_get(column)?;
    String::from_utf8(bytes).map_err(|error| damaged(error.to_string()))
}

/// Reads text that may be null.
pub(super) fn maybe_text(row: &Row, column: usize) -> Result<Option<String>, PostgresError> {
    let bytes: Option<Vec<u8>> = row.try_get(column)?;
    bytes.map(String::from_utf8).transpose().map_err(|error| damaged(error.to_string()))
}

pub(super) fn damaged(found: String) -> PostgresError {
    PostgresError::Damaged { found }
}

/// Converts a number for the database; larger ones become the maximum.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a limit for the database.
pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Returns the first row of a result that always has one.
pub(super) fn only(rows: &[Row]) -> Result<&Row, PostgresError> {
    rows.first().ok_or_else(|| damaged("a row is missing".to_owned()))
}

/// Parameters of one statement: one column of rows each.
pub(super) type Columns<'a> = Vec<Box<dyn ToSql + Sync + Send + 'a>>;

/// Builds one column.
pub(super) fn column<'a, R: Copy, T: ToSql + Sync + Send + 'a>(
    rows: &[R],
    field: impl Fn(R) -> T,
) -> Box<dyn ToSql + Sync + Send + 'a> {
    Box::new(rows.iter().map(|row| field(*row)).collect::<Vec<T>>())
}

/// Converts columns to the parameters of a statement.
pub(super) fn params<'a>(columns: &'a Columns<'_>) -> Vec<&'a (dyn ToSql + Sync)> {
    columns.iter().map(|column| &**column as &(dyn ToSql + Sync)).collect()
}
