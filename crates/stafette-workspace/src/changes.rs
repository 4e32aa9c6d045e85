//! Changes of the user's own checkout, as sets that are applied whole or not at all.
//!
//! What is proposed waits in `changes` of the project's state folder: a record for each set, and
//! every content by its digest. To apply a set, its new files are put ready, the journal says what
//! is going to happen, they are swapped in, the project's own command is asked, and then the journal
//! says that they stay; or everything is swapped back. The journal is the truth: whoever opens the
//! folder after a crash finishes or takes back what it says.
//!
//! Invariants:
//! - The project is as before a set or as after it, once [`Changes::recover`] has run.
//! - Nothing outside of the project is read or written, whatever is swapped for a link meanwhile.
//! - What a set was not made against is not written over; what somebody has written meanwhile comes
//!   back, or is kept.

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
use std::time::{Duration, SystemTime};

use stafette_core::Time;
use stafette_core::change::{
    BadPath, Change, ChangeId, ChangeRules, ChangeStatus, FilePath, Gate, GateKind, gates,
};
use stafette_core::team::change::told;
use thiserror::Error;

use crate::git::GitError;
use change_store::ChangeStore;
use commit::Commits;
use confined_dir::{ConfinedDir, Found};
use journal::{Journal, Landing, Step};
use validation::{ValidationOutcome, validate};

pub use diff::{FileDiff, Hunk, Line};
pub use proposal::Draft;
pub use queue::{Left, Report, RolledBack};
pub use validation::mark;

/// Why a change could not be proposed, applied or undone. Nothing of the project has changed.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// There is no such change.
    #[error("there is no change {id}")]
    NoChange {
        /// What was asked for.
        id: ChangeId,
    },
    /// A path leads elsewhere.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// An edit says too little or too much.
    #[error("{file}: {flaw}")]
    Edit {
        /// Which file.
        file: String,
        /// What is wrong with it.
        flaw: &'static str,
    },
    /// The set is empty, or larger than a set may be.
    #[error("{flaw}")]
    Size {
        /// What is wrong with it.
        flaw: &'static str,
    },
    /// Two paths are one file somewhere.
    #[error("{first} and {second} are one file, or one is in the other, on some file systems")]
    Collision {
        /// One.
        first: FilePath,
        /// The other.
        second: FilePath,
    },
    /// The workflow keeps it from every change.
    #[error("{file} is protected: `{pattern}` in `[changes]` covers it")]
    Protected {
        /// Which file.
        file: FilePath,
        /// By which pattern.
        pattern: String,
    },
    /// There is something else than a file.
    #[error("{file} is {kind}, which no change may touch")]
    NotAFile {
        /// Where.
        file: FilePath,
        /// What is there.
        kind: &'static str,
    },
    /// Somebody else has changed it.
    #[error("{file} is not what the change was made against")]
    Changed {
        /// Which file.
        file: FilePath,
    },
    /// A person has to say yes.
    #[error("{id} needs a person's yes: {}", told(gates))]
    NeedsPerson {
        /// Which change.
        id: ChangeId,
        /// To what.
        gates: Vec<Gate>,
    },
    /// It is not so far, or too far.
    #[error("{id} is {}, so it cannot be {wanted}", status.as_str())]
    Status {
        /// Which change.
        id: ChangeId,
        /// How far it is.
        status: ChangeStatus,
        /// What was asked for.
        wanted: &'static str,
    },
    /// It is somebody else's.
    #[error("{id} is a change of {by}, who alone can revise it")]
    NotYours {
        /// Which change.
        id: ChangeId,
        /// Whose it is.
        by: String,
    },
    /// Later changes stand on it.
    #[error("{id} has later changes on top of it: {}", on_top(later))]
    Later {
        /// Which change.
        id: ChangeId,
        /// Which later ones, and a file of each that they share.
        later: Vec<(ChangeId, FilePath)>,
    },
    /// Somebody else is at it.
    #[error("another change is being applied")]
    Busy,
    /// A file of ours is not what we have written.
    #[error("{} cannot be understood: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The file system did not do it.
    #[error("cannot {what} {}: {source}", path.display())]
    Files {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// What was begun cannot be taken back at the moment. The journal has it: it is tried again.
    #[error("{why}; and it cannot be taken back yet: {source}")]
    Stuck {
        /// Why it is to be taken back.
        why: String,
        /// Why it cannot.
        source: Box<ChangeError>,
    },
    /// Git did not do it.
    #[error(transparent)]
    Git(GitError),
}

impl ChangeError {
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

fn on_top(later: &[(ChangeId, FilePath)]) -> String {
    let said = later.iter().map(|(id, file)| format!("{id} ({file})"));
    said.collect::<Vec<_>>().join(", ")
}

/// What was left to do after a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovered {
    /// Nothing.
    Nothing,
    /// Files were taken back to what they were.
    TakenBack,
    /// What had been decided was written down.
    Finished,
}

/// All changes of a project.
#[derive(Debug)]
pub struct Changes {
    folder: PathBuf,
    project: ConfinedDir,
    store: ChangeStore,
}

/// How an attempt ended.
#[derive(Debug)]
enum End {
    Landed(Vec<Change>),
    TakenBack { why: String, output: String, notes: Vec<String> },
}

/// What is asked of an attempt besides its files.
#[derive(Debug)]
struct Terms<'r> {
    message: String,
    validate: &'r [String],
    timeout: Duration,
    commit: bool,
    /// Folders that go with the files in them, when it is a way back.
    emptied: Option<Vec<String>>,
}

impl Changes {
    /// The changes of a project that keeps its state in `home`, on the same file system.
    pub fn open(project: &Path, home: &Path) -> Result<Changes, ChangeError> {
        let failed = |source| ChangeError::files("open", project, source);
        let inside = ConfinedDir::open(project).map_err(failed)?;
        Ok(Changes { folder: project.to_owned(), project: inside, store: ChangeStore::open(home)? })
    }

    /// All changes, the oldest first.
    pub fn list(&self) -> Result<Vec<Change>, ChangeError> {
        self.store.list()
    }

    /// One change.
    pub fn get(&self, id: ChangeId) -> Result<Change, ChangeError> {
        self.store.get(id)
    }

    /// Finishes or takes back what a crash has left in the middle. Every other operation does so
    /// first.
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

    /// Whether a change may be applied now.
    fn ready(change: &Change, rules: &ChangeRules) -> Result<(), ChangeError> {
        let id = change.id;
        match change.status {
            ChangeStatus::Approved => return Ok(()),
            ChangeStatus::Pending | ChangeStatus::Failed => {}
            status => return Err(ChangeError::Status { id, status, wanted: "applied" }),
        }
        // By the rules of today, not only by those it was proposed under.
        let foreign = change.gates.iter().filter(|gate| gate.kind == GateKind::Foreign).cloned();
        let gates: Vec<Gate> = gates(&change.edits, rules).into_iter().chain(foreign).collect();
        match gates.is_empty() || change.approved_by.is_some() {
            true => Ok(()),
            false => Err(ChangeError::NeedsPerson { id, gates }),
        }
    }

    /// Keeps what the steps are about to displace.
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

    /// Takes the steps, asks the project's command, and has them stay or takes them back. `settle`
    /// says what the changes are once they stay.
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
                // What was put ready may be what fills the disk.
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

    /// Everything up to the decision, which is the journal that says so.
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
        journal.perform(&self.store, &self.project).map_err(plain)?;
        crash::point();
        let verdict = validate(&self.folder, terms.validate, terms.timeout).await;
        crash::point();
        if let ValidationOutcome::Bad { why, output } = verdict {
            return Err((why, output));
        }
        journal.verify(&self.store, &self.project).map_err(plain)?;
        let commit = match commits {
            Some(commits) => commits.finish(&terms.message).await.unwrap_or_else(|error| {
                notes.push(format!("not committed: {error}"));
                None
            }),
            None => None,
        };
        for change in &mut changes {
            settle(change, !terms.validate.is_empty());
            change.untold = change.author.run.is_some();
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

    /// Writes down what has been decided. To repeat it is safe.
    async fn finish(&self, landing: Landing) -> Result<Vec<Change>, ChangeError> {
        let Landing { mut changes, commit, emptied } = landing;
        for folder in emptied.iter().rev() {
            // What is not empty has something of somebody in it, and stays.
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
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).rfc3339()
}
