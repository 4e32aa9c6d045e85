//! The storage of changes: their records, the contents by digest, and the journal.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, flock, fsync, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use stafette_core::change::{Change, ChangeId, Content, Digest};
use uuid::Uuid;

use super::confined_dir::{ConfinedDir, Found, look_at};
use super::journal::Journal;
use super::{ChangeError, crash};

const JOURNAL: &str = "journal.json";

/// The time that a caller waits for a change that is being applied.
const PATIENCE: Duration = Duration::from_secs(5);

/// The folder `changes` of the project's state.
#[derive(Debug)]
pub(super) struct ChangeStore {
    path: PathBuf,
    inside: ConfinedDir,
    root: OwnedFd,
    sets: OwnedFd,
    blobs: OwnedFd,
}

/// The exclusive lock; held by the process that changes something.
#[derive(Debug)]
pub(super) struct Hold(#[expect(dead_code, reason = "it ends with the handle")] OwnedFd);

impl ChangeStore {
    pub(super) fn open(home: &Path) -> Result<ChangeStore, ChangeError> {
        let path = home.join("changes");
        let failed = |source| ChangeError::files("make", &path, source);
        stafette_disk::folder(home).map_err(failed)?;
        let outer = ConfinedDir::open(home).map_err(failed)?;
        outer.make_folder("changes", 0o700).map_err(failed)?;
        let root = outer.folder("changes").map_err(failed)?;
        let mut is_new = false;
        for name in ["sets", "blobs", "stage"] {
            match mkdirat(&root, name, Mode::from_raw_mode(0o700)) {
                Ok(()) => is_new = true,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        if is_new {
            // Files that are synced in a folder are durable only if the folder is.
            fsync(&root).map_err(|error| failed(error.into()))?;
        }
        let inside = ConfinedDir::open(&path).map_err(failed)?;
        let sets = inside.folder("sets").map_err(failed)?;
        let blobs = inside.folder("blobs").map_err(failed)?;
        Ok(ChangeStore { path, inside, root, sets, blobs })
    }

    /// Waits for the exclusive lock.
    pub(super) async fn hold(&self) -> Result<Hold, ChangeError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let failed = |error: Errno| ChangeError::files("lock", &self.path, error.into());
        let file = openat(&self.root, "lock", flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
        let since = tokio::time::Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Hold(file)),
                Err(Errno::WOULDBLOCK) if since.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(Errno::WOULDBLOCK) => return Err(ChangeError::Busy),
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Stores bytes under their digest.
    pub(super) fn keep(&self, bytes: &[u8]) -> Result<Digest, ChangeError> {
        let digest = digest(bytes);
        let (head, tail) = digest.as_str().split_at(2);
        let failed = |source| ChangeError::files("write", self.path.join("blobs"), source);
        let folder = self.blob_folder(head).map_err(failed)?;
        if let Ok(Found::File(there, _)) = look_at(folder.as_fd(), tail.as_ref(), |_| Ok(()))
            && there.sha256 == digest
        {
            return Ok(digest);
        }
        write_in(&folder, tail, bytes).map_err(failed)?;
        Ok(digest)
    }

    fn blob_folder(&self, head: &str) -> io::Result<OwnedFd> {
        match mkdirat(&self.blobs, head, Mode::from_raw_mode(0o700)) {
            Ok(()) => fsync(&self.blobs)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.inside.folder(&format!("blobs/{head}"))
    }

    /// Returns the bytes of a digest, verified.
    pub(super) fn blob(&self, digest: &Digest) -> Result<Vec<u8>, ChangeError> {
        let (head, tail) = digest.as_str().split_at(2);
        let path = || self.path.join("blobs").join(head).join(tail);
        let failed = |source| ChangeError::files("read", path(), source);
        let mut bytes = Vec::new();
        let folder = self.inside.folder(&format!("blobs/{head}")).map_err(failed)?;
        let keep = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        match look_at(folder.as_fd(), tail.as_ref(), keep).map_err(failed)? {
            Found::File(Content { sha256, .. }, _) if sha256 == *digest => Ok(bytes),
            Found::Nothing => Err(failed(io::ErrorKind::NotFound.into())),
            _ => Err(failed(io::Error::other("it is not what its name says"))),
        }
    }

    /// Returns all changes, oldest first.
    pub(super) fn list(&self) -> Result<Vec<Change>, ChangeError> {
        let mut ids = self.ids()?;
        ids.sort();
        ids.into_iter().map(|id| self.get(id)).collect()
    }

    /// Returns the changes whose records can be read, oldest first, and what is wrong with the
    /// others.
    pub(super) fn readable(&self) -> Result<(Vec<Change>, Vec<ChangeError>), ChangeError> {
        let mut ids = self.ids()?;
        ids.sort();
        let (mut changes, mut damaged) = (Vec::new(), Vec::new());
        for id in ids {
            match self.get(id) {
                Ok(change) => changes.push(change),
                Err(error @ ChangeError::Unreadable { .. }) => damaged.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok((changes, damaged))
    }

    fn ids(&self) -> Result<Vec<ChangeId>, ChangeError> {
        let folder = self.path.join("sets");
        let failed = |source| ChangeError::files("read", &folder, source);
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            ids.extend(id.and_then(|id| id.parse::<ChangeId>().ok()));
        }
        Ok(ids)
    }

    /// Returns the number for a new change.
    pub(super) fn next_id(&self) -> Result<ChangeId, ChangeError> {
        let last = self.ids()?.into_iter().max().unwrap_or_default();
        Ok(ChangeId(last.0 + 1))
    }

    pub(super) fn get(&self, id: ChangeId) -> Result<Change, ChangeError> {
        let path = self.path.join("sets").join(format!("{id}.json"));
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|source| ChangeError::Unreadable { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(ChangeError::NoChange { id })
            }
            Err(source) => Err(ChangeError::files("read", &path, source)),
        }
    }

    pub(super) fn put(&self, change: &Change) -> Result<(), ChangeError> {
        let name = format!("{}.json", change.id);
        let bytes = serde_json::to_vec_pretty(change).unwrap_or_default();
        write_in(&self.sets, &name, &bytes)
            .map_err(|source| ChangeError::files("write", self.path.join(name), source))
    }

    pub(super) fn journal(&self) -> Result<Option<Journal>, ChangeError> {
        let path = self.path.join(JOURNAL);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|source| ChangeError::Unreadable { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ChangeError::files("read", &path, source)),
        }
    }

    pub(super) fn write_journal(&self, journal: &Journal) -> Result<(), ChangeError> {
        let bytes = serde_json::to_vec(journal).unwrap_or_default();
        write_in(&self.root, JOURNAL, &bytes)
            .map_err(|source| ChangeError::files("write", self.path.join(JOURNAL), source))
    }

    /// Removes the journal, once nothing of it is left to do.
    pub(super) fn close_journal(&self) -> Result<(), ChangeError> {
        let failed =
            |error: Errno| ChangeError::files("remove", self.path.join(JOURNAL), error.into());
        match unlinkat(&self.root, JOURNAL, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
        }
        crash::point();
        fsync(&self.root).map_err(failed)?;
        self.clear_stage()
    }

    /// Makes a new staging folder.
    pub(super) fn stage(&self) -> Result<String, ChangeError> {
        let name = Uuid::now_v7().simple().to_string();
        let failed =
            |error: Errno| ChangeError::files("make", self.path.join("stage"), error.into());
        let stage = self.inside.folder("stage");
        let stage = stage.map_err(|error| ChangeError::files("open", &self.path, error))?;
        mkdirat(&stage, name.as_str(), Mode::from_raw_mode(0o700)).map_err(failed)?;
        fsync(&stage).map_err(failed)?;
        Ok(name)
    }

    pub(super) fn stage_folder(&self, name: &str) -> Result<OwnedFd, ChangeError> {
        self.inside
            .folder(&format!("stage/{name}"))
            .map_err(|source| ChangeError::files("open", self.path.join("stage"), source))
    }

    /// Removes staged files that are not needed. Only while no journal refers to them.
    pub(super) fn clear_stage(&self) -> Result<(), ChangeError> {
        let stage = self.path.join("stage");
        let failed = |source| ChangeError::files("remove", &stage, source);
        let ground = crate::removal::Ground::open(&stage).map_err(failed)?;
        for entry in std::fs::read_dir(&stage).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            crash::point();
            ground.remove(name.as_ref()).map_err(failed)?;
        }
        Ok(())
    }
}

pub(super) fn digest(bytes: &[u8]) -> Digest {
    Digest::of_bytes(&Sha256::digest(bytes))
}

/// Replaces a file atomically and durably: it is the old one or the new one.
fn write_in(folder: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!(".{name}.new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
    let handle = openat(folder, &temporary, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o600))?;
    crash::point();
    let mut file = std::fs::File::from(handle);
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // A partial file takes up space that may be needed.
        let _ = unlinkat(folder, &temporary, AtFlags::empty());
        return Err(error);
    }
    crash::point();
    renameat(folder, &temporary, folder, name)?;
    crash::point();
    Ok(fsync(folder)?)
}
