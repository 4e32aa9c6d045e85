//! The sets of edits, stored and applied by the real code in a project of the seed's own.
//!
//! Nothing in it has to wait: there is one process, no validation command is run and nothing is
//! committed, so every call completes immediately.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;
use stafette_core::change::{
    Author, Change, ChangeId, ChangeRules, ChangeStatus, Comment, Proposal,
};
use stafette_core::team::change::{ChangeWork, SetState};
use stafette_core::team::order::WorkKey;
use stafette_core::{Run, RunId};
use stafette_engine::{ChangeError, Changes};
use tempfile::TempDir;

use crate::disk::at_once;
use crate::law::{LawResult, must};

/// All sets of a project.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    home: Option<Home>,
    /// The number of times that each was applied and undone.
    moves: BTreeMap<ChangeId, (u32, u32)>,
}

#[derive(Debug)]
struct Home {
    folder: TempDir,
    changes: Changes,
}

impl Home {
    /// Makes a project in memory where possible: syncing a disk is slow.
    fn new() -> Option<Home> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = tempfile::tempdir_in(place).ok()?;
        let changes = open(&folder).ok()?;
        Some(Home { folder, changes })
    }

    fn open(&self) -> Result<Changes, ChangeError> {
        open(&self.folder)
    }
}

impl Sets {
    fn home(&mut self) -> &Changes {
        let home = self.home.get_or_insert_with(|| Home::new().expect("a folder of our own"));
        &home.changes
    }

    /// Returns all sets, oldest first.
    pub(crate) fn all(&self) -> Vec<Change> {
        self.home.as_ref().and_then(|home| home.changes.list().ok()).unwrap_or_default()
    }

    /// Returns the sets of a run and of the generations before it.
    pub(crate) fn of_team(&self, run: &Run) -> Vec<Change> {
        let past =
            run.team.lineage.iter().flat_map(|lineage| &lineage.past).filter_map(|past| past.run);
        let team: Vec<RunId> = past.chain([run.id]).collect();
        let made = |change: &Change| change.run().is_some_and(|run| team.contains(&run));
        self.all().into_iter().filter(made).collect()
    }

    pub(crate) fn get(&self, id: ChangeId) -> Option<Change> {
        self.home.as_ref()?.changes.get(id).ok()
    }

    /// Stores a set of one new file; a revision replaces the last one.
    pub(crate) fn propose(
        &mut self,
        author: Author,
        file: &str,
        text: &str,
        revises: Option<ChangeId>,
        rules: &ChangeRules,
    ) -> Result<Change, ChangeError> {
        let edits = json!([{ "file": file, "action": "create", "content": text }]);
        let changes = serde_json::from_value(edits).unwrap_or_default();
        let reason = text.to_owned();
        let proposal =
            Proposal { changes, author, reason, revises, printed: false, granted: false };
        done(self.home().propose(proposal, rules))
    }

    pub(crate) fn turned_away(&mut self, id: ChangeId) {
        let _ = done(self.home().turned_away(id, "its turn was over"));
    }

    pub(crate) fn remark(&mut self, id: ChangeId, text: &str) -> Option<Comment> {
        self.home().remark(id, "ada", None, text).ok()
    }

    /// Writes what people said about a set in its run.
    pub(crate) fn write(&mut self, id: ChangeId, known: &SetState) {
        for comment in known.said.iter().cloned() {
            let _ = done(self.home().comment(id, comment));
        }
        let Some(change) = self.get(id) else { return };
        let is_news = change.revision == known.revision && change.status != known.status;
        if !is_news || !change.status.is_open() {
            return;
        }
        let _ = match known.status {
            ChangeStatus::Approved => done(self.home().approve(id, &known.decided_by)),
            ChangeStatus::Refused => done(self.home().refuse(id, &known.decided_by)),
            _ => Ok(change),
        };
    }

    /// Applies or undoes a set; the error is what prevents that.
    pub(crate) fn carry_out(
        &mut self,
        key: WorkKey,
        work: ChangeWork,
        rules: &ChangeRules,
    ) -> Result<(), ChangeError> {
        let id = key.change;
        self.home();
        let changes = self.home.as_ref().map(Home::open).ok_or(ChangeError::Busy)??;
        let changes = changes.ordered(vec![key]);
        let report = match work {
            ChangeWork::Apply | ChangeWork::Renew => done(changes.apply(id, rules)),
            ChangeWork::Undo => done(changes.undo(id, false, rules)),
            ChangeWork::UndoWithLater => done(changes.undo(id, true, rules)),
        }?;
        for change in report.landed {
            let (into, out) = self.moves.entry(change.id).or_default();
            *(if work == ChangeWork::Apply { into } else { out }) += 1;
        }
        Ok(())
    }

    /// Writes a foreign file where a set would write.
    pub(crate) fn obstruct(&self, change: &Change) {
        let Some(home) = &self.home else { return };
        for path in change.paths() {
            let path = home.folder.path().join(path.as_str());
            let made = path.parent().map(fs::create_dir_all);
            if made.is_some_and(|made| made.is_ok()) && !path.exists() {
                let _ = fs::write(path, "somebody else's");
            }
        }
    }

    /// The content of the project matches the sets: each was applied once more than undone, or as
    /// often.
    pub(crate) fn hold(&self) -> LawResult {
        const LAW: &str = "a set is in the project once, or not at all";
        let Some(home) = &self.home else { return Ok(()) };
        let all = self.all();
        for change in &all {
            let (into, out) = self.moves.get(&change.id).copied().unwrap_or_default();
            let is_in = change.status.is_in();
            must(into == out + u32::from(is_in), LAW, || {
                format!("{} is {:?}, {into} times in and {out} out", change.id, change.status)
            })?;
            for path in change.paths() {
                let text = fs::read_to_string(home.folder.path().join(path.as_str()));
                let is_there = text.is_ok_and(|text| text == change.reason);
                // A set that was refused may be proposed again, and that one be in.
                let is_same = |other: &&Change| {
                    other.reason == change.reason && other.paths().any(|its| its == path)
                };
                let expected = all.iter().filter(is_same).any(|change| change.status.is_in());
                must(is_there == expected, LAW, || format!("{path} of {:?}", change.status))?;
            }
        }
        Ok(())
    }
}

fn open(folder: &TempDir) -> Result<Changes, ChangeError> {
    Changes::open(folder.path(), &folder.path().join(".stafette"))
}

/// Returns the result of a future that never has to wait.
fn done<T>(work: impl Future<Output = Result<T, ChangeError>>) -> Result<T, ChangeError> {
    at_once(work).unwrap_or(Err(ChangeError::Busy))
}
