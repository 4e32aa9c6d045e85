//! The ground that a daemon stands on: it is the only one of its project, and everything that it
//! keeps is still at its place.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use stafette_store::Store;

use crate::exit::Failure;
use crate::project::Project;
use crate::state::{self, Holder};

/// The time between two looks at the ground.
const LOOK: Duration = Duration::from_millis(500);

/// The locks of a project's daemon, held as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The project's folder: whoever removes the lock does not make room for a second daemon.
    /// `None` on a file system that cannot lock folders.
    _project: Option<File>,
    file: File,
}

/// Locks the project: there is one daemon for each. `None` while another one has it.
///
/// # Errors
/// When the project cannot be locked at all.
pub(crate) fn lock(project: &Project) -> Result<Option<Lock>, Failure> {
    let file = state::open_lock(&project.root)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    let folder =
        File::open(&project.root).map_err(|error| state::not_read(&project.root, &error))?;
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock { _project: Some(folder), file })),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(_) => Ok(Some(Lock { _project: None, file })),
    }
}

/// Takes the locks; a process that only checks whether they are free holds them for a moment.
pub(super) async fn take(project: &Project) -> Result<Lock, Failure> {
    let mut taken = lock(project)?;
    for _ in 0..50 {
        if taken.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        taken = lock(project)?;
    }
    let lock = taken.ok_or_else(|| {
        Failure::failed("A daemon already runs for this project")
            .fix("use it, or stop it with `stafette down`")
    })?;
    let socket = project.own_socket().to_string_lossy().into_owned();
    let holder = Holder { pid: std::process::id(), socket };
    let text = serde_json::to_vec(&holder).expect("our own types are JSON");
    let write = || -> std::io::Result<()> {
        lock.file.set_len(0)?;
        (&lock.file).write_all(&text)
    };
    write().map_err(|error| {
        let path = state::lock_path(&project.root);
        state::not_written(&path, &error)
    })?;
    Ok(lock)
}

/// The process that holds the locks, as far as it is known.
pub(super) fn holder(project: &Project) -> String {
    state::holder(&project.root).map_or_else(|| "?".to_owned(), |holder| holder.pid.to_string())
}

/// Device and inode of a file or folder.
type Identity = (u64, u64);

/// The files and folders of a daemon, as they were when it made or opened them.
#[derive(Debug)]
pub(super) struct Ground {
    project: PathBuf,
    places: Vec<(PathBuf, Identity)>,
}

impl Ground {
    /// Notes the state folder, and the lock in the project.
    pub(super) fn new(project: &Project, state: &Path, lock: &Lock) -> Self {
        let mut ground = Ground { project: project.root.clone(), places: Vec::new() };
        ground.note(state);
        if let Ok(file) = lock.file.metadata() {
            let path = state::lock_path(&project.root);
            ground.places.push((path, (file.dev(), file.ino())));
        }
        ground
    }

    /// Notes one more file, if it is there.
    pub(super) fn note(&mut self, path: &Path) {
        self.places.extend(identity(path).map(|found| (path.to_owned(), found)));
    }

    /// True if the file at this path is still the one that was noted.
    pub(super) fn owns(&self, path: &Path) -> bool {
        self.places.iter().any(|(noted, was)| noted == path && identity(noted) == Some(*was))
    }

    /// Returns once something is gone or belongs to another: then nothing can be kept any more.
    pub(super) async fn lost(&self, store: &dyn Store) -> Failure {
        loop {
            if !self.project.exists() {
                return Failure::failed("The daemon has lost what it stands on, and stops")
                    .why(format!("the folder {} was moved or removed", self.project.display()))
                    .fix("if it was moved, take its runs along with `stafette state adopt` there");
            }
            let gone = self.places.iter().find(|(path, was)| identity(path) != Some(*was));
            let gone = gone.map(|(path, _)| {
                format!("{} was removed or replaced while it was in use", path.display())
            });
            if let Some(why) = store.lost().or(gone) {
                return Failure::failed("The daemon has lost what it stands on, and stops")
                    .why(why)
                    .fix("put back what was there, or begin anew with `stafette up`");
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
