//! Access to the project's files by its handle: no link, no mount and no `..` leads out.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fsync, mkdirat, openat,
    openat2, statat, unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use stafette_core::change::{Content, Digest, FilePath};

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);

/// The kind of object at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    Nothing,
    /// A regular file, with its device and inode.
    File(Content, (u64, u64)),
    /// An object that no change may touch, named in words.
    Other(&'static str),
}

/// A folder held open, and access to its contents.
#[derive(Debug)]
pub(super) struct ConfinedDir {
    root: OwnedFd,
    device: u64,
    by_kernel: bool,
}

impl ConfinedDir {
    /// Opens a folder. The path to it may contain links.
    pub(super) fn open(folder: &Path) -> io::Result<ConfinedDir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, folder, flags, Mode::empty())?;
        let by_kernel = openat2(&root, ".", FOLDER, Mode::empty(), BENEATH).is_ok();
        let device = fstat(&root)?.st_dev;
        Ok(ConfinedDir { root, device, by_kernel })
    }

    /// Simulates a kernel that cannot confine paths to a folder.
    #[cfg(test)]
    pub(super) fn by_hand(mut self) -> Self {
        self.by_kernel = false;
        self
    }

    /// Opens a folder within, by its path without `.` and `..`; the empty path is the folder
    /// itself.
    pub(super) fn folder(&self, path: &str) -> io::Result<OwnedFd> {
        if path.is_empty() {
            return self.root.try_clone();
        }
        if self.by_kernel {
            return Ok(openat2(&self.root, path, FOLDER, Mode::empty(), BENEATH)?);
        }
        let mut handle = self.root.try_clone()?;
        for name in path.split('/') {
            if name.is_empty() || name == "." || name == ".." {
                return Err(Errno::XDEV.into());
            }
            handle = openat(&handle, name, FOLDER, Mode::empty())?;
            if fstat(&handle)?.st_dev != self.device {
                return Err(Errno::XDEV.into());
            }
        }
        Ok(handle)
    }

    /// Opens the folder of a file.
    pub(super) fn parent(&self, file: &FilePath) -> io::Result<OwnedFd> {
        self.folder(file.folders().last().unwrap_or_default())
    }

    /// Makes a folder in an existing one; succeeds if it already exists.
    pub(super) fn make_folder(&self, path: &str, mode: u32) -> io::Result<()> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.folder(parent)?;
        match mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
            Ok(()) => Ok(fsync(&parent)?),
            Err(Errno::EXIST) => self.folder(path).map(drop),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a folder if it is empty; returns true if it is gone.
    pub(super) fn remove_folder(&self, path: &str) -> io::Result<bool> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = match self.folder(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            other => other?,
        };
        match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => fsync(&parent).map(|()| true).map_err(io::Error::from),
            Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// True if a folder exists.
    pub(super) fn has_folder(&self, path: &str) -> io::Result<bool> {
        match self.folder(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the kind of object at a path.
    pub(super) fn look(&self, file: &FilePath) -> io::Result<Found> {
        let parent = match self.parent(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            other => other?,
        };
        look_at(parent.as_fd(), file.name().as_ref(), |_| Ok(()))
    }

    /// Returns the kind of object at a path, and passes its bytes to `keep` piece by piece.
    pub(super) fn read(
        &self,
        file: &FilePath,
        keep: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Found> {
        let parent = match self.parent(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            other => other?,
        };
        look_at(parent.as_fd(), file.name().as_ref(), keep)
    }
}

/// Returns the object with this name in a folder. Only regular files are opened: opening a device
/// can have effects.
pub(super) fn look_at(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    mut keep: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Found> {
    let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        other => other?,
    };
    if let Some(other) = other_kind(&stat) {
        return Ok(Found::Other(other));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(Errno::LOOP) => return Ok(Found::Other("a link")),
        other => other?,
    };
    let stat = fstat(&handle)?;
    if let Some(other) = other_kind(&stat) {
        return Ok(Found::Other(other));
    }
    let file = std::fs::File::from(handle);
    let (mut hash, mut size) = (Sha256::new(), 0);
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read_at(&mut piece, size)? {
            0 => break,
            n => {
                hash.update(&piece[..n]);
                keep(&piece[..n])?;
                size += n as u64;
            }
        }
    }
    let content =
        Content { sha256: Digest::of_bytes(&hash.finalize()), size, mode: stat.st_mode & 0o7777 };
    Ok(Found::File(content, identity(&stat)))
}

/// Returns device and inode, which identify a file.
pub(super) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn other_kind(stat: &Stat) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Symlink => Some("a link"),
        FileType::Directory => Some("a folder"),
        FileType::Fifo => Some("a FIFO"),
        FileType::Socket => Some("a socket"),
        _ => Some("a device"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> FilePath {
        text.parse().expect("a path")
    }

    #[test]
    fn s4_07_no_link_leads_out_with_and_without_help_of_the_kernel() {
        let dir = tempfile::tempdir().expect("a folder");
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(root.join("a/b")).expect("made");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("x"), "out").expect("written");
        fs::write(root.join("a/b/x"), "in").expect("written");
        symlink(&outside, root.join("out")).expect("linked");
        symlink("a", root.join("within")).expect("linked");
        symlink(outside.join("x"), root.join("a/link")).expect("linked");
        rustix::fs::mknodat(
            CWD,
            root.join("a/fifo"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a FIFO");
        let open = || ConfinedDir::open(&root).expect("opened");
        for enclosure in [open(), open().by_hand()] {
            let file = enclosure.look(&path("a/b/x")).expect("looked");
            assert!(matches!(file, Found::File(content, _) if content.size == 2));
            assert!(enclosure.look(&path("out/x")).is_err());
            assert!(enclosure.look(&path("within/b/x")).is_err(), "not even a link within");
            assert_eq!(enclosure.look(&path("a/link")).expect("looked"), Found::Other("a link"));
            assert_eq!(enclosure.look(&path("a/fifo")).expect("looked"), Found::Other("a FIFO"));
            assert_eq!(enclosure.look(&path("a/b")).expect("looked"), Found::Other("a folder"));
            assert_eq!(enclosure.look(&path("no/x")).expect("looked"), Found::Nothing);
            assert!(enclosure.make_folder("out/y", 0o777).is_err());
            assert!(enclosure.remove_folder("a").is_ok_and(|is_gone| !is_gone));
        }
        assert_eq!(fs::read_dir(&outside).expect("read").count(), 1);
    }
}
