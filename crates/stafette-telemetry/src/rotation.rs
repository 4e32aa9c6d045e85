//! Logs that do not grow for ever: a file that is large enough is put aside, and the oldest goes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How large a file gets, and how many older ones are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// A file that has reached so many bytes is put aside.
    pub bytes: u64,
    /// So many are kept besides the one that is written.
    pub files: u32,
}

impl Default for Rotation {
    fn default() -> Self {
        Rotation { bytes: 16 << 20, files: 4 }
    }
}

impl Rotation {
    /// Whether a file with so many bytes has no room for some more. An empty one has room for
    /// anything.
    #[must_use]
    pub fn is_due(&self, bytes: u64, more: u64) -> bool {
        bytes > 0 && bytes + more > self.bytes
    }

    /// Puts a file aside, and the oldest away; another one is in its place then.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn begin_anew(&self, path: &Path) -> io::Result<File> {
        for number in (1..self.files).rev() {
            let (from, to) = (numbered(path, number), numbered(path, number + 1));
            if from.exists() {
                fs::rename(from, to)?;
            }
        }
        fs::rename(path, numbered(path, 1))?;
        open(path)
    }
}

/// The place of an older file; 1 is the newest of them.
pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// A log, to be written at its end.
///
/// # Errors
/// When it cannot be had.
pub fn open(path: &Path) -> io::Result<File> {
    // What agents said is for the user alone.
    OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)
}
