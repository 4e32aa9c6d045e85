//! The versions of learned parameters, in SQLite.

use rusqlite::params;
use thiserror::Error;

use super::{Base, SqliteError};
use crate::mind::parameters::{Ledger, LedgerError, Version};

/// Stores the versions of the parameters.
#[derive(Clone, Debug)]
pub struct Versions {
    base: Base,
}

/// The versions could not be stored.
#[derive(Debug, Error)]
pub enum VersionsError {
    #[error(transparent)]
    Refused {
        #[from]
        source: LedgerError,
    },
    #[error("the versions could not be kept: {why}")]
    Failed { why: String },
}

impl From<SqliteError> for VersionsError {
    fn from(fault: SqliteError) -> Self {
        VersionsError::Failed { why: fault.to_string() }
    }
}

impl From<rusqlite::Error> for VersionsError {
    fn from(error: rusqlite::Error) -> Self {
        SqliteError::from(error).into()
    }
}

impl Versions {
    /// Opens the versions in this file.
    #[must_use]
    pub fn new(base: Base) -> Self {
        Versions { base }
    }

    /// Changes the ledger and stores what was added, in one transaction: two concurrent changes
    /// follow each other. `start` is used if nothing is stored yet.
    ///
    /// # Errors
    /// If the change is refused or cannot be stored; then nothing has changed.
    pub async fn change<T: Send + 'static>(
        &self,
        start: Ledger,
        change: impl FnOnce(&mut Ledger) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<(T, Ledger), VersionsError> {
        let write = move |tx: &rusqlite::Transaction| {
            let mut found = tx.prepare_cached("SELECT version FROM versions ORDER BY number")?;
            let texts = found.query_map([], |row| row.get::<_, String>(0))?;
            let mut versions: Vec<Version> = Vec::new();
            for text in texts {
                let version = serde_json::from_str(&text?)
                    .map_err(|error| VersionsError::Failed { why: error.to_string() })?;
                versions.push(version);
            }
            let kept = versions.len();
            let mut ledger = if kept == 0 { start } else { Ledger::try_from(versions)? };
            let answer = change(&mut ledger)?;
            for version in &ledger.versions()[kept..] {
                let text = serde_json::to_string(version)
                    .map_err(|error| VersionsError::Failed { why: error.to_string() })?;
                tx.prepare_cached("INSERT INTO versions (number, version) VALUES (?1, ?2)")?
                    .execute(params![version.number, text])?;
            }
            Ok((answer, ledger))
        };
        self.base.write(write).await
    }
}
