//! A projection on disk: as a whole, or as it was before.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads what was kept; what cannot be read is made again from the events.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let text = fs::read(path).ok()?;
    match serde_json::from_slice(&text) {
        Ok(kept) => Some(kept),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "is made again from the events");
            None
        }
    }
}

/// Keeps it, in place of what was kept before.
pub(crate) fn save(path: &Path, kept: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    // Not synced: after a power loss the old one is there, or none, and the events tell the rest.
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
