//! Reads what a program has used from the files in which it records its sessions, where it does not
//! report that itself.
//!
//! A ledger for each session notes how far its files were read. What was recorded since then belongs to
//! the next turn that ends in it, so that nothing is counted twice. A turn that is delivered again in
//! the same session counts what its lost result had counted; what was used in a session that nothing
//! continues after a crash is not seen.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stafette_core::{TurnKey, Unknown, Usage};
use tokio::time::{Instant, sleep};

use crate::Job;
use crate::process;
use crate::profile::{self, Profile, Record, Stream, Wall};
use crate::stream::{Decoder, Heard, Item, Meter, Totals};

/// The most that is read at the end of a turn, in bytes.
const READ: u64 = 64 * 1024 * 1024;

/// The number of bytes in one read.
const CHUNK: usize = 64 * 1024;

/// The most files of a session.
const FILES: usize = 256;

/// The most entries of folders that are looked at.
const ENTRIES: usize = 100_000;

/// The longest id of a session, in bytes.
const ID: usize = 200;

/// The time that a program has to record the end of its turn, and the interval of looks at its files.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);

/// The files of a program's session, and how far they were read.
#[derive(Clone, Debug)]
pub(crate) struct Transcript {
    /// The profile of the program, which reads its files by their rules.
    profile: Profile,
    files: Vec<PathBuf>,
    /// The folder of the ledgers, one for each session.
    ledgers: PathBuf,
    turn: TurnKey,
}

/// The data that was read of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Ledger {
    files: BTreeMap<String, Place>,
    /// The turn that read it last, with what that turn has counted.
    counted: Option<(TurnKey, Usage)>,
    /// The last items that were counted.
    items: Vec<Item>,
    totals: Totals,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Place {
    inode: u64,
    at: u64,
}

impl Transcript {
    /// For a job whose profile says where its program records its sessions.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        let environment = process::environment(job);
        let turn = job.order.key;
        let name = format!("{}.usage", job.order.agent);
        let ledgers = job.scratch.join("sessions").join(turn.run.to_string()).join(name);
        Transcript::new(job.profile.as_ref()?, &environment, ledgers, turn)
    }

    fn new(
        profile: &Profile,
        environment: &[(OsString, OsString)],
        ledgers: PathBuf,
        turn: TurnKey,
    ) -> Option<Self> {
        let Record { files, input_includes_cached, rules } = profile.session.clone()?;
        let totals = profile::Totals { session_tokens: true, session_cost: true };
        let files = files.iter().filter_map(|file| profile::place(file, environment)).collect();
        let profile =
            Profile { stream: Stream { totals, input_includes_cached, rules }, ..profile.clone() };
        Some(Transcript { profile, files, ledgers, turn })
    }

    /// Returns what session `id` has used since the last turn. A program may still be recording the end
    /// of this one, so it gets a moment.
    pub(crate) async fn used(&self, id: &str) -> Usage {
        let patience = Instant::now() + PATIENCE;
        loop {
            let (reader, session) = (self.clone(), id.to_owned());
            let read = tokio::task::spawn_blocking(move || reader.read(&session)).await;
            match read.ok().flatten() {
                Some(usage) => return usage,
                None if Instant::now() >= patience => return Usage::unknown(),
                None => sleep(LOOK).await,
            }
        }
    }

    /// Reads what was recorded since the last turn; `None` if nothing was.
    fn read(&self, id: &str) -> Option<Usage> {
        if !is_id(id) {
            return None;
        }
        let path = self.ledgers.join(id);
        let read = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let mut ledger: Ledger = read.unwrap_or_default();
        let mut meter = Meter::after(std::mem::take(&mut ledger.items));
        let (mut left, mut missed) = (READ, false);
        for path in self.found(id) {
            let Ok(mut file) = stafette_disk::open_itself(&path) else {
                missed = true;
                continue;
            };
            let place = ledger.files.entry(path.display().to_string()).or_default();
            let wall = Wall::here();
            let mut decoder = Decoder::new(&self.profile);
            let read = follow(&mut file, place, &mut left, |bytes| {
                decoder.push(bytes, &wall, |heard| {
                    if let Heard::Usage(count) = heard {
                        meter.take(&count);
                    }
                });
            });
            missed |= !read.unwrap_or(false);
        }
        let usage = meter.usage(&self.profile, ledger.totals);
        ledger.items = meter.items();
        ledger.totals = meter.totals().map_or(ledger.totals, |totals| totals.max(ledger.totals));
        let mut usage = match (usage, missed) {
            (usage, false) => usage?,
            (usage, true) => Usage { unknown: Unknown::TURN, ..usage.unwrap_or_default() },
        };
        // A result of this turn would have ended it, so the last one was lost.
        let lost = ledger.counted.filter(|(turn, _)| *turn == self.turn);
        usage += lost.map_or(Usage::default(), |(_, usage)| usage);
        ledger.counted = Some((self.turn, usage));
        // If that fails, the next turn has more to pay for.
        if let Ok(text) = serde_json::to_vec(&ledger) {
            drop(stafette_disk::replace(&path, text));
        }
        Some(usage)
    }

    /// The files of a session.
    fn found(&self, id: &str) -> Vec<PathBuf> {
        let mut left = ENTRIES;
        let mut found = Vec::new();
        for pattern in &self.files {
            found.extend(expand(pattern, id, &mut left));
        }
        found.sort();
        found.dedup();
        found.truncate(FILES);
        found
    }
}

/// True if this can be the name of a session: it becomes part of paths.
fn is_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !id.is_empty() && id.len() <= ID && !id.starts_with('.') && id.chars().all(plain)
}

/// The paths that a pattern stands for.
fn expand(pattern: &Path, id: &str, left: &mut usize) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.iter() {
        let short = id.get(..8).unwrap_or(id);
        let named = part.to_string_lossy().replace("{session}", id).replace("{session:8}", short);
        if !named.contains('*') {
            found.iter_mut().for_each(|path| path.push(&named));
            continue;
        }
        let mut inside = Vec::new();
        for folder in &found {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else { return Vec::new() };
                *left = rest;
                if fits(&named, &entry.file_name()) {
                    inside.push(entry.path());
                }
            }
        }
        found = inside;
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    found
}

/// True if a name fits a pattern, in which `*` is any text.
fn fits(pattern: &str, name: &OsStr) -> bool {
    let Some(mut name) = name.to_str() else { return false };
    let mut parts = pattern.split('*');
    let Some(rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    name = rest;
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return name.is_empty() };
    for part in between {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

/// Reads the whole lines that were added to a file. Returns false if some cannot be known: it is
/// another file than before, or too much was added.
fn follow(
    file: &mut File,
    place: &mut Place,
    left: &mut u64,
    mut each: impl FnMut(&[u8]),
) -> io::Result<bool> {
    let about = file.metadata()?;
    let is_other = place.inode != 0 && (place.inode != about.ino() || about.len() < place.at);
    place.inode = about.ino();
    if is_other {
        place.at = about.len();
        return Ok(false);
    }
    file.seek(SeekFrom::Start(place.at))?;
    let mut buffer = vec![0; CHUNK];
    let mut read = place.at;
    loop {
        let count = match file.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if count == 0 {
            return Ok(true);
        }
        let Some(rest) = left.checked_sub(count as u64) else {
            place.at = about.len();
            return Ok(false);
        };
        *left = rest;
        each(&buffer[..count]);
        if let Some(line) = buffer[..count].iter().rposition(|byte| *byte == b'\n') {
            place.at = read + line as u64 + 1;
        }
        read += count as u64;
    }
}

#[cfg(test)]
mod tests;
