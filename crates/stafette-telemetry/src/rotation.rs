//! Log rotation: a file that is large enough is renamed, and the oldest is deleted.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Size of a log file, and number of older ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// Size at which a file is rotated, in bytes.
    pub bytes: u64,
    /// Number of older files that are kept.
    pub files: u32,
}

impl Default for Rotation {
    fn default() -> Self {
        Rotation { bytes: 16 << 20, files: 4 }
    }
}

impl Rotation {
    /// Returns true if a file of that size has no room for more. An empty file has room for
    /// anything.
    pub fn is_due(&self, bytes: u64, more: u64) -> bool {
        bytes > 0 && bytes + more > self.bytes
    }

    /// Rotates a file, deletes the oldest, and opens a new one in its place.
    ///
    /// # Errors
    /// When a file cannot be renamed, deleted or created.
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

/// Returns the path of an older file; 1 is the newest.
pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Opens a log for appending.
pub fn open(path: &Path) -> io::Result<File> {
    // The output of agents is for the user only.
    stafette_disk::private().create(true).read(true).append(true).open(path)
}
