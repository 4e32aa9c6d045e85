//! What PostgreSQL's errors mean to us.

use std::time::Duration;

use thiserror::Error;
use tokio_postgres::error::SqlState;

use super::address::Address;
use crate::{AppendError, ConnectError, Fault, ReadError, UpkeepError};

/// Why something was not done.
#[derive(Debug, Error)]
pub(super) enum PostgresError {
    /// The server said so, or the connection to it ended.
    #[error(transparent)]
    Server(#[from] tokio_postgres::Error),
    /// There is no connection.
    #[error("{place} cannot be reached")]
    Unreachable { place: String, source: tokio_postgres::Error },
    /// Nothing came back in time.
    #[error("{place} did not answer within {} s", after.as_secs())]
    Silent { place: String, after: Duration },
    /// The connection was lost while something was written, and did not come back.
    #[error("the connection to {place} was lost, and it is not known whether this was written")]
    Unsure { place: String, source: Box<PostgresError> },
    /// Another daemon works on it.
    #[error("another daemon works on {place}")]
    Taken { place: String },
    /// What is there is not what was written.
    #[error("what the database holds cannot be read: {found}")]
    Damaged { found: String },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl PostgresError {
    /// Whether the connection is gone, or was never made: another one may do better.
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

    /// Whether somebody else held what was needed.
    pub(super) fn is_busy(&self) -> bool {
        let code = match self {
            PostgresError::Server(error) => error.code(),
            _ => None,
        };
        code == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }
}

/// Whether nobody was there to say no.
fn is_away(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    match error.code() {
        Some(code) => is_passing(code),
        None => error.is_closed() || source.is_some_and(|source| source.is::<std::io::Error>()),
    }
}

/// What a server says that ends, starts, repairs itself or is crowded.
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

/// Why a whole group was not written.
pub(super) fn append(trouble: PostgresError) -> AppendError {
    let code = match &trouble {
        PostgresError::Server(error) => error.code().cloned(),
        PostgresError::Closed => return AppendError::Closed,
        _ => None,
    };
    let source = Fault::new(trouble);
    match code {
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
        PostgresError::Closed => ReadError::Closed,
        trouble => ReadError::Failed { source: Fault::new(trouble) },
    }
}

pub(super) fn upkeep(trouble: PostgresError) -> UpkeepError {
    match trouble {
        PostgresError::Closed => UpkeepError::Closed,
        trouble => UpkeepError::Failed { source: Fault::new(trouble) },
    }
}

/// Why a store was not opened.
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
    // The library tells its own kinds of errors apart by what they say.
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
        _ if away => ConnectError::Unreachable { place, source: Fault::new(trouble) },
        Some(code) if code == SqlState::UNDEFINED_DATABASE => ConnectError::NoDatabase { place },
        Some(code) if forbidden.contains(&code) => {
            ConnectError::NotAllowed { place, source: Fault::new(trouble) }
        }
        None if said.starts_with("error performing TLS") => {
            ConnectError::NotSecured { place, source: Fault::new(trouble) }
        }
        // We ourselves could not say what was asked for, such as a password.
        None if ["authentication", "invalid configuration"]
            .iter()
            .any(|it| said.starts_with(it)) =>
        {
            ConnectError::NotAllowed { place, source: Fault::new(trouble) }
        }
        _ => ConnectError::Failed { place, source: Fault::new(trouble) },
    }
}
