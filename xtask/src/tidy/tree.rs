//! The files of the project, read once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Folders with generated files, and the file `.git` of a worktree.
const MADE: [&str; 5] = ["target", "node_modules", "dist", ".git", ".stafette"];

/// A file could not be read.
#[derive(Debug, Error)]
#[error("{} cannot be read: {source}", path.display())]
pub(super) struct TreeError {
    path: PathBuf,
    source: io::Error,
}

/// All files that people write.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

/// One file of the project.
#[derive(Debug)]
pub(super) struct File {
    /// The path from the root, with `/` on every system.
    pub(super) path: String,
    /// The content; empty if it is not text.
    pub(super) text: String,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Tree, TreeError> {
        let mut tree = Tree::default();
        tree.add(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn add(&mut self, folder: &Path, prefix: &str) -> Result<(), TreeError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| TreeError { path, source }
        };
        for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
            let entry = entry.map_err(unreadable(folder))?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let kind = entry.file_type().map_err(unreadable(&path))?;
            if MADE.contains(&&*name) {
                continue;
            }
            if kind.is_dir() {
                self.add(&path, &format!("{prefix}{name}/"))?;
            } else if kind.is_file() {
                let bytes = fs::read(&path).map_err(unreadable(&path))?;
                let text = String::from_utf8(bytes).unwrap_or_default();
                self.files.push(File { path: format!("{prefix}{name}"), text });
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Makes a small tree for the tests of a rule.
    #[cfg(test)]
    pub(super) fn of<const N: usize>(files: [(&str, &str); N]) -> Tree {
        let file = |(path, text): (&str, &str)| File { path: path.into(), text: text.into() };
        Tree { files: files.map(file).into() }
    }
}

impl File {
    /// True if the file was written by us, and neither recorded from elsewhere nor built.
    pub(super) fn is_ours(&self) -> bool {
        let folders = ["fixtures/", "crates/stafette-server/page/"];
        !folders.iter().any(|folder| self.path.starts_with(folder))
            && self.path != "LICENSE"
            && self.path != "Cargo.lock"
    }

    /// Returns the name without folders and without its extension.
    pub(super) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.split_once('.').map_or(name, |(stem, _)| stem)
    }

    pub(super) fn has_ending(&self, endings: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
    }
}
