//! An agent's own account of its work, safe on disk before it continues.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use stafette_core::{Time, TurnKey};

/// One line of a ledger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The time of the event, in UTC.
    pub at: String,
    pub key: TurnKey,
    pub event: Event,
    /// The commit; `None` when none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// An event that an agent records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The agent took its order.
    Started,
    /// The agent made a commit; one that it found is not recorded again.
    Committed,
    /// The agent finished all steps.
    Finished,
    /// The agent received the acknowledgement that its result is recorded for good.
    Acknowledged,
}

/// Reads a ledger; a missing one is empty. A line that a crash has torn is skipped: its event did
/// not happen.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn read_ledger(path: &Path) -> io::Result<Vec<Entry>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// The account of one turn.
#[derive(Debug)]
pub(super) struct Ledger {
    path: Option<PathBuf>,
    key: TurnKey,
}

impl Ledger {
    /// The account at `path`; without a path, nothing is written.
    pub(super) fn new(path: Option<PathBuf>, key: TurnKey) -> Self {
        Ledger { path, key }
    }

    /// Writes an entry. It is on disk when this returns.
    pub(super) fn note(&self, event: Event, commit: Option<&str>) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let entry = Entry { at: now(), key: self.key, event, commit: commit.map(Into::into) };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        if !path.exists()
            && let Some(folder) = path.parent()
        {
            fs::create_dir_all(folder)?;
            File::create_new(path).map(drop).or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })?;
            File::open(folder)?.sync_all()?;
        }
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        // Ends a line that a crash has torn, which would otherwise spoil this one.
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                line.insert(0, b'\n');
            }
        }
        file.write_all(&line)?;
        file.sync_data()
    }
}

fn now() -> String {
    Time::of(SystemTime::now()).rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_01_a_torn_line_costs_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/agent.jsonl");
        let key: TurnKey = "00000000-0000-0000-0000-000000000000/h1/1.1".parse().unwrap();
        assert_eq!(read_ledger(&path).unwrap(), []);

        let ledger = Ledger::new(Some(path.clone()), key);
        ledger.note(Event::Started, None).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(br#"{"at":"2026-01-01T00:00:00Z","key":"#).unwrap();
        let events = || read_ledger(&path).unwrap().iter().map(|e| e.event).collect::<Vec<_>>();
        assert_eq!(events(), [Event::Started]);

        ledger.note(Event::Committed, Some("abc")).unwrap();
        assert_eq!(events(), [Event::Started, Event::Committed]);
        assert_eq!(read_ledger(&path).unwrap()[1].commit.as_deref(), Some("abc"));
    }
}
