//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fsync, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);

/// Writes a file of the project by its path, folders included. No link is followed below the project.
pub(super) fn write(project: &Path, path: &str, text: &str) -> io::Result<()> {
    let mut folder: OwnedFd =
        openat(CWD, project, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut made = false;
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        if part == ".." {
            return Err(Errno::XDEV.into());
        }
        match mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                fsync(&folder)?;
                made = true;
            }
            Err(Errno::EXIST) => made = false,
            Err(error) => return Err(error.into()),
        }
        folder = openat(&folder, part, FOLDER, Mode::empty())?;
    }
    if made {
        // The picture changes all the time: it is not part of anybody's work.
        put(&folder, ".gitignore", "*\n")?;
    }
    put(&folder, name, text)
}

/// Writes a file of ours.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let folder = openat(CWD, folder, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    put(&folder, name, text)
}

fn put(folder: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let draft = format!(".{name}.new");
    // What a crash has left of the last one.
    let _ = unlinkat(folder, &draft, rustix::fs::AtFlags::empty());
    let file = openat(folder, &draft, NEW, Mode::from_raw_mode(0o644))?;
    let mut file = File::from(file);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    crate::crash::point();
    renameat(folder, &draft, folder, name)?;
    Ok(fsync(folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_01_a_picture_is_whole_and_leaves_the_project_by_no_link() {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        fs::create_dir(&project).expect("a project");
        for text in ["one", "two"] {
            write(&project, "data/state/context.json", text).expect("written");
            let read = fs::read_to_string(project.join("data/state/context.json"));
            assert_eq!(read.expect("read"), text);
        }
        assert_eq!(fs::read_dir(project.join("data/state")).expect("a folder").count(), 2);
        fs::create_dir(home.path().join("outside")).expect("a folder");
        std::os::unix::fs::symlink("../outside", project.join("link")).expect("a link");
        assert!(write(&project, "link/context.json", "x").is_err());
        assert!(write(&project, "../outside/context.json", "x").is_err());
        assert_eq!(fs::read_dir(home.path().join("outside")).expect("a folder").count(), 0);
    }
}
