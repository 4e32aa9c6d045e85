//! A project whose folder has another path now: its state is kept under the path that it had.
//!
//! The folder is known by its device, its inode and the time when it was made, all three. Nothing
//! is moved before a person says so, and nothing is offered while the old path leads anywhere: then
//! the folder may be a copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{OWNER, Owner, not_written, note, place, projects, put_aside};
use crate::exit::Failure;

/// The most states that are looked at.
const LIMIT: usize = 10_000;

/// The most that is read of a state's note, in bytes.
const NOTE_BYTES: u64 = 64 * 1024;

/// The state of this very folder, from the time when it was elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moved {
    /// The path that the project had.
    pub(crate) from: PathBuf,
    /// The folder of its state.
    pub(crate) state: PathBuf,
}

impl Moved {
    /// One line about it, for people.
    pub(crate) fn line(&self) -> String {
        let from = self.from.display();
        format!("This project was at {from}: `stafette state adopt` takes its runs along")
    }
}

/// Looks for the state that this folder had at another path.
pub(crate) fn find(root: &Path) -> Option<Moved> {
    let present = Owner::of(root).ok().filter(|owner| owner.made.is_some())?;
    let own = place(root);
    let states = fs::read_dir(projects()).ok()?.take(LIMIT).flatten().map(|entry| entry.path());
    states.filter(|state| *state != own).find_map(|state| {
        let text = stafette_disk::read(&state.join(OWNER), NOTE_BYTES).ok()?;
        let owner: Owner = serde_json::from_slice(&text).ok()?;
        let is_same = (owner.device, owner.inode, owner.made)
            == (present.device, present.inode, present.made);
        let from = PathBuf::from(&owner.path);
        // A state that was put aside, or copied, has another name than its project's.
        let is_its_own = place(&from).file_name() == state.file_name();
        let gone = || {
            let found = fs::symlink_metadata(&from);
            found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        (is_same && is_its_own && gone()).then_some(Moved { from, state })
    })
}

/// Makes it the state of the folder as it is now. A state without runs that is there already is
/// put aside.
pub(crate) fn take(moved: &Moved, root: &Path) -> Result<PathBuf, Failure> {
    let state = place(root);
    if state.exists() {
        put_aside(root)?;
    }
    fs::rename(&moved.state, &state).map_err(|error| not_written(&state, &error))?;
    note(root)?;
    Ok(state)
}
