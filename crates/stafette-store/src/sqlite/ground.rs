//! The files of an open store: they have to stay the ones that were opened.
//!
//! A file that was removed or replaced can still be written through its old descriptor, and what is
//! written there is gone with the process. So nothing is acknowledged before the paths were looked
//! at again.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file, the log of recent writes, and the index of that log.
const ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

/// Device and inode of a file; `None` if there is none at the path.
type Identity = Option<(u64, u64)>;

/// The files of a store, as they were when it was opened.
#[derive(Debug)]
pub(super) struct Ground {
    files: Vec<(PathBuf, Identity)>,
    lost: OnceLock<String>,
}

impl Ground {
    /// Notes the files of the open store at `path`.
    pub(super) fn of(path: &Path) -> Self {
        let file = |ending: &str| {
            let mut name = OsString::from(path);
            name.push(ending);
            let file = PathBuf::from(name);
            let identity = identity(&file);
            (file, identity)
        };
        Ground { files: ENDINGS.map(file).into(), lost: OnceLock::new() }
    }

    /// Returns why the store is lost, if that was noticed. A store that was closed removes files of
    /// its own, so it is not looked at again.
    pub(super) fn noted(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Returns why the store is lost; once lost, it stays so.
    pub(super) fn lost(&self) -> Option<&str> {
        let changed = |(path, noted): &&(PathBuf, Identity)| identity(path) != *noted;
        if self.lost.get().is_none()
            && let Some((path, _)) = self.files.iter().find(changed)
        {
            let what = if identity(path).is_some() { "replaced" } else { "removed" };
            // Another thread may have noticed it first, which is as good.
            let _ = self.lost.set(format!("{} was {what} while it was in use", path.display()));
        }
        self.noted()
    }
}

fn identity(path: &Path) -> Identity {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
