//! Turns a path that a person typed into a name within the project.

use std::path::{Path, PathBuf};

use stafette_core::lock::Pattern;

use super::Context;
use crate::exit::Failure;
use crate::project::repository;
use crate::state;

/// The folder of the agents' worktrees, in the project's state.
const WORKTREES: &str = "worktrees/worktrees";

/// The folders that names are relative to.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) root: PathBuf,
    /// The present folder within the project; empty in its root, or outside of it.
    here: PathBuf,
}

impl Places {
    pub(super) fn of(context: &Context) -> Result<Places, Failure> {
        let root = context.project()?.root;
        let here = std::env::current_dir().and_then(|folder| folder.canonicalize());
        let here = here.ok().and_then(|folder| within(&root, &folder));
        Ok(Places { root, here: here.unwrap_or_default() })
    }

    /// The paths in the form that the daemon uses.
    pub(super) fn patterns(&self, typed: &[String]) -> Result<Vec<String>, Failure> {
        typed.iter().map(|text| self.pattern(text)).collect()
    }

    fn pattern(&self, text: &str) -> Result<String, Failure> {
        let outside = || {
            Failure::usage(format!("{text} is outside of the project"))
                .why(format!("the project is {}", self.root.display()))
                .fix("name a path inside of the project, or another name such as db:schema")
        };
        if text.is_empty() {
            return Err(Failure::usage("Nothing is named").fix("`.` is the whole project"));
        }
        let relative = match Path::new(text).is_absolute() {
            true => within(&self.root, Path::new(text)).ok_or_else(outside)?,
            false => self.here.join(text),
        };
        let slash = if text.ends_with('/') { "/" } else { "" };
        let relative = format!("{}{slash}", relative.display());
        let relative = if relative.is_empty() { "." } else { &relative };
        let pattern: Pattern = relative.parse().map_err(|error| {
            Failure::usage(format!("Cannot lock `{text}`"))
                .because(&error)
                .fix("name files, folders or globs: `*` within a name, `**` over folders")
        })?;
        if pattern.is_glob() {
            return Ok(pattern.into());
        }
        // One file has one name, whichever link leads to it.
        let path = self.root.join(pattern.as_str());
        let real = path.parent().and_then(|folder| folder.canonicalize().ok());
        let Some((real, name)) = real.zip(path.file_name()) else { return Ok(pattern.into()) };
        let real = within(&self.root, &real).ok_or_else(outside)?;
        Ok(real.join(name).display().to_string())
    }
}

/// The path within the project. A file in an agent's worktree has the name that it will have in the
/// project.
pub(super) fn within(root: &Path, path: &Path) -> Option<PathBuf> {
    if let Ok(inner) = path.strip_prefix(root) {
        return Some(inner.to_owned());
    }
    let worktrees = state::place(root).join(WORKTREES).canonicalize().ok()?;
    let work = path.strip_prefix(worktrees).ok()?;
    let mut parts = work.components();
    // The run and the agent; then the repository, which may be larger than the project.
    parts.next()?;
    parts.next()?;
    let prefix = repository(root).and_then(|top| root.strip_prefix(top).ok());
    parts.as_path().strip_prefix(prefix.unwrap_or(Path::new(""))).ok().map(Path::to_owned)
}
