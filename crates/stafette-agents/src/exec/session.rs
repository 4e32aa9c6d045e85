//! The session that a program keeps on its own, noted down so that the next turn continues it.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
