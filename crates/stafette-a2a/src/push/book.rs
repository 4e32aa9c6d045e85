//! Who wants to be notified, on the disk: one file for each of them.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use a2a_types::TaskPushNotificationConfig;
use serde::{Deserialize, Serialize};
use stafette_core::RunId;

/// The largest file that is read.
const LARGEST: u64 = 64 * 1024;

/// Somebody who wants to be notified.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Where and how.
    pub(super) config: TaskPushNotificationConfig,
    /// The standing of the task that they were told last.
    pub(super) told: String,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Book {
    folder: PathBuf,
}

/// Whether a text can name an entry.
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

    /// The names of all entries, with their runs.
    pub(super) fn all(&self) -> Vec<(RunId, String)> {
        let runs = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let runs = runs.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        runs.flat_map(|run: RunId| self.of(run).into_iter().map(move |(id, _)| (run, id))).collect()
    }

    /// The entries of a run, by name.
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

    /// Notes an entry; only our user may read it, since it holds secrets.
    pub(super) fn write(&self, run: RunId, id: &str, entry: &Entry) -> std::io::Result<()> {
        let place = self.place(run, id);
        let folder = self.folder.join(run.to_string());
        fs::create_dir_all(&folder)?;
        let fresh = place.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&fresh)?;
        file.write_all(&serde_json::to_vec(entry)?)?;
        file.sync_all()?;
        fs::rename(fresh, place)?;
        File::open(folder)?.sync_all()
    }

    /// Forgets an entry; one that is not there is forgotten already.
    pub(super) fn remove(&self, run: RunId, id: &str) -> std::io::Result<()> {
        if !is_name(id) {
            return Ok(());
        }
        let removed = fs::remove_file(self.place(run, id));
        // Goes only when it is empty.
        drop(fs::remove_dir(self.folder.join(run.to_string())));
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
