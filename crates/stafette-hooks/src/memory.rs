//! State that survives a restart, as one small file.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value in a separate file.
#[derive(Debug)]
pub(crate) struct Memory<T> {
    path: PathBuf,
    pub(crate) value: T,
}

impl<T: Serialize + DeserializeOwned + Default> Memory<T> {
    /// Reads the file. An unreadable file counts as missing.
    pub(crate) fn open(path: PathBuf) -> Self {
        let value = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(file = %path.display(), %error, "cannot be understood; begun anew");
                T::default()
            }),
            Err(_) => T::default(),
        };
        Memory { path, value }
    }

    /// Writes the file atomically. If that fails, the value is kept only until the daemon ends.
    pub(crate) fn save(&self) {
        let text = serde_json::to_vec(&self.value).map_err(std::io::Error::from);
        if let Err(error) = text.and_then(|text| stafette_disk::replace(&self.path, text)) {
            tracing::warn!(file = %self.path.display(), %error, "cannot be written");
        }
    }
}
