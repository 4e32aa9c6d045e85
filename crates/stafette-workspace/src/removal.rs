//! Removes folders by their handle, so that no link leads out of them, however deep they are.

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, fchmod, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

/// The deepest folder that is entered: each level holds a handle and a part of the stack. What is
/// deeper comes up first; programs can make folders without end.
const DEEPEST: usize = 256;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder whose contents may be removed, held open.
#[derive(Debug)]
pub(crate) struct Ground {
    handle: OwnedFd,
}

impl Ground {
    /// Opens a folder. The path to it may contain links, the folder itself may not be one.
    pub(crate) fn open(folder: &Path) -> io::Result<Ground> {
        Ok(Ground { handle: openat(CWD, folder, FOLDER, Mode::empty())? })
    }

    /// Opens the folder that contains `relative`, and returns its last part, without following a
    /// link.
    fn parent<'p>(&self, relative: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let refuse = || io::Error::other(format!("{} leads elsewhere", relative.display()));
        let mut handle = self.handle.try_clone()?;
        let mut parts = relative.components().peekable();
        loop {
            match (parts.next(), parts.peek()) {
                (Some(Component::Normal(part)), None) => return Ok((handle, part)),
                (Some(Component::Normal(part)), Some(_)) => {
                    handle = openat(&handle, part, FOLDER, Mode::empty())?;
                }
                _ => return Err(refuse()),
            }
        }
    }

    /// Moves `from` to `to`, both within the folder.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_folder, from_name) = self.parent(from)?;
        let (to_folder, to_name) = self.parent(to)?;
        Ok(renameat(from_folder, from_name, to_folder, to_name)?)
    }

    /// Removes `relative` with its content. Succeeds if nothing is there; links are removed, not
    /// followed.
    pub(crate) fn remove(&self, relative: &Path) -> io::Result<()> {
        let parent = self.parent(relative);
        let (folder, name) = match parent {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let name = CString::new(name.as_bytes()).map_err(io::Error::other)?;
        let surface = Surface { folder: &folder, name: &name, lifted: RefCell::default() };
        remove(&folder, &name, &surface, DEEPEST)?;
        loop {
            let Some(deep) = surface.lifted.borrow_mut().pop() else { return Ok(()) };
            remove(&folder, &deep, &surface, DEEPEST)?;
        }
    }
}

/// Removes a folder with its content, however deep, or a file. A link is removed, not followed;
/// nothing there is no error.
///
/// # Errors
/// When something in it cannot be removed. The rest stays.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other(format!("{} is not to be removed", path.display())));
    };
    match Ground::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        ground => ground?.remove(Path::new(name)),
    }
}

/// The folder of what is removed, to which too deep folders come up.
struct Surface<'f> {
    folder: &'f OwnedFd,
    name: &'f CStr,
    lifted: RefCell<Vec<CString>>,
}

impl Surface<'_> {
    /// Moves a folder up, under a name that follows from the one of what is removed: what finds that after
    /// a crash finds this.
    fn lift(&self, folder: &OwnedFd, name: &CStr) -> io::Result<()> {
        for number in 0_u32.. {
            let free = [self.name.to_bytes(), format!(".deep-{number}").as_bytes()].concat();
            let free = CString::new(free).map_err(io::Error::other)?;
            match renameat_with(folder, name, self.folder, &free, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                moved => {
                    moved?;
                    self.lifted.borrow_mut().push(free);
                    break;
                }
            }
        }
        Ok(())
    }
}

fn remove(folder: &OwnedFd, name: &CStr, surface: &Surface<'_>, depth: usize) -> io::Result<()> {
    let kind = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        other => FileType::from_raw_mode(other?.st_mode),
    };
    if kind != FileType::Directory {
        return Ok(unlinkat(folder, name, AtFlags::empty())?);
    }
    if depth == 0 {
        return surface.lift(folder, name);
    }
    let inner = openat(folder, name, FOLDER, Mode::empty())?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&inner)? {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            entries.push(entry.file_name().to_owned());
        }
    }
    let mut is_opened = false;
    for entry in &entries {
        match remove(&inner, entry, surface, depth - 1) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_opened => {
                // Some caches remove the write permission from their folders.
                fchmod(inner.as_fd(), Mode::RWXU)?;
                is_opened = true;
                remove(&inner, entry, surface, depth - 1)?;
            }
            other => other?,
        }
    }
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// Returns the bytes that a folder takes up, without following links.
pub(crate) fn measure(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut waiting = vec![folder.to_owned()];
    let mut total = 0;
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            // Files that vanish during the count are ignored.
            let Ok(metadata) = entry.metadata() else { continue };
            total += metadata.blocks() * 512;
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn b_08_removal_stays_where_it_is_whatever_links_say() {
        let world = tempfile::tempdir().expect("a folder");
        let outside = world.path().join("outside");
        let inside = world.path().join("ground/run/agent");
        fs::create_dir_all(&outside).expect("a folder");
        fs::create_dir_all(inside.join("locked")).expect("folders");
        fs::write(outside.join("precious"), "x").expect("written");
        fs::write(inside.join("locked/file"), "x").expect("written");
        symlink(&outside, inside.join("link")).expect("a link");
        symlink(&outside, world.path().join("ground/elsewhere")).expect("a link");
        let closed = fs::Permissions::from_mode(0o500);
        fs::set_permissions(inside.join("locked"), closed).expect("closed");

        let ground = Ground::open(&world.path().join("ground")).expect("there");
        ground.remove(Path::new("run/agent")).expect("removed");
        assert!(!inside.exists());
        ground.remove(Path::new("run/agent")).expect("gone is fine");
        for way in ["elsewhere/precious", "../outside", "run/../../outside", "/tmp", ""] {
            assert!(ground.remove(Path::new(way)).is_err(), "{way}");
        }
        ground.remove(Path::new("elsewhere")).expect("the link itself goes");
        assert!(outside.join("precious").exists());
        assert!(Ground::open(&world.path().join("nowhere")).is_err());
    }

    #[test]
    fn b_21_folders_without_end_are_removed_on_a_small_stack() {
        let world = tempfile::tempdir().expect("a folder");
        let top = world.path().join("deep");
        fs::create_dir(&top).expect("a folder");
        let ground = Ground::open(world.path()).expect("there");
        // Chains, each put into the end of the next one: no path is that long.
        let chain: String = (0..200).map(|_| "d/").collect();
        for _ in 0..30 {
            let next = world.path().join("next");
            fs::create_dir_all(next.join(&chain)).expect("folders");
            fs::write(next.join("file"), "x").expect("written");
            fs::rename(&top, next.join(&chain).join("d")).expect("moved");
            fs::rename(&next, &top).expect("moved");
        }
        let remove = move || {
            ground.remove(Path::new("deep")).expect("removed");
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(remove);
        thread.expect("a thread").join().expect("it has not ended the process");
        assert_eq!(fs::read_dir(world.path()).expect("a folder").count(), 0);
        fs::create_dir_all(top.join("a/b")).expect("folders");
        remove_folder(&top).expect("removed");
        remove_folder(&top).expect("gone is fine");
        remove_folder(&top.join("nothing")).expect("gone is fine");
        assert!(remove_folder(Path::new("/")).is_err());
    }
}
