//! Links in the place of files that git writes: it writes where they lead.

use std::path::{Path, PathBuf};

/// The commands that write nothing in a repository.
const READING: [&str; 13] = [
    "cat-file",
    "check-attr",
    "check-ignore",
    "diff",
    "diff-tree",
    "for-each-ref",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "show",
];

/// What git writes in its folder, by the beginnings of the names: `index.lock` is followed too.
const WRITTEN: [&str; 10] = [
    "HEAD",
    "ORIG_HEAD",
    "index",
    "sharedindex",
    "logs",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "worktrees",
];

/// The most entries that are looked at.
const MOST: usize = 500_000;

/// True if a git command may write in its repository.
pub(super) fn writes(command: &str) -> bool {
    !READING.contains(&command)
}

/// Finds a link in the git folder `own`, or in `common` that it shares with other work trees, through
/// which git would write elsewhere; or a folder with too much in it to be sure.
pub(super) fn find(own: &Path, common: &Path) -> Option<PathBuf> {
    let shared = (own != common).then_some(common);
    std::iter::once(own).chain(shared).find_map(find_in)
}

fn find_in(git: &Path) -> Option<PathBuf> {
    let mut left = MOST;
    // Each with the levels below it that git names by what it is told: an object is named by its
    // content, and each work tree looks after its own folder.
    let mut folders = vec![(git.to_owned(), Below::Written)];
    while let Some((folder, below)) = folders.pop() {
        let Ok(entries) = folder.read_dir() else { continue };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let Some(rest) = left.checked_sub(1) else { return Some(folder) };
            left = rest;
            if below == Below::Written && !WRITTEN.iter().any(|start| name.starts_with(start)) {
                continue;
            }
            let Ok(kind) = entry.file_type() else { return Some(path) };
            if kind.is_symlink() {
                return Some(path);
            }
            match (below, &*name) {
                _ if !kind.is_dir() => {}
                (Below::Written, "logs" | "refs") | (Below::All, _) => {
                    folders.push((path, Below::All));
                }
                (Below::Written, "objects" | "worktrees" | "reftable") => {
                    folders.push((path, Below::One));
                }
                (Below::Written | Below::One, _) => {}
            }
        }
    }
    None
}

/// What is looked at in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// What git writes of its own folder.
    Written,
    /// Its entries, and not what is below.
    One,
    /// All that is below.
    All,
}
