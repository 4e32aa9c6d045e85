//! Writes the context file of a team atomically: it is there whole or not at all.
//!
//! Every step uses a [`Disk`], so that tests can replace the system's disk by one that is cut off
//! between any two of them.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, fsync, mkdirat, openat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use stafette_core::change::Change;
use stafette_core::{Run, Time};

use super::picture_of;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);

/// The disk that the context file is written to. Nothing is durable before it is synced.
pub trait Disk {
    /// An open folder.
    type Folder;
    /// A new file, open for writing.
    type File;

    /// Opens the project's own folder.
    fn project(&self) -> io::Result<Self::Folder>;
    /// Opens a folder in another one; a link is refused.
    fn open(&self, folder: &Self::Folder, name: &str) -> io::Result<Self::Folder>;
    /// Creates a folder in another one.
    fn make(&self, folder: &Self::Folder, name: &str) -> io::Result<()>;
    /// Creates a file where there is none.
    fn create(&self, folder: &Self::Folder, name: &str) -> io::Result<Self::File>;
    /// Writes to a new file.
    fn write(&self, file: &mut Self::File, text: &str) -> io::Result<()>;
    /// Makes the written bytes durable.
    fn sync(&self, file: &Self::File) -> io::Result<()>;
    /// Renames a file or folder; a file replaces another one, a folder does not.
    fn rename(&self, folder: &Self::Folder, from: &str, to: &str, over: bool) -> io::Result<()>;
    /// Removes a file from a folder.
    fn remove(&self, folder: &Self::Folder, name: &str) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_names(&self, folder: &Self::Folder) -> io::Result<()>;
}

/// The system's own disk, beginning at a project's folder.
#[derive(Debug)]
pub struct System(PathBuf);

impl System {
    /// The disk that a project is on.
    #[must_use]
    pub fn of(project: &Path) -> Self {
        System(project.to_owned())
    }
}

impl Disk for System {
    type Folder = OwnedFd;
    type File = File;

    fn project(&self) -> io::Result<OwnedFd> {
        Ok(openat(CWD, &self.0, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?)
    }

    fn open(&self, folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
        Ok(openat(folder, name, FOLDER, Mode::empty())?)
    }

    fn make(&self, folder: &OwnedFd, name: &str) -> io::Result<()> {
        Ok(mkdirat(folder, name, Mode::from_raw_mode(0o755))?)
    }

    fn create(&self, folder: &OwnedFd, name: &str) -> io::Result<File> {
        Ok(File::from(openat(folder, name, NEW, Mode::from_raw_mode(0o644))?))
    }

    fn write(&self, file: &mut File, text: &str) -> io::Result<()> {
        file.write_all(text.as_bytes())
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, folder: &OwnedFd, from: &str, to: &str, over: bool) -> io::Result<()> {
        crate::crash::point();
        let flags = if over { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        Ok(renameat_with(folder, from, folder, to, flags)?)
    }

    fn remove(&self, folder: &OwnedFd, name: &str) -> io::Result<()> {
        Ok(unlinkat(folder, name, AtFlags::empty())?)
    }

    fn sync_names(&self, folder: &OwnedFd) -> io::Result<()> {
        Ok(fsync(folder)?)
    }
}

/// Writes the state of a run's team to the file that its workflow names.
///
/// # Errors
/// When it cannot be written; then the previous one is still there.
pub fn draw(disk: &impl Disk, run: &Run, changes: &[Change], at: Time) -> io::Result<()> {
    let path = run.workflow.generations.clone().unwrap_or_default().context;
    let picture = picture_of(run, changes, at);
    let text = serde_json::to_string_pretty(&picture).expect("our own types are JSON") + "\n";
    write(disk, &path, &text)
}

/// Writes a file of the project by its path, folders included. No link is followed below the
/// project.
fn write(disk: &impl Disk, path: &str, text: &str) -> io::Result<()> {
    let mut folder = disk.project()?;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut parts = folders.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        if part == ".." {
            return Err(Errno::XDEV.into());
        }
        folder = match disk.open(&folder, part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(disk, &folder, part, parts.peek().is_none())?;
                disk.open(&folder, part)?
            }
            other => {
                let inner = other?;
                // The process that made it may have died before the name was synced.
                disk.sync_names(&folder)?;
                inner
            }
        };
    }
    put(disk, &folder, name, text)
}

/// Creates a folder. The last one is for the context file alone, which changes all the time and is
/// not part of the work: a `.gitignore` is added before the folder becomes visible.
fn make<D: Disk>(disk: &D, outer: &D::Folder, name: &str, last: bool) -> io::Result<()> {
    if !last {
        disk.make(outer, name)?;
        return disk.sync_names(outer);
    }
    let draft = format!(".{name}.new");
    match disk.make(outer, &draft) {
        // Left by a crash in the last attempt.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    put(disk, &disk.open(outer, &draft)?, ".gitignore", "*\n")?;
    disk.rename(outer, &draft, name, false)?;
    disk.sync_names(outer)
}

fn put<D: Disk>(disk: &D, folder: &D::Folder, name: &str, text: &str) -> io::Result<()> {
    let draft = format!(".{name}.new");
    // Left by a crash in the last attempt.
    match disk.remove(folder, &draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = disk.create(folder, &draft)?;
    disk.write(&mut file, text)?;
    disk.sync(&file)?;
    disk.rename(folder, &draft, name, true)?;
    disk.sync_names(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn s4_01_a_picture_is_whole_and_leaves_the_project_by_no_link() {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        fs::create_dir(&project).expect("a project");
        let disk = System::of(&project);
        for text in ["one", "two"] {
            write(&disk, "data/state/context.json", text).expect("written");
            let read = fs::read_to_string(project.join("data/state/context.json"));
            assert_eq!(read.expect("read"), text);
        }
        let ignored = fs::read_to_string(project.join("data/state/.gitignore"));
        assert_eq!(ignored.expect("read"), "*\n");
        assert_eq!(fs::read_dir(project.join("data/state")).expect("a folder").count(), 2);
        assert_eq!(fs::read_dir(project.join("data")).expect("a folder").count(), 1);
        fs::create_dir(home.path().join("outside")).expect("a folder");
        std::os::unix::fs::symlink("../outside", project.join("link")).expect("a link");
        assert!(write(&disk, "link/context.json", "x").is_err());
        assert!(write(&disk, "../outside/context.json", "x").is_err());
        assert_eq!(fs::read_dir(home.path().join("outside")).expect("a folder").count(), 0);
    }
}
