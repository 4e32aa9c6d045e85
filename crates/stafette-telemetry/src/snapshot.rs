//! A projection on disk, replaced atomically.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Loads a projection; an unreadable one is rebuilt from the events.
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

/// Saves a projection in place of the old one.
pub(crate) fn save(path: &Path, kept: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    stafette_disk::folder(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    // Not synced: after a power loss the old file is there, or none, and the events restore the
    // rest.
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
