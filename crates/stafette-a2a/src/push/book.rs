//! Subscriptions on disk, one file each.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use a2a_types::TaskPushNotificationConfig;
use serde::{Deserialize, Serialize};
use stafette_core::RunId;

/// Maximum size of a file that is read, in bytes.
const LARGEST: u64 = 64 * 1024;

/// A subscription to notifications about a task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Target and credentials.
    pub(super) config: TaskPushNotificationConfig,
    /// State of the task that was last sent.
    pub(super) told: String,
}

/// All subscriptions of a project.
#[derive(Debug)]
pub(super) struct Book {
    folder: PathBuf,
}

/// Returns true if a text is valid as the id of a subscription.
pub(super) fn is_name(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&id.len()) && id.bytes().all(plain)
}

impl Book {
    pub(super) fn new(folder: PathBuf) -> Self {
        Book { folder }
    }

    pub(super) fn place(&self, run: RunId, id: &str) -> PathBuf {
        self.folder.join(run.to_string()).join(format!("{id}.json"))
    }

    /// Returns the ids of all subscriptions, with their runs.
    pub(super) fn all(&self) -> Vec<(RunId, String)> {
        let runs = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let runs = runs.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        runs.flat_map(|run: RunId| self.of(run).into_iter().map(move |(id, _)| (run, id))).collect()
    }

    /// Returns the subscriptions of a run, by id.
    pub(super) fn of(&self, run: RunId) -> Vec<(String, Entry)> {
        let entries = fs::read_dir(self.folder.join(run.to_string())).into_iter().flatten();
        let mut found: Vec<(String, Entry)> = entries
            .flatten()
            .filter_map(|entry| {
                let id = entry.file_name().to_str()?.strip_suffix(".json")?.to_owned();
                let entry = self.read(run, &id)?;
                Some((id, entry))
            })
            .collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }

    pub(super) fn read(&self, run: RunId, id: &str) -> Option<Entry> {
        if !is_name(id) {
            return None;
        }
        let mut text = Vec::new();
        let file = File::open(self.place(run, id)).ok()?;
        file.take(LARGEST).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes a subscription; only our user may read it, since it contains secrets.
    pub(super) fn write(&self, run: RunId, id: &str, entry: &Entry) -> std::io::Result<()> {
        stafette_disk::replace(&self.place(run, id), serde_json::to_vec(entry)?)
    }

    /// Removes a subscription; a missing one is no error.
    pub(super) fn remove(&self, run: RunId, id: &str) -> std::io::Result<()> {
        if !is_name(id) {
            return Ok(());
        }
        let removed = fs::remove_file(self.place(run, id));
        // Succeeds only if the folder is empty.
        drop(fs::remove_dir(self.folder.join(run.to_string())));
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
