//! Small files that only their user can read, written atomically.

use std::fs;
use std::io::{Error, ErrorKind, Result, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a file that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// Reads a file; `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(file) if file.len() > LONGEST => Err(Error::other("it is too long")),
        Ok(_) => Ok(Some(serde_json::from_str(&fs::read_to_string(path)?)?)),
    }
}

/// Replaces the file atomically: after a crash, either the old or the new one is there.
pub(crate) fn write(path: &Path, content: &impl Serialize) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let text = serde_json::to_vec_pretty(content)?;
    // Temporary files are readable by their user only, and stay so when renamed.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&text)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    fs::File::open(folder)?.sync_all()
}
