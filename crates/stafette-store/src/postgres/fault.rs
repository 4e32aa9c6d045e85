//! Maps errors of PostgreSQL to errors of the store.

use std::time::Duration;

use thiserror::Error;
use tokio_postgres::error::SqlState;

use super::address::Address;
use crate::{AppendError, BackendError, ConnectError, Damage, ReadError, UpkeepError};

/// Error of a database operation.
#[derive(Debug, Error)]
pub(super) enum PostgresError {
    /// The server returned an error, or the connection ended.
    #[error(transparent)]
    Server(#[from] tokio_postgres::Error),
    #[error("{place} cannot be reached")]
    Unreachable { place: String, source: tokio_postgres::Error },
    #[error("{place} did not answer within {} s", after.as_secs())]
    Silent { place: String, after: Duration },
    #[error("the connection to {place} was lost, and it is not known whether this was written")]
    Unsure { place: String, source: Box<PostgresError> },
    #[error("another daemon works on {place}")]
    Taken { place: String },
    #[error("what the database holds cannot be read: {found}")]
    Damaged { found: String },
    #[error(transparent)]
    Row(Damage),
    #[error("its tables were replaced by others while they were in use")]
    Replaced,
    #[error("the store is closed")]
    Closed,
}

impl PostgresError {
    /// Returns true if the connection is lost or was never made: a new one may succeed.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            PostgresError::Server(error) => match error.code() {
                Some(code) => is_passing(code),
                None => error.is_closed(),
            },
            PostgresError::Unreachable { source, .. } => is_away(source),
            PostgresError::Silent { .. } => true,
            _ => false,
        }
    }

    /// Returns true if another session held a needed lock.
    pub(super) fn is_busy(&self) -> bool {
        let code = match self {
            PostgresError::Server(error) => error.code(),
            _ => None,
        };
        code == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }
}

/// Returns true if the server was not there to refuse.
fn is_away(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    match error.code() {
        Some(code) => is_passing(code),
        None => error.is_closed() || source.is_some_and(|source| source.is::<std::io::Error>()),
    }
}

/// Returns true for errors of a server that stops, starts, recovers or is overloaded.
fn is_passing(code: &SqlState) -> bool {
    let passing = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    passing.contains(code) || code.code().starts_with("08")
}

/// Maps the error of a whole group of batches.
pub(super) fn append(trouble: PostgresError) -> AppendError {
    let code = match &trouble {
        PostgresError::Server(error) => error.code().cloned(),
        PostgresError::Closed => return AppendError::Closed,
        PostgresError::Replaced => return AppendError::Lost { why: trouble.to_string() },
        _ => None,
    };
    let source = BackendError::new(trouble);
    match code {
        Some(code) if code == SqlState::UNDEFINED_TABLE => {
            AppendError::Lost { why: "its tables were removed while they were in use".to_owned() }
        }
        Some(code) if code == SqlState::DISK_FULL => AppendError::Full { source },
        Some(code) if code == SqlState::LOCK_NOT_AVAILABLE => AppendError::Busy { source },
        Some(code) if code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            AppendError::ReadOnly { source }
        }
        _ => AppendError::Failed { source },
    }
}

pub(super) fn read(trouble: PostgresError) -> ReadError {
    match trouble {
        PostgresError::Row(source) => ReadError::Damaged { source },
        PostgresError::Closed => ReadError::Closed,
        trouble => ReadError::Failed { source: BackendError::new(trouble) },
    }
}

pub(super) fn upkeep(trouble: PostgresError) -> UpkeepError {
    match trouble {
        PostgresError::Closed => UpkeepError::Closed,
        trouble => UpkeepError::Failed { source: BackendError::new(trouble) },
    }
}

/// Maps the error of opening a store.
pub(super) fn connect(trouble: PostgresError, address: &Address) -> ConnectError {
    let place = address.to_string();
    let away = trouble.is_lost();
    let code = match &trouble {
        PostgresError::Server(error) | PostgresError::Unreachable { source: error, .. } => {
            error.code()
        }
        PostgresError::Taken { .. } => return ConnectError::Taken { place },
        _ => None,
    };
    // The library distinguishes its own errors only by their text.
    let said = match &trouble {
        PostgresError::Unreachable { source, .. } => source.to_string(),
        _ => String::new(),
    };
    let forbidden = [
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    match code.cloned() {
        _ if away => ConnectError::Unreachable { place, source: BackendError::new(trouble) },
        Some(code) if code == SqlState::UNDEFINED_DATABASE => ConnectError::NoDatabase { place },
        Some(code) if forbidden.contains(&code) => {
            ConnectError::NotAllowed { place, source: BackendError::new(trouble) }
        }
        None if said.starts_with("error performing TLS") => {
            ConnectError::NotSecured { place, source: BackendError::new(trouble) }
        }
        // The client could not provide what the server asked for, such as a password.
        None if ["authentication", "invalid configuration"]
            .iter()
            .any(|it| said.starts_with(it)) =>
        {
            ConnectError::NotAllowed { place, source: BackendError::new(trouble) }
        }
        _ => ConnectError::Failed { place, source: BackendError::new(trouble) },
    }
}
