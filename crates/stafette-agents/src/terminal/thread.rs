//! The session that a program in a terminal keeps on its own: after its death it continues with it.
//!
//! The arguments that begin and continue a session, and the files in which programs record theirs,
//! are data of their profile.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use uuid::Uuid;

use crate::Job;
use crate::exec::session::{Native, Notebook};
use crate::process;
use crate::profile::{self, Sessions};
use crate::stream::Totals;

/// The word of a command that stands for its session.
const PLACE: &str = "{resume}";

/// The maximum number of session files that are read, and the maximum depth of their folder.
const NOTES: usize = 10_000;
const DEPTH: usize = 5;

/// Files are dated by a clock that advances in ticks, and lags by up to one (1/100 s at most).
const TICK: Duration = Duration::from_millis(10);

/// The longest first line of a session file, in bytes.
const LINE: u64 = 1024 * 1024;

/// A program's own session.
#[derive(Debug)]
pub(crate) struct Thread {
    /// The arguments that begin a session under a name of ours.
    begin: Vec<String>,
    /// The arguments that continue a session.
    resume: Vec<String>,
    /// The files in which the program records its sessions, if we cannot name them.
    sessions: Option<Sessions>,
    folders: Vec<PathBuf>,
    /// The working folder of the program.
    place: PathBuf,
    notebook: Notebook,
    now: Mutex<Now>,
}

/// The state of the program that runs.
#[derive(Debug)]
struct Now {
    since: SystemTime,
    /// The name under which it has begun its session.
    begun: Option<String>,
    /// True if it continues an earlier session.
    resumed: bool,
    worked: bool,
}

impl Thread {
    /// For a job whose program can continue its session.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        let pty = job.profile.as_ref()?.pty.as_ref()?;
        if pty.resume.is_empty() {
            return None;
        }
        let folders = pty.sessions.iter().flat_map(|sessions| &sessions.folders);
        let environment = process::environment(job);
        Some(Thread {
            begin: pty.begin.clone(),
            resume: pty.resume.clone(),
            sessions: pty.sessions.clone(),
            folders: folders.filter_map(|folder| profile::place(folder, &environment)).collect(),
            place: job.folder.clone(),
            notebook: Notebook::of(job)?,
            now: Mutex::new(Now {
                since: SystemTime::now(),
                begun: None,
                resumed: false,
                worked: false,
            }),
        })
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command for a program that starts now.
    pub(crate) fn command(&self, command: &[OsString]) -> Vec<OsString> {
        let known = self.notebook.read().map(|native| native.id);
        let begun = match known {
            None if !self.begin.is_empty() => Some(Uuid::new_v4().to_string()),
            _ => None,
        };
        let (words, id) = match (&known, &begun) {
            (Some(id), _) => (self.resume.as_slice(), id.as_str()),
            (None, Some(id)) => (self.begin.as_slice(), id.as_str()),
            (None, None) => (&[][..], ""),
        };
        let words: Vec<OsString> =
            words.iter().map(|word| word.replace("{session}", id).into()).collect();
        let since = SystemTime::now();
        *self.now() = Now { since, begun, resumed: known.is_some(), worked: false };
        let fill = |word: &OsString| match word == PLACE {
            true => words.clone(),
            false => vec![word.clone()],
        };
        command.iter().flat_map(fill).collect()
    }

    /// Called when the program gets a turn: from here on there is a session to continue.
    pub(crate) fn turn_begins(&self) {
        let begun = {
            let mut now = self.now();
            now.worked = true;
            now.begun.take()
        };
        if let Some(id) = begun {
            self.note(id);
        }
    }

    /// Called when the turn has ended: by now the program has recorded its session itself.
    pub(crate) fn turn_ends(&self) {
        if self.sessions.is_some() && self.notebook.read().is_none() {
            self.found().into_iter().for_each(|id| self.note(id));
        }
    }

    /// The id of the session, if it is known by now.
    pub(crate) fn session(&self) -> Option<String> {
        self.turn_ends();
        self.notebook.read().map(|native| native.id)
    }

    /// Called when the program has died. One that died before it had a turn may not be able to
    /// continue its session, so the next one begins afresh.
    pub(crate) fn died(&self) {
        let (resumed, worked) = {
            let now = self.now();
            (now.resumed, now.worked)
        };
        if resumed && !worked {
            self.notebook.forget();
        } else if worked {
            self.turn_ends();
        }
    }

    fn note(&self, id: String) {
        self.notebook.write(&Native { id, totals: Totals::default() });
    }

    /// The session that was begun here since the program started, if it is the only one.
    fn found(&self) -> Option<String> {
        let sessions = self.sessions.as_ref()?;
        let since = self.now().since;
        let mut left = NOTES;
        let mut notes = Vec::new();
        for folder in &self.folders {
            // A folder that does not exist has no files.
            drop(gather(folder, since, DEPTH, &mut left, &mut notes));
        }
        let read = |note: &PathBuf| -> Option<String> {
            let first = first_line(note)?;
            let text = |pointer: &str| first.pointer(pointer).and_then(Value::as_str);
            let here = Path::new(text(&sessions.place)?);
            let same = here == self.place
                || here.canonicalize().ok()? == self.place.canonicalize().ok()?;
            let id = text(&sessions.id).filter(|id| same && !id.starts_with('-'))?;
            Some(id.to_owned())
        };
        let mut found: Vec<String> = notes.iter().filter_map(read).collect();
        found.sort();
        found.dedup();
        <[String; 1]>::try_from(found).ok().map(|[id]| id)
    }
}

/// The files below a folder that were written since then, by the clock of the file system.
fn gather(
    folder: &Path,
    since: SystemTime,
    depth: usize,
    left: &mut usize,
    notes: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let Some(rest) = left.checked_sub(1) else { return Ok(()) };
        *left = rest;
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            drop(gather(&entry.path(), since, depth - 1, left, notes));
        } else if kind.is_file()
            && entry.metadata().and_then(|data| data.modified()).is_ok_and(|at| at + TICK >= since)
        {
            notes.push(entry.path());
        }
    }
    Ok(())
}

/// Reads the first line of a session file. An agent writes there: what it puts in its place is not
/// followed, and holds nothing up.
fn first_line(path: &Path) -> Option<Value> {
    let mut line = Vec::new();
    let file = BufReader::new(stafette_disk::open_itself(path).ok()?);
    io::Read::take(file, LINE).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn b_20_a_session_file_is_read_only_if_it_is_a_file_itself() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("session"), "{\"id\": 1}\nmore").unwrap();
        assert_eq!(first_line(&at("session")).unwrap()["id"], 1);
        symlink(at("session"), at("link")).unwrap();
        symlink("/dev/zero", at("endless")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        for name in ["link", "endless", "pipe"] {
            assert_eq!(first_line(&at(name)), None, "{name}");
        }
        // Its first line has no end.
        let endless = File::create(at("long")).unwrap();
        endless.set_len(1 << 40).unwrap();
        assert_eq!(first_line(&at("long")), None);
    }

    #[test]
    fn s1_15_a_note_is_new_though_the_clock_of_files_lags_by_a_tick() {
        let folder = tempfile::tempdir().unwrap();
        let since = SystemTime::now();
        let dated = |name: &str, before: Duration| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(since - before).unwrap();
        };
        dated("a-tick-ago", TICK / 2);
        dated("of-a-program-before", TICK * 2);
        let mut notes = Vec::new();
        gather(folder.path(), since, DEPTH, &mut { NOTES }, &mut notes).unwrap();
        assert_eq!(notes, [folder.path().join("a-tick-ago")]);
    }
}
