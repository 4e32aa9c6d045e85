//! Maps errors of SQLite to errors of the store.

use std::path::Path;

use rusqlite::types::Type;
use rusqlite::{Error, ErrorCode};

use crate::{AppendError, BackendError, Damage, OpenError, ReadError};

/// No room for the index of the log: SQLite reports an I/O error, but the disk is full.
const NO_ROOM_FOR_LOG_INDEX: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

fn is_full(error: &Error) -> bool {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || extended == Some(NO_ROOM_FOR_LOG_INDEX)
}

/// Makes damage an error of SQLite, so that it passes through its iterators.
pub(super) fn damaged(damage: Damage) -> Error {
    Error::FromSqlConversionFailure(0, Type::Null, Box::new(damage))
}

/// Returns the damage that an error stands for, if it does.
pub(super) fn damage(error: &Error) -> Option<Damage> {
    match error {
        Error::FromSqlConversionFailure(_, _, source) => source.downcast_ref().copied(),
        _ => None,
    }
}

/// Names the damage better, where it is known what was asked for.
pub(super) fn instead(error: Error, named: Damage) -> Error {
    if damage(&error).is_some() { damaged(named) } else { error }
}

/// Maps the error of a read.
pub(super) fn read(error: Error) -> ReadError {
    match damage(&error) {
        Some(source) => ReadError::Damaged { source },
        None => ReadError::Failed { source: BackendError::new(error) },
    }
}

/// Maps the error of a whole group of batches.
pub(super) fn append(error: Error) -> AppendError {
    let (code, full) = (error.sqlite_error_code(), is_full(&error));
    let source = BackendError::new(error);
    match code {
        _ if full => AppendError::Full { source },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => AppendError::Busy { source },
        Some(ErrorCode::ReadOnly) => AppendError::ReadOnly { source },
        _ => AppendError::Failed { source },
    }
}

/// Maps the error of opening a file.
pub(super) fn open(error: Error, path: &Path) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        _ if is_full(&error) => OpenError::Full { path, source: BackendError::new(error) },
        // The folder exists at this point: access to the file, or to the log beside it, was denied.
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            OpenError::ReadOnly { path }
        }
        Some(ErrorCode::NotADatabase) => {
            OpenError::NotAStore { path, found: "the file is not a database".to_owned() }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            OpenError::Busy { path, source: BackendError::new(error) }
        }
        _ => OpenError::Failed { path, source: BackendError::new(error) },
    }
}
