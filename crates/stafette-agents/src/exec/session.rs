//! The session that a program keeps by itself, noted down so that the next turn goes on with it.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Job;
use crate::stream::Totals;

/// What is known about a program's own session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Native {
    /// Its id.
    pub(crate) id: String,
    /// What it had used when it was last heard of.
    #[serde(default)]
    pub(crate) totals: Totals,
}

/// Where the session of one agent in one run is noted.
#[derive(Clone, Debug)]
pub(crate) struct Notebook {
    place: PathBuf,
    profile: String,
}

/// A note, with what it is about: a session means nothing to another program.
#[derive(Serialize, Deserialize)]
struct Note {
    profile: String,
    #[serde(flatten)]
    native: Native,
}

impl Notebook {
    /// The place for a job whose program has a profile.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        let profile = job.profile.as_ref()?.name.clone();
        let key = job.order.key;
        // Names of agents have no slashes.
        let name = format!("{}.{}.json", key.run, job.order.agent);
        Some(Notebook { place: job.scratch.join("sessions").join(name), profile })
    }

    /// What is noted.
    pub(crate) fn read(&self) -> Option<Native> {
        let note: Note = serde_json::from_slice(&fs::read(&self.place).ok()?).ok()?;
        (note.profile == self.profile).then_some(note.native)
    }

    /// Notes a session. A note that cannot be written costs the next turn its memory and nothing
    /// else.
    pub(crate) fn write(&self, native: &Native) {
        let note = Note { profile: self.profile.clone(), native: native.clone() };
        let write = || -> std::io::Result<()> {
            if let Some(folder) = self.place.parent() {
                fs::create_dir_all(folder)?;
            }
            let fresh = self.place.with_extension("new");
            fs::write(&fresh, serde_json::to_vec(&note)?)?;
            fs::rename(fresh, &self.place)
        };
        drop(write());
    }

    /// Forgets the session: the program does.
    pub(crate) fn forget(&self) {
        drop(fs::remove_file(&self.place));
    }
}
