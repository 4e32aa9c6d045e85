//! Changes the project's files: stages them, records the plan, swaps them in, and swaps them back
//! unless it is decided that they stay.
//!
//! Displaced files are moved aside, not copied, so that the very same file comes back, and no space
//! is needed on a full disk. Until the journal says `landed`, every step is rolled back after a
//! crash; from then on nothing is.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fchmod, fstat, fsync, linkat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use stafette_core::change::{Change, Content, FilePath};

use super::change_store::ChangeStore;
use super::commit::Move;
use super::confined_dir::{ConfinedDir, Found, identity, look_at};
use super::{ChangeError, crash};

/// The number of tries to find a folder that another program moves meanwhile.
const TRIES: usize = 200;

/// A pending change of the project's files.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The folder for staged and displaced files.
    pub(super) stage: String,
    /// Folders to make, the outermost first.
    pub(super) folders: Vec<String>,
    pub(super) steps: Vec<Step>,
    /// The result to record once it is decided that the files stay.
    pub(super) landed: Option<Landing>,
}

/// The change of one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) file: FilePath,
    pub(super) before: Option<Content>,
    pub(super) after: Option<Content>,
    /// True if the new file gets the default permissions of new files.
    pub(super) fresh: bool,
    /// Device and inode of the staged file.
    pub(super) ready: Option<(u64, u64)>,
}

/// The result to record once the files stay.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Landing {
    pub(super) changes: Vec<Change>,
    pub(super) commit: Option<Move>,
    /// Folders to remove if they are empty, the outermost first.
    #[serde(default)]
    pub(super) emptied: Vec<String>,
}

fn new_name(number: usize) -> String {
    format!("{number}.new")
}

fn old_name(number: usize) -> String {
    format!("{number}.old")
}

impl Journal {
    /// Stages the new files and writes the journal. If this fails, the project has not changed.
    pub(super) fn begin(
        store: &ChangeStore,
        project: &ConfinedDir,
        mut steps: Vec<Step>,
    ) -> Result<Journal, ChangeError> {
        let stage = store.stage()?;
        let folder = store.stage_folder(&stage)?;
        crash::point();
        for (number, step) in steps.iter_mut().enumerate() {
            if let Some(after) = &step.after {
                let bytes = store.blob(&after.sha256)?;
                let failed = |source| ChangeError::files("write", step.file.as_str(), source);
                let ready = put_ready(&folder, &new_name(number), &bytes, after.mode, step.fresh);
                step.ready = Some(ready.map_err(failed)?);
                crash::point();
            }
        }
        fsync(&folder).map_err(|error| ChangeError::files("write", &stage, error.into()))?;
        let mut folders = Vec::new();
        for step in steps.iter().filter(|step| step.after.is_some()) {
            for outer in step.file.folders() {
                let is_there = project.has_folder(outer).map_err(|source| reach(step, source))?;
                if !is_there && !folders.iter().any(|known| known == outer) {
                    folders.push(outer.to_owned());
                }
            }
        }
        let journal = Journal { stage, folders, steps, landed: None };
        store.write_journal(&journal)?;
        crash::point();
        Ok(journal)
    }

    /// Swaps the new files of these steps in. Each displaced file must be the one that the step
    /// expects.
    pub(super) fn perform(
        &self,
        store: &ChangeStore,
        project: &ConfinedDir,
        wanted: impl Fn(&Step) -> bool,
    ) -> Result<(), ChangeError> {
        let stage = store.stage_folder(&self.stage)?;
        for folder in &self.folders {
            let made = project.make_folder(folder, 0o777);
            made.map_err(|source| ChangeError::files("make", folder, source))?;
            crash::point();
        }
        for (number, step) in self.steps.iter().enumerate().filter(|(_, step)| wanted(step)) {
            let parent = project.parent(&step.file).map_err(|source| reach(step, source))?;
            swap_in(&stage, &parent, number, step)?;
            crash::point();
            self.check_displaced(&stage, number)?;
            fsync(&parent).map_err(|source| reach(step, source.into()))?;
        }
        fsync(&stage).map_err(|error| ChangeError::files("write", &self.stage, error.into()))?;
        self.verify(store, project, wanted)
    }

    /// Checks that the displaced file is still the one that the change was made against.
    fn check_displaced(&self, stage: &OwnedFd, number: usize) -> Result<(), ChangeError> {
        let step = &self.steps[number];
        let (Some(before), Some(aside)) = (&step.before, self.aside(stage, number)?) else {
            return Ok(());
        };
        let found = look_at(stage.as_fd(), aside.as_ref(), |_| Ok(()));
        match found.map_err(|source| reach(step, source))? {
            Found::File(content, _) if content.sha256 == before.sha256 => Ok(()),
            Found::Other(kind) => Err(ChangeError::NotAFile { file: step.file.clone(), kind }),
            _ => Err(ChangeError::changed(&step.file)),
        }
    }

    /// Checks that the new files of these steps are the staged ones, and that the displaced ones
    /// have not changed since.
    pub(super) fn verify(
        &self,
        store: &ChangeStore,
        project: &ConfinedDir,
        wanted: impl Fn(&Step) -> bool,
    ) -> Result<(), ChangeError> {
        let stage = store.stage_folder(&self.stage)?;
        for (number, step) in self.steps.iter().enumerate().filter(|(_, step)| wanted(step)) {
            let found = project.look(&step.file).map_err(|source| reach(step, source))?;
            let is_so = match (&found, &step.after) {
                (Found::Nothing, None) => true,
                (Found::File(content, which), Some(after)) => {
                    content.sha256 == after.sha256 && Some(*which) == step.ready
                }
                _ => false,
            };
            if !is_so {
                return Err(ChangeError::changed(&step.file));
            }
            self.check_displaced(&stage, number)?;
        }
        Ok(())
    }

    /// Returns the name in the staging folder of what a step has displaced.
    fn aside(&self, stage: &OwnedFd, number: usize) -> Result<Option<String>, ChangeError> {
        let step = &self.steps[number];
        let which = |name: &str| match statat(stage, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(identity(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(reach(step, error.into())),
        };
        if which(&old_name(number))?.is_some() {
            return Ok(Some(old_name(number)));
        }
        let swapped = which(&new_name(number))?.filter(|which| Some(*which) != step.ready);
        Ok(swapped.map(|_| new_name(number)))
    }

    /// Rolls every step back. What other programs have written to the new files meanwhile is kept,
    /// and reported. Safe to repeat.
    pub(super) fn restore(
        &self,
        store: &ChangeStore,
        project: &ConfinedDir,
    ) -> Result<Vec<String>, ChangeError> {
        let stage = store.stage_folder(&self.stage)?;
        let mut notes = Vec::new();
        for (number, step) in self.steps.iter().enumerate().rev() {
            let aside = self.aside(&stage, number)?;
            let is_made = step.before.is_none() && self.is_used(&stage, number)?;
            if aside.is_none() && !is_made {
                continue;
            }
            // A program that keeps moving folders stops sooner or later.
            let parent = match persist(|| project.parent(&step.file)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if aside.is_none() {
                        continue;
                    }
                    for folder in step.file.folders() {
                        let made = project.make_folder(folder, 0o777);
                        made.map_err(|source| reach(step, source))?;
                    }
                    project.parent(&step.file)
                }
                other => other,
            };
            let parent = parent.map_err(|source| reach(step, source))?;
            crash::point();
            notes.extend(spare(store, &parent, step)?);
            let put_back = match aside {
                Some(aside) => put_back(&stage, &aside, &parent, step),
                None => match unlinkat(&parent, step.file.name(), AtFlags::empty()) {
                    Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
                    other => other.map_err(io::Error::from),
                },
            };
            put_back.map_err(|source| reach(step, source))?;
            crash::point();
            fsync(&parent).map_err(|source| reach(step, source.into()))?;
        }
        for folder in self.folders.iter().rev() {
            let gone = project.remove_folder(folder);
            if !gone.map_err(|source| ChangeError::files("remove", folder, source))? {
                notes.push(format!("{folder} stays: something else is in it now"));
            }
            crash::point();
        }
        Ok(notes)
    }

    /// True if the staged file is in use, or was.
    fn is_used(&self, stage: &OwnedFd, number: usize) -> Result<bool, ChangeError> {
        match statat(stage, new_name(number), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(false),
            Err(Errno::NOENT) => Ok(true),
            Err(error) => Err(reach(&self.steps[number], error.into())),
        }
    }
}

fn reach(step: &Step, source: io::Error) -> ChangeError {
    ChangeError::files("reach", step.file.as_str(), source)
}

fn put_ready(
    folder: &OwnedFd,
    name: &str,
    bytes: &[u8],
    mode: u32,
    fresh: bool,
) -> io::Result<(u64, u64)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode & 0o777);
    let handle = openat(folder, name, flags, mode)?;
    if !fresh {
        fchmod(&handle, mode)?;
    }
    let which = identity(&fstat(&handle)?);
    let mut file = std::fs::File::from(handle);
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(which)
}

fn swap_in(
    stage: &OwnedFd,
    parent: &OwnedFd,
    number: usize,
    step: &Step,
) -> Result<(), ChangeError> {
    let (new, old, name) = (new_name(number), old_name(number), step.file.name());
    let done = match (&step.before, &step.after) {
        (None, None) => Ok(()),
        (None, Some(_)) => match renameat_with(stage, &new, parent, name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {
                let linked = linkat(stage, &new, parent, name, AtFlags::empty());
                linked.and_then(|()| unlinkat(stage, &new, AtFlags::empty()))
            }
            other => other,
        },
        (Some(_), Some(_)) => {
            match renameat_with(stage, &new, parent, name, RenameFlags::EXCHANGE) {
                Err(Errno::INVAL | Errno::NOSYS) => {
                    let aside = renameat(parent, name, stage, &old);
                    crash::point();
                    aside.and_then(|()| renameat(stage, &new, parent, name))
                }
                other => other,
            }
        }
        (Some(_), None) => renameat(parent, name, stage, &old),
    };
    match done {
        Err(Errno::EXIST | Errno::NOENT) => Err(ChangeError::changed(&step.file)),
        other => other.map_err(|error| reach(step, error.into())),
    }
}

fn put_back(stage: &OwnedFd, aside: &str, parent: &OwnedFd, step: &Step) -> io::Result<()> {
    let name = step.file.name();
    match renameat(stage, aside, parent, name) {
        // A folder appeared where a file was: it is moved aside, with its content.
        Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {
            let beside = format!("{name}.kept");
            renameat_with(parent, name, parent, beside, RenameFlags::NOREPLACE)?;
            Ok(renameat(stage, aside, parent, name)?)
        }
        other => Ok(other?),
    }
}

/// Keeps what another program has written to a new file, before the file is removed.
fn spare(
    store: &ChangeStore,
    parent: &OwnedFd,
    step: &Step,
) -> Result<Option<String>, ChangeError> {
    let mut bytes = Vec::new();
    let keep = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    let found = look_at(parent.as_fd(), step.file.name().as_ref(), keep);
    let content = match found.map_err(|source| reach(step, source))? {
        Found::File(content, _) => content,
        _ => return Ok(None),
    };
    let ours = [&step.after, &step.before];
    if ours.into_iter().flatten().any(|known| known.sha256 == content.sha256) {
        return Ok(None);
    }
    // On a full disk, restoring the project is more important.
    Ok(Some(match store.keep(&bytes) {
        Ok(digest) => {
            let short = digest.as_str().get(..12).unwrap_or_default();
            format!("{} had been changed meanwhile; that is kept as {short}…", step.file)
        }
        Err(error) => format!("{} had been changed meanwhile, which is lost: {error}", step.file),
    }))
}

fn persist<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match attempt() {
            Err(_) => std::thread::yield_now(),
            found => return found,
        }
    }
    attempt()
}
