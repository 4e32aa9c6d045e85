//! Changes of the user's own checkout, as sets that are applied whole or not at all.
//!
//! Proposed sets wait in `changes` of the project's state folder: a record for each set, and every
//! content by its digest. To apply a set, its new files are staged, the journal records the plan,
//! the files are swapped in, the project's own command validates them, and then the journal records
//! that they stay; or everything is swapped back. The journal is authoritative: the process that
//! opens the folder after a crash finishes or rolls back what it records.
//!
//! Invariants:
//! - The project is as before a set or as after it, once [`Changes::recover`] has run.
//! - Nothing outside of the project is read or written, even if a file is replaced by a link
//!   meanwhile.
//! - A file that is not as the set expects is not overwritten; what another program has written
//!   meanwhile is restored, or kept.

mod change_store;
mod commit;
mod confined_dir;
pub mod crash;
mod diff;
mod journal;
mod plan;
mod proposal;
mod queue;
mod record;
mod undo;
pub(crate) mod validation;

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stafette_core::change::{
    BadPath, Change, ChangeId, ChangeRules, ChangeStatus, FilePath, Gate, gates, runs,
};
use stafette_core::redact::Redactor;
use stafette_core::team::change::told;
use stafette_core::team::order::WorkKey;
use stafette_core::{RunId, Time};
use thiserror::Error;

use crate::git::GitError;
use change_store::ChangeStore;
use commit::Commits;
use confined_dir::{ConfinedDir, Found};
use journal::{Journal, Landing, Step};
use validation::{Check, ValidationOutcome, validate};

pub use diff::{FileDiff, Hunk, Line};
pub use proposal::{Draft, LeftOut, SetFile};
pub use queue::{Left, Report, RolledBack};
pub use validation::mark;

/// The reason why a change could not be proposed, applied or undone. The project has not changed.
#[derive(Debug, Error)]
pub enum ChangeError {
    #[error("there is no change {id}")]
    NoChange { id: ChangeId },
    /// A path leads out of the project.
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error("{file}: {flaw}")]
    Edit { file: String, flaw: &'static str },
    /// The set is empty, or larger than allowed.
    #[error("{flaw}")]
    Size { flaw: &'static str },
    #[error("{}", collide(first, second))]
    Collision { first: FilePath, second: FilePath },
    /// The workflow protects the file from every change.
    #[error("{file} is protected: `{pattern}` in `[changes]` covers it")]
    Protected { file: FilePath, pattern: String },
    #[error("{file} is {kind}, which no change may touch")]
    NotAFile { file: FilePath, kind: &'static str },
    #[error("{file} is not what the change was made against")]
    Changed { file: FilePath },
    /// Applying it would write over what others have changed since.
    #[error("{file} is not what {id} was made against")]
    Outdated { id: ChangeId, file: FilePath, branch: Option<String> },
    /// Undoing it would write over what others have changed since.
    #[error("{file} was edited after {id} was applied, and undoing would lose that")]
    Edited { id: ChangeId, file: FilePath },
    #[error("{id} needs a person's yes: {}", told(gates))]
    NeedsPerson { id: ChangeId, gates: Vec<Gate> },
    #[error("{id} is {}, so it cannot be {wanted}", status.as_str())]
    Status { id: ChangeId, status: ChangeStatus, wanted: &'static str },
    #[error("{id} is a change of {by}, who alone can revise it")]
    NotYours { id: ChangeId, by: String },
    #[error("{id} has later changes on top of it: {}", on_top(later))]
    Later { id: ChangeId, later: Vec<(ChangeId, FilePath)> },
    #[error("another change is being applied")]
    Busy,
    #[error("{id} was revised: this is about revision {seen}, and it is at {revision}")]
    Revised { id: ChangeId, seen: u32, revision: u32 },
    #[error("{id} is being revised in run {}: apply what comes of it, not what it was", run.short())]
    BeingRevised { id: ChangeId, run: RunId },
    #[error("{} cannot be understood: {source}", path.display())]
    Unreadable { path: PathBuf, source: serde_json::Error },
    #[error("cannot {what} {}: {source}", path.display())]
    Files { what: &'static str, path: PathBuf, source: io::Error },
    /// A started change cannot be rolled back at the moment. The journal keeps it, so that it is
    /// retried.
    #[error("{why}; and it cannot be taken back yet: {source}")]
    Stuck { why: String, source: Box<ChangeError> },
    /// A git command failed.
    #[error(transparent)]
    Git(GitError),
}

impl ChangeError {
    /// True if trying again may help: the cause is not the change itself.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            ChangeError::Busy
            | ChangeError::Unreadable { .. }
            | ChangeError::Stuck { .. }
            | ChangeError::Git(_) => true,
            // A path through a file, a name that is too long, and our own limit on a file's size.
            ChangeError::Files { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::NotADirectory
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::InvalidFilename
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::Other
            ),
            ChangeError::NoChange { .. }
            | ChangeError::Path(_)
            | ChangeError::Edit { .. }
            | ChangeError::Size { .. }
            | ChangeError::Collision { .. }
            | ChangeError::Protected { .. }
            | ChangeError::NotAFile { .. }
            | ChangeError::Changed { .. }
            | ChangeError::Outdated { .. }
            | ChangeError::Edited { .. }
            | ChangeError::NeedsPerson { .. }
            | ChangeError::Status { .. }
            | ChangeError::NotYours { .. }
            | ChangeError::Later { .. }
            | ChangeError::Revised { .. }
            | ChangeError::BeingRevised { .. } => false,
        }
    }

    fn files(what: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        ChangeError::Files { what, path: path.as_ref().to_owned(), source }
    }

    fn changed(file: &FilePath) -> Self {
        ChangeError::Changed { file: file.clone() }
    }
}

fn reach(file: &FilePath, source: io::Error) -> ChangeError {
    ChangeError::files("reach", file.as_str(), source)
}

fn collide(first: &FilePath, second: &FilePath) -> String {
    match first == second {
        true => format!("{first} has two edits, and a change may hold one for each file"),
        false => format!(
            "{first} and {second} cannot both be there on every file system: they differ only in \
             how they are written, or one is the folder of the other"
        ),
    }
}

fn on_top(later: &[(ChangeId, FilePath)]) -> String {
    let said = later.iter().map(|(id, file)| format!("{id} ({file})"));
    said.collect::<Vec<_>>().join(", ")
}

/// The work that was left after a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovered {
    /// There was nothing left to do.
    Nothing,
    /// Files were rolled back to their earlier state.
    TakenBack,
    /// A decided change was recorded.
    Finished,
}

/// All changes of a project.
#[derive(Debug)]
pub struct Changes {
    folder: PathBuf,
    project: ConfinedDir,
    store: ChangeStore,
    /// The orders that are carried out, noted in the records of the sets that they change.
    orders: Vec<WorkKey>,
    pub(crate) redactor: Redactor,
}

/// The outcome of an attempt.
#[derive(Debug)]
enum End {
    Landed(Vec<Change>),
    TakenBack { why: String, output: String, notes: Vec<String> },
}

/// The conditions of an attempt besides its files.
#[derive(Debug)]
struct Terms<'r> {
    message: String,
    check: Check<'r>,
    commit: bool,
    /// Folders to remove with the files in them, if it is an undo.
    emptied: Option<Vec<String>>,
}

impl Changes {
    /// Opens the changes of a project that keeps its state in `home`, on the same file system.
    pub fn open(project: &Path, home: &Path) -> Result<Changes, ChangeError> {
        let failed = |source| ChangeError::files("open", project, source);
        let inside = ConfinedDir::open(project).map_err(failed)?;
        let (folder, store) = (project.to_owned(), ChangeStore::open(home)?);
        let (orders, redactor) = (Vec::new(), Redactor::new());
        Ok(Changes { folder, project: inside, store, orders, redactor })
    }

    /// Keeps the output of the project's commands without the secrets that `redactor` knows.
    #[must_use]
    pub fn redacted(self, redactor: Redactor) -> Changes {
        Changes { redactor, ..self }
    }

    /// Carries out these orders: whoever asks again after a crash finds them in the records.
    #[must_use]
    pub fn ordered(self, orders: Vec<WorkKey>) -> Changes {
        Changes { orders, ..self }
    }

    /// Notes the order that changes a set: its own, or the one of a set that it goes with.
    fn note_order(&self, change: &mut Change) {
        let own = self.orders.iter().find(|order| order.change == change.id);
        change.tried = own.or(self.orders.first()).copied();
    }

    /// Returns all changes, oldest first.
    pub fn list(&self) -> Result<Vec<Change>, ChangeError> {
        self.store.list()
    }

    /// Returns the changes whose records can be read, oldest first, and what is wrong with the
    /// others.
    pub fn readable(&self) -> Result<(Vec<Change>, Vec<ChangeError>), ChangeError> {
        self.store.readable()
    }

    /// Returns one change by its id.
    pub fn get(&self, id: ChangeId) -> Result<Change, ChangeError> {
        self.store.get(id)
    }

    /// Finishes or rolls back what a crash has interrupted. Every other operation does so first.
    pub async fn recover(&self) -> Result<Recovered, ChangeError> {
        let _hold = self.store.hold().await?;
        self.recover_held().await
    }

    async fn recover_held(&self) -> Result<Recovered, ChangeError> {
        match self.store.journal()? {
            None => self.store.clear_stage().map(|()| Recovered::Nothing),
            Some(Journal { landed: Some(landing), .. }) => {
                self.finish(landing).await?;
                Ok(Recovered::Finished)
            }
            Some(journal) => {
                journal.restore(&self.store, &self.project)?;
                self.store.close_journal()?;
                Ok(Recovered::TakenBack)
            }
        }
    }

    /// Checks that a change may be applied now.
    fn ready(change: &Change, rules: &ChangeRules) -> Result<(), ChangeError> {
        let id = change.id;
        match change.status {
            ChangeStatus::Approved => return Ok(()),
            // Somebody who has undone it may want it after all.
            ChangeStatus::Pending | ChangeStatus::Failed | ChangeStatus::Undone => {}
            status => return Err(ChangeError::Status { id, status, wanted: "applied" }),
        }
        // By today's rules, not only by those it was proposed under.
        let origin = change.gates.iter().filter(|gate| gate.kind.is_of_origin()).cloned();
        let gates: Vec<Gate> = gates(&change.edits, rules).into_iter().chain(origin).collect();
        match gates.is_empty() || change.approved_by.is_some() {
            true => Ok(()),
            false => Err(ChangeError::NeedsPerson { id, gates }),
        }
    }

    /// Saves what the steps are about to displace.
    fn back_up(&self, steps: &[Step]) -> Result<(), ChangeError> {
        for step in steps {
            let Some(before) = &step.before else { continue };
            let mut bytes = Vec::new();
            let keep = |piece: &[u8]| {
                bytes.extend_from_slice(piece);
                Ok(())
            };
            let found = self.project.read(&step.file, keep);
            match found.map_err(|source| reach(&step.file, source))? {
                Found::File(content, _) if content.sha256 == before.sha256 => {}
                _ => return Err(ChangeError::changed(&step.file)),
            }
            self.store.keep(&bytes)?;
            crash::point();
        }
        Ok(())
    }

    /// Takes the steps, runs the project's command, and keeps or rolls back the result. `settle`
    /// updates the changes once they stay.
    async fn carry_out(
        &self,
        steps: Vec<Step>,
        changes: Vec<Change>,
        terms: &Terms<'_>,
        settle: impl Fn(&mut Change, bool),
    ) -> Result<End, ChangeError> {
        self.back_up(&steps)?;
        let files: Vec<FilePath> = steps.iter().map(|step| step.file.clone()).collect();
        let mut notes = Vec::new();
        let what = terms.message.lines().next().unwrap_or_default();
        let commits = match terms.commit {
            true => Commits::begin(&self.folder, &files, what).await,
            false => Err(String::new()),
        };
        let commits = commits.map_err(|note| notes.push(note)).ok();
        notes.retain(|note| !note.is_empty());
        let begun = Journal::begin(&self.store, &self.project, steps);
        let mut journal = match begun {
            Ok(journal) => journal,
            Err(error) => {
                // The staged files may be what fills the disk.
                let _ = self.store.clear_stage();
                return Err(error);
            }
        };
        let landed = self.try_to_land(&mut journal, changes, commits, notes, terms, settle).await;
        let Err((why, output)) = landed else {
            let landing = journal.landed.unwrap_or_default();
            return self.finish(landing).await.map(End::Landed);
        };
        let stuck = |source| ChangeError::Stuck { why: why.clone(), source: Box::new(source) };
        let notes = journal.restore(&self.store, &self.project).map_err(stuck)?;
        self.store.close_journal().map_err(stuck)?;
        Ok(End::TakenBack { why, output, notes })
    }

    /// Does everything up to the decision, which is the journal entry that records it.
    async fn try_to_land(
        &self,
        journal: &mut Journal,
        mut changes: Vec<Change>,
        commits: Option<Commits>,
        mut notes: Vec<String>,
        terms: &Terms<'_>,
        settle: impl Fn(&mut Change, bool),
    ) -> Result<(), (String, String)> {
        let plain = |error: ChangeError| (error.to_string(), String::new());
        // A set is judged by the validator as it was before: its files follow once it has judged.
        let judges = |step: &Step| step.before.is_some() && runs(terms.check.command, &step.file);
        journal.perform(&self.store, &self.project, |step| !judges(step)).map_err(plain)?;
        crash::point();
        let verdict = validate(&self.folder, terms.check, &self.redactor).await;
        crash::point();
        if let ValidationOutcome::Bad { why, output } = verdict {
            let old: Vec<&str> = journal
                .steps
                .iter()
                .filter(|step| judges(step))
                .map(|step| step.file.as_str())
                .collect();
            let why = match old.is_empty() {
                true => why,
                false => format!("{why}; it was judged by {} as it was before", old.join(", ")),
            };
            return Err((why, output));
        }
        journal.perform(&self.store, &self.project, judges).map_err(plain)?;
        crash::point();
        journal.verify(&self.store, &self.project, |_| true).map_err(plain)?;
        let mut commit = None;
        if let Some(mut commits) = commits {
            match commits.finish(&terms.message).await {
                Ok(made) => commit = made,
                Err(error) => notes.push(format!("not committed: {error}")),
            }
            notes.extend(commit.iter().flat_map(|_| std::mem::take(&mut commits.notes)));
        }
        for change in &mut changes {
            settle(change, !terms.check.command.is_empty());
            self.note_order(change);
            change.commit = commit.as_ref().map(|commit| commit.to.clone());
            change.notes.clone_from(&notes);
            if terms.emptied.is_none() {
                let of = |folder: &&String| {
                    change.paths().any(|path| path.folders().any(|outer| outer == *folder))
                };
                change.folders = journal.folders.iter().filter(of).cloned().collect();
            }
        }
        let emptied = terms.emptied.clone().unwrap_or_default();
        let mut decided = journal.clone();
        decided.landed = Some(Landing { changes, commit, emptied });
        crash::point();
        self.store.write_journal(&decided).map_err(plain)?;
        crash::point();
        *journal = decided;
        Ok(())
    }

    /// Records a decision. Safe to repeat.
    async fn finish(&self, landing: Landing) -> Result<Vec<Change>, ChangeError> {
        let Landing { mut changes, commit, emptied } = landing;
        for folder in emptied.iter().rev() {
            // A folder that is not empty has other files in it, and stays.
            let _ = self.project.remove_folder(folder);
            crash::point();
        }
        for change in &changes {
            self.store.put(change)?;
            crash::point();
        }
        if let Some(commit) = commit
            && let Err(note) = commit.make(&self.folder).await
        {
            for change in &mut changes {
                change.notes.push(note.clone());
                self.store.put(change)?;
            }
        }
        crash::point();
        self.store.close_journal()?;
        Ok(changes)
    }
}

fn now() -> String {
    Time::of(SystemTime::now()).rfc3339()
}
