//! Small files that only their user can read, written atomically.

use std::io::{ErrorKind, Result};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a file that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// Reads a file; `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match stafette_disk::read(path, LONGEST) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => Ok(Some(serde_json::from_slice(&text?)?)),
    }
}

/// Replaces the file atomically: after a crash, either the old or the new one is there.
pub(crate) fn write(path: &Path, content: &impl Serialize) -> Result<()> {
    stafette_disk::replace(path, serde_json::to_vec_pretty(content)?)
}
