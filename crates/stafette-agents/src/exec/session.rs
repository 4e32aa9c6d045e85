//! The session that a program keeps on its own, noted down so that the next turn continues it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};
use stafette_core::RunId;

use crate::Job;
use crate::stream::Totals;

/// The known data of a program's own session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Native {
    /// The session id of the program.
    pub(crate) id: String,
    /// Its consumption when it was last reported.
    #[serde(default)]
    pub(crate) totals: Totals,
}

/// The file that notes the session of one agent in one run.
#[derive(Clone, Debug)]
pub(crate) struct Notebook {
    place: PathBuf,
    profile: String,
}

/// A note, with the program that it is about: a session means nothing to another program.
#[derive(Serialize, Deserialize)]
struct Note {
    profile: String,
    #[serde(flatten)]
    native: Native,
}

/// Returns true once for each agent and run: what its program denies is always the same.
pub(super) fn is_first_report(job: &Job) -> bool {
    let run = job.order.key.run.to_string();
    let place = job.scratch.join("sessions").join(run).join(format!("{}.denies", job.order.agent));
    let create = || -> io::Result<()> {
        stafette_disk::folder_of(&place)?;
        stafette_disk::private().write(true).create_new(true).open(&place).map(drop)
    };
    !create().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
}

/// Removes the notes about the sessions of a run that has ended, whatever its agents' runners were.
pub(crate) fn forget_run(scratch: &Path, run: RunId) {
    let folder = scratch.join("sessions");
    // What cannot be removed only takes room.
    drop(fs::remove_dir_all(folder.join(run.to_string())));
    let notes = format!("{run}.");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(notes.as_bytes()) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

impl Notebook {
    /// The file for a job whose program has a profile.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        let profile = job.profile.as_ref()?.name.clone();
        let key = job.order.key;
        // Names of agents have no slashes.
        let name = format!("{}.{}.json", key.run, job.order.agent);
        Some(Notebook { place: job.scratch.join("sessions").join(name), profile })
    }

    /// The noted session, if any.
    pub(crate) fn read(&self) -> Option<Native> {
        let note: Note = serde_json::from_slice(&fs::read(&self.place).ok()?).ok()?;
        (note.profile == self.profile).then_some(note.native)
    }

    /// Notes a session. If that fails, the next turn only loses its memory.
    pub(crate) fn write(&self, native: &Native) {
        let note = Note { profile: self.profile.clone(), native: native.clone() };
        let write = || -> std::io::Result<()> {
            stafette_disk::folder_of(&self.place)?;
            let fresh = self.place.with_extension("new");
            stafette_disk::write(&fresh, serde_json::to_vec(&note)?)?;
            fs::rename(fresh, &self.place)
        };
        drop(write());
    }

    /// Forgets a session that the program no longer has.
    pub(crate) fn forget(&self) {
        drop(fs::remove_file(&self.place));
    }
}
