//! What SQLite's errors mean to us.

use std::path::Path;

use rusqlite::{Error, ErrorCode};

use crate::{AppendError, Fault, OpenError};

/// Why a whole group was not written.
pub(super) fn append(error: Error) -> AppendError {
    let code = error.sqlite_error_code();
    let source = Fault::new(error);
    match code {
        Some(ErrorCode::DiskFull) => AppendError::Full { source },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => AppendError::Busy { source },
        Some(ErrorCode::ReadOnly) => AppendError::ReadOnly { source },
        _ => AppendError::Failed { source },
    }
}

/// Why a file was not opened.
pub(super) fn open(error: Error, path: &Path) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        // The folder is known to exist by now: the file, or the log beside it, was not allowed.
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            OpenError::ReadOnly { path }
        }
        Some(ErrorCode::NotADatabase) => {
            OpenError::NotAStore { path, found: "the file is not a database".to_owned() }
        }
        Some(ErrorCode::DiskFull) => OpenError::Full { path, source: Fault::new(error) },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            OpenError::Busy { path, source: Fault::new(error) }
        }
        _ => OpenError::Failed { path, source: Fault::new(error) },
    }
}
