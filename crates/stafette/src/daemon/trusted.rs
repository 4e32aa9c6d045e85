//! The workflows that the user has trusted, also those of before: a run keeps the workflow that it
//! began with, and is held against this before anything of it is started again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stafette_core::Workflow;
use stafette_server::{Problem, ReadWorkflow};

use super::problem;
use crate::project::{Project, digest};
use crate::trust::{self, Kept};

/// The number of workflows that are remembered.
const LIMIT: usize = 1000;

/// Why a run stays stopped.
const NOT_TRUSTED: &str = "its workflow, or a file that it names, is not what was trusted here: put \
    it back, or look at it with `stafette trust`, then run `stafette up`; or cancel the run";

/// Why nothing continues in a folder where nothing is trusted, such as one that was moved.
const NOBODY_TRUSTS: &str = "nobody has trusted a workflow in this folder: look at what it can do with \
    `stafette trust`, then run `stafette up`; or cancel the run";

/// The workflows that may be run in one project.
#[derive(Debug)]
pub(super) struct TrustedWorkflows {
    project: Project,
    /// The hash of a workflow that is trusted because its caller wrote it.
    by_caller: Option<String>,
    file: PathBuf,
    /// All that were trusted, the newest last.
    known: Mutex<Vec<Kept>>,
}

impl TrustedWorkflows {
    pub(super) fn open(project: &Project, state: &Path, by_caller: Option<String>) -> Arc<Self> {
        let file = state.join("trusted.json");
        let text = fs::read(&file).unwrap_or_default();
        // A damaged file trusts nothing, which is safe; neither does one of an older release.
        let mut known: Vec<Kept> = serde_json::from_slice(&text).unwrap_or_default();
        // A state can be moved with its file, or restored in another folder.
        known.retain(|kept| kept.is_of(project));
        let known = Mutex::new(known);
        Arc::new(TrustedWorkflows { project: project.clone(), by_caller, file, known })
    }

    /// Reads the project's workflow, and remembers it if it is trusted.
    pub(super) fn reader(self: &Arc<Self>) -> Arc<ReadWorkflow> {
        let trusted = Arc::clone(self);
        Arc::new(move || trusted.read())
    }

    fn read(&self) -> Result<Workflow, Problem> {
        let loaded = self.project.load().map_err(|failure| problem(&failure))?;
        let by_caller = self.by_caller.as_ref().is_some_and(|hash| *hash == loaded.hash);
        let found = match by_caller {
            true => trust::inspect(&self.project, &loaded.workflow, &loaded.scripts),
            false => trust::check(&self.project, &loaded),
        };
        let found = found.map_err(|failure| problem(&failure))?;
        self.remember(Kept::new(&self.project, &loaded.workflow, &loaded.scripts, found));
        Ok(loaded.workflow)
    }

    /// Checks that a workflow is as it was when it was trusted, with the files that it names.
    pub(super) fn holds(&self, workflow: &Workflow) -> Result<(), String> {
        if self.by_caller.is_none() && !trust::has_grant(&self.project) {
            return Err(NOBODY_TRUSTS.to_owned());
        }
        let now = trust::kept(&self.project, workflow).map_err(|failure| failure.what)?;
        let is_known = || self.lock().contains(&now);
        // It may have been trusted a moment ago.
        if is_known() || (self.read().is_ok() && is_known()) {
            return Ok(());
        }
        Err(NOT_TRUSTED.to_owned())
    }

    /// Checks that a command starts the files that were trusted with this workflow, in the folder
    /// that it starts in.
    pub(super) fn holds_command(
        &self,
        workflow: &Workflow,
        command: &[String],
        folder: &Path,
    ) -> Result<(), String> {
        let files = trust::files(&self.project, workflow, command, folder);
        let files = files.map_err(|failure| failure.what)?;
        let scripts = self.project.scripts(workflow).map_err(|failure| failure.what)?;
        let text = digest(workflow, &scripts);
        let find = || {
            let known = self.lock();
            let mut same = known.iter().rev().filter(|kept| kept.workflow == text).peekable();
            let first = same.peek().and_then(|kept| kept.changed(&files));
            match same.any(|kept| kept.changed(&files).is_none()) {
                true => Ok(()),
                false => Err(first),
            }
        };
        // It may have been trusted a moment ago.
        let found = find().or_else(|first| match self.read() {
            Ok(_) => find(),
            Err(_) => Err(first),
        });
        found.map_err(|file| match file {
            Some(file) => format!(
                "its command runs {file}, which is not what was trusted: look at it in {}, then put \
                 it back, or apply it and run `stafette trust`",
                folder.display()
            ),
            None => NOT_TRUSTED.to_owned(),
        })
    }

    fn remember(&self, kept: Kept) {
        let mut known = self.lock();
        if known.contains(&kept) {
            return;
        }
        known.push(kept);
        let surplus = known.len().saturating_sub(LIMIT);
        known.drain(..surplus);
        let text = serde_json::to_vec(&*known).expect("our own types are JSON");
        if let Err(error) = stafette_disk::replace(&self.file, &text) {
            // Its runs continue after a restart as long as the workflow stays as it is.
            tracing::warn!(%error, "what is trusted cannot be noted");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Kept>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
