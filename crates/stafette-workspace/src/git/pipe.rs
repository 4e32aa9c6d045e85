//! Pipes and devices in the place of files that git reads: it opens them, and waits.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The files of a work tree that git reads by their names.
const READ: [&str; 4] = [".gitattributes", ".gitignore", ".gitmodules", ".mailmap"];

/// The most entries of folders that are looked at.
const MOST: usize = 500_000;

/// Where a command reads files of a repository.
#[derive(Debug)]
pub(super) struct Places {
    /// Folders and files of git, of which all may be read.
    pub(super) git: Vec<PathBuf>,
    /// The work tree, of which some files are read by their names.
    pub(super) tree: PathBuf,
}

/// Finds a pipe or a device that git would wait for.
pub(super) fn find(places: &Places) -> Option<PathBuf> {
    let mut left = MOST;
    let mut git = places.git.iter();
    git.find_map(|git| below(git, &|_| true, &mut left))
        .or_else(|| below(&places.tree, &|name| READ.contains(&name), &mut left))
}

/// Finds the first such below `top`, of those with a name that `counts`.
fn below(top: &Path, counts: &dyn Fn(&str) -> bool, left: &mut usize) -> Option<PathBuf> {
    if !top.is_dir() {
        return is_endless(top).then(|| top.to_owned());
    }
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir() else { continue };
        for entry in entries.flatten() {
            *left = left.checked_sub(1)?;
            let (path, kind) = (entry.path(), entry.file_type().ok()?);
            let is_named = entry.file_name().to_str().is_some_and(counts);
            if kind.is_dir() {
                folders.push(path);
            } else if !kind.is_file() && is_named && is_endless(&path) {
                return Some(path);
            }
        }
    }
    None
}

/// True if the end of it may never come. A socket cannot be opened, and the null device is empty.
fn is_endless(path: &Path) -> bool {
    let kind = path.metadata().map(|about| about.file_type());
    let is_null = || path.canonicalize().is_ok_and(|path| path == Path::new("/dev/null"));
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device() && !is_null())
}
