//! Replaces the team's own program: the change is applied, the program is built and tried, and the
//! running one is replaced. If any step fails, or this process dies, the old program is restored.
//!
//! A note records what is in progress before anything is touched. It is removed when the new
//! program has proved that it runs; a note that is found later means that it has not.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::change::{ChangeId, ChangeRules};
use stafette_core::redact::Redactor;
use stafette_core::workflow::own::Own;
use thiserror::Error;

use crate::changes::crash;
use crate::changes::validation::{Check, ValidationOutcome, validate};
use crate::{ChangeError, Changes};

/// The number of changes, the newest ones, on which the program is known to run.
const REMEMBERED: usize = 256;

/// The largest program, in bytes.
const LARGEST: u64 = 4 << 30;

/// Replaces a program with new code, and restores the old one on failure.
#[derive(Clone, Debug)]
pub struct Renewals {
    project: PathBuf,
    folder: PathBuf,
}

/// The stage that a renewal reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Applying and validating the change.
    Apply,
    /// Building the new program.
    Build,
    /// Proving that the new program can read the old one's data.
    Prove,
    /// Replacing the old program by the new one.
    Replace,
    /// The renewal is complete.
    Done,
}

/// The outcome of a renewal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Renewal {
    /// The change with the new code.
    pub change: ChangeId,
    /// The stage that it reached; anything but `done` means that the old program was restored.
    pub stage: Stage,
    /// The reason for stopping there; empty if it is done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The end of the output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// A program cannot be renewed, or not be restored.
#[derive(Debug, Error)]
pub enum RenewalError {
    /// The change cannot be applied or rolled back.
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error("`{program}` is not a file in the project")]
    Outside { program: String },
    #[error("{} cannot be kept or put back", path.display())]
    Files { path: PathBuf, source: io::Error },
}

/// The record of a renewal in progress.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    change: ChangeId,
    program: String,
    /// True if there was a program before.
    kept: bool,
}

impl Renewals {
    /// Opens the renewals of a project that keeps its state in `home`.
    #[must_use]
    pub fn open(project: &Path, home: &Path) -> Self {
        Renewals { project: project.to_owned(), folder: home.join("self") }
    }

    /// Builds and starts the program with the code of a change, which is applied for that unless it
    /// already is. `replace` stops the running program for the new one, and returns the reason if
    /// the new one does not run; the caller starts the old one again if the result is not
    /// [`Stage::Done`].
    ///
    /// # Errors
    /// If the change may not be applied, or the roll-back fails.
    pub async fn renew(
        &self,
        changes: &Changes,
        change: ChangeId,
        (own, rules): (&Own, &ChangeRules),
        replace: impl AsyncFnOnce() -> Result<(), String>,
    ) -> Result<Renewal, RenewalError> {
        self.recover(changes, rules).await?;
        let program = self.program(&own.program)?;
        let is_in = changes.get(change)?.status.is_in();
        let kept = self.keep(&program)?;
        crash::point();
        let note = Note { change, program: own.program.clone(), kept };
        self.write(&note)?;
        crash::point();
        if !is_in {
            let report = match changes.apply(change, rules).await {
                Ok(report) => report,
                Err(error) => {
                    self.forget()?;
                    return Err(error.into());
                }
            };
            if report.landed.is_empty() {
                self.forget()?;
                let (why, output) = report.rolled_back.into_iter().next().map_or_else(
                    || ("nothing was applied".to_owned(), String::new()),
                    |back| (back.why, back.output),
                );
                return Ok(Renewal { change, stage: Stage::Apply, why, output });
            }
        }
        crash::point();
        let (stage, why, output) = match self.try_out(own, &changes.redactor, replace).await {
            Ok(()) => (Stage::Done, String::new(), String::new()),
            Err(failed) => failed,
        };
        match stage {
            Stage::Done => {
                self.remember(change, changes)?;
                self.forget()?;
            }
            _ => self.roll_back(changes, &note, rules).await?,
        }
        Ok(Renewal { change, stage, why, output })
    }

    /// True if the program runs on this change as it is in the project now.
    pub fn runs_on(&self, change: ChangeId, changes: &Changes) -> Result<bool, RenewalError> {
        let known = fs::read_to_string(self.folder.join("runs-on")).unwrap_or_default();
        let order = changes.get(change)?.order;
        Ok(order.is_some_and(|order| known.lines().any(|line| line == order.to_string())))
    }

    /// Records that the program runs on a change: by its place among all that were ever applied.
    fn remember(&self, change: ChangeId, changes: &Changes) -> Result<(), RenewalError> {
        let path = self.folder.join("runs-on");
        let known = fs::read_to_string(&path).unwrap_or_default();
        let order = changes.get(change)?.order.map(|order| order.to_string());
        let lines: Vec<&str> = known.lines().chain(order.as_deref()).collect();
        let lines = &lines[lines.len().saturating_sub(REMEMBERED)..];
        stafette_disk::write(&path, lines.join("\n"))
            .map_err(|source| RenewalError::Files { path: path.clone(), source })
    }

    async fn try_out(
        &self,
        own: &Own,
        redactor: &Redactor,
        replace: impl AsyncFnOnce() -> Result<(), String>,
    ) -> Result<(), (Stage, String, String)> {
        for (stage, command, within) in [
            (Stage::Build, &own.build, own.build_timeout),
            (Stage::Prove, &own.prove, own.prove_timeout),
        ] {
            let check =
                Check { command, env: &own.env, setting: "[self] env", timeout: within.into() };
            let verdict = validate(&self.project, check, redactor).await;
            if let ValidationOutcome::Bad { why, output } = verdict {
                return Err((stage, why, output));
            }
            crash::point();
        }
        let replaced = replace().await;
        crash::point();
        replaced.map_err(|why| (Stage::Replace, why, String::new()))
    }

    /// Restores the old program if a renewal was in progress; returns its change.
    ///
    /// # Errors
    /// If the roll-back fails.
    pub async fn recover(
        &self,
        changes: &Changes,
        rules: &ChangeRules,
    ) -> Result<Option<ChangeId>, RenewalError> {
        let path = self.note();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RenewalError::Files { path, source }),
        };
        let note: Note = serde_json::from_slice(&text)
            .map_err(|error| RenewalError::Files { path, source: error.into() })?;
        changes.recover().await?;
        self.roll_back(changes, &note, rules).await?;
        Ok(Some(note.change))
    }

    /// Restores the old sources and the old program. Safe to repeat.
    async fn roll_back(
        &self,
        changes: &Changes,
        note: &Note,
        rules: &ChangeRules,
    ) -> Result<(), RenewalError> {
        if changes.get(note.change)?.status.is_in() {
            changes.undo(note.change, true, rules).await?;
        }
        crash::point();
        let program = self.program(&note.program)?;
        let failed = |source| RenewalError::Files { path: program.clone(), source };
        match note.kept {
            true => put(&self.previous(), &program).map_err(failed)?,
            false => match fs::remove_file(&program) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            },
        }
        crash::point();
        // Restored files are older than what was built from their successors: without a new time,
        // the next build would take that for up to date.
        for path in changes.get(note.change)?.paths() {
            let touched =
                stafette_disk::private().write(true).open(self.project.join(path.as_str()));
            drop(touched.and_then(|file| file.set_modified(SystemTime::now())));
        }
        crash::point();
        self.forget()
    }

    /// Returns the path of the program, which must be within the project and plain.
    fn program(&self, program: &str) -> Result<PathBuf, RenewalError> {
        let path = Path::new(program);
        let plain = |part| matches!(part, Component::Normal(_));
        match program.is_empty() || !path.components().all(plain) {
            true => Err(RenewalError::Outside { program: program.to_owned() }),
            false => Ok(self.project.join(path)),
        }
    }

    fn previous(&self) -> PathBuf {
        self.folder.join("previous")
    }

    fn note(&self) -> PathBuf {
        self.folder.join("renewal.json")
    }

    /// Saves the current program; returns true if there is one.
    fn keep(&self, program: &Path) -> Result<bool, RenewalError> {
        let failed = |source| RenewalError::Files { path: program.to_owned(), source };
        stafette_disk::folder(&self.folder).map_err(failed)?;
        match fs::symlink_metadata(program) {
            Ok(found) if found.is_file() => {
                put(program, &self.previous()).map_err(failed)?;
                Ok(true)
            }
            Ok(_) => Err(RenewalError::Outside { program: program.display().to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    fn write(&self, note: &Note) -> Result<(), RenewalError> {
        let path = self.note();
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(&serde_json::to_vec(note)?)?;
            file.as_file().sync_all()?;
            crash::point();
            file.persist(&path)?;
            crash::point();
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|source| RenewalError::Files { path: path.clone(), source })
    }

    fn forget(&self) -> Result<(), RenewalError> {
        let path = self.note();
        let remove = || {
            fs::remove_file(&path)?;
            crash::point();
            File::open(&self.folder)?.sync_all()
        };
        match remove() {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(RenewalError::Files { path, source })
            }
            _ => Ok(()),
        }
    }
}

/// Replaces `to` by a copy of `from`, atomically, even if it is running. The program lies where agents
/// write, and may have become anything.
fn put(from: &Path, to: &Path) -> io::Result<()> {
    let from = stafette_disk::open_itself(from)?;
    let about = from.metadata()?;
    if about.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 4 GiB"));
    }
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let copy = tempfile::NamedTempFile::new_in(folder)?;
    io::copy(&mut from.take(LARGEST), &mut copy.as_file())?;
    copy.as_file().set_permissions(about.permissions())?;
    copy.as_file().sync_all()?;
    crash::point();
    copy.persist(to)?;
    crash::point();
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests;
