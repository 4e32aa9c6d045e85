//! Turns changes into steps: the effect on each file when they are applied, or undone, in order.

use std::collections::BTreeMap;

use stafette_core::change::{Change, ChangeRules, Content, Edit, FilePath, collisions, protection};

use super::confined_dir::{ConfinedDir, Found};
use super::journal::Step;
use super::{ChangeError, reach};
use crate::worktree::Worktrees;

/// The current and the future state of files, one change after the other.
#[derive(Debug, Default)]
pub(super) struct Plan {
    files: BTreeMap<FilePath, Course>,
}

/// The current and the future state of one file.
#[derive(Debug)]
struct Course {
    found: Option<Content>,
    now: Option<Content>,
    /// True if it gets the default permissions of new files.
    fresh: bool,
}

impl Plan {
    /// Returns the state of a path after all steps planned so far.
    fn at(&mut self, project: &ConfinedDir, file: &FilePath) -> Result<&mut Course, ChangeError> {
        if !self.files.contains_key(file) {
            let found = match project.look(file).map_err(|source| reach(file, source))? {
                Found::Nothing => None,
                Found::File(content, _) => Some(content),
                Found::Other(kind) => {
                    return Err(ChangeError::NotAFile { file: file.clone(), kind });
                }
            };
            let now = found.clone();
            self.files.insert(file.clone(), Course { found, now, fresh: false });
        }
        self.files.get_mut(file).ok_or_else(|| ChangeError::changed(file))
    }

    /// Plans a change. Returns it with the actual state of its files before and after. Plans
    /// nothing if the change does not apply.
    pub(super) fn apply(
        &mut self,
        project: &ConfinedDir,
        change: &Change,
        rules: &ChangeRules,
    ) -> Result<Change, ChangeError> {
        check(&change.edits, rules)?;
        for edit in &change.edits {
            for (file, before, _) in edit.moves() {
                let course = self.at(project, &file)?;
                let fits = match (&course.now, &before) {
                    (None, None) => true,
                    (Some(now), Some(before)) => now.sha256 == before.sha256,
                    _ => false,
                };
                if !fits {
                    // The outcome of a run is on a branch as well, which git can merge.
                    let run = change.author.run.filter(|_| change.is_outcome());
                    let branch = run.map(Worktrees::result_branch);
                    return Err(ChangeError::Outdated { id: change.id, file, branch });
                }
            }
        }
        let mut change = change.clone();
        for edit in &mut change.edits {
            let source = edit.from.as_ref().unwrap_or(&edit.file).clone();
            let now = self.at(project, &source)?.now.clone();
            edit.before.clone_from(&now);
            if let (Some(after), Some(now)) = (&mut edit.after, &now) {
                after.mode = with_mode(now.mode, after.mode & 0o100 != 0);
            }
            for (file, _, after) in edit.moves() {
                let course = self.at(project, &file)?;
                course.fresh = now.is_none();
                course.now = after;
            }
        }
        Ok(change)
    }

    /// Plans the undo of a change. Files that are already back are left as they are.
    pub(super) fn undo(
        &mut self,
        project: &ConfinedDir,
        change: &Change,
    ) -> Result<(), ChangeError> {
        for edit in &change.edits {
            for (file, before, after) in edit.moves() {
                let course = self.at(project, &file)?;
                let is = |now: &Option<Content>, then: &Option<Content>| match (now, then) {
                    (None, None) => true,
                    (Some(now), Some(then)) => now.is_like(then),
                    _ => false,
                };
                if is(&course.now, &before) {
                    continue;
                }
                if !is(&course.now, &after) {
                    return Err(ChangeError::Edited { id: change.id, file });
                }
                course.now = before;
                course.fresh = false;
            }
        }
        Ok(())
    }

    /// Returns the planned steps.
    pub(super) fn steps(self) -> Vec<Step> {
        let differs = |(_, course): &(FilePath, Course)| match (&course.found, &course.now) {
            (None, None) => false,
            (Some(found), Some(now)) => found != now,
            _ => true,
        };
        let step = |(file, course): (FilePath, Course)| Step {
            file,
            before: course.found,
            after: course.now,
            fresh: course.fresh,
            ready: None,
        };
        self.files.into_iter().filter(differs).map(step).collect()
    }
}

/// Returns permissions with the execute bit for everyone who may read, or for no one.
fn with_mode(mode: u32, is_executable: bool) -> u32 {
    let plain = mode & 0o666;
    match is_executable {
        true if mode & 0o100 != 0 => mode & 0o777,
        true => plain | ((plain & 0o444) >> 2),
        false => plain,
    }
}

/// Checks a set on its own, regardless of the files.
pub(super) fn check(edits: &[Edit], rules: &ChangeRules) -> Result<(), ChangeError> {
    let paths = || edits.iter().flat_map(|edit| edit.from.iter().chain([&edit.file]));
    for file in paths() {
        if let Some(pattern) = protection(file, rules) {
            let pattern = pattern.to_owned();
            return Err(ChangeError::Protected { file: file.clone(), pattern });
        }
    }
    let pairs: Vec<_> =
        edits.iter().filter_map(|edit| Some((edit.from.as_ref()?, &edit.file))).collect();
    match collisions(paths(), &pairs) {
        Some((first, second)) => Err(ChangeError::Collision { first, second }),
        None => Ok(()),
    }
}
