//! Undoes a set that was applied, however long ago.

use std::time::Duration;

use stafette_core::change::{Change, ChangeId, ChangeRules, ChangeStatus, FilePath};

use super::plan::Plan;
use super::validation::Check;
use super::{ChangeError, Changes, End, Report, RolledBack, Terms, now};

impl Changes {
    /// Removes a set from the project again. Later sets on the same files are reported, and undone
    /// with it only if `with_later` is set. Later changes by others are not overwritten.
    pub async fn undo(
        &self,
        id: ChangeId,
        with_later: bool,
        rules: &ChangeRules,
    ) -> Result<Report, ChangeError> {
        let _hold = self.store.hold().await?;
        self.recover_held().await?;
        let change = self.store.get(id)?;
        if !change.status.is_in() {
            let status = change.status;
            return Err(ChangeError::Status { id, status, wanted: "undone" });
        }
        let later = self.on_top_of(&change)?;
        if !later.is_empty() && !with_later {
            let later = later.iter().map(|(later, file)| (later.id, file.clone())).collect();
            return Err(ChangeError::Later { id, later });
        }
        let mut undone: Vec<Change> = later.into_iter().map(|(later, _)| later).collect();
        undone.push(change);
        let mut plan = Plan::default();
        for change in &undone {
            plan.undo(&self.project, change)?;
        }
        let names: Vec<String> = undone.iter().map(|change| change.id.to_string()).collect();
        let mut emptied: Vec<String> =
            undone.iter().flat_map(|change| change.folders.iter().cloned()).collect();
        // An outer folder has the shorter path.
        emptied.sort_by_key(String::len);
        let terms = Terms {
            message: format!("Undo {}\n", names.join(", ")),
            check: Check {
                command: &[],
                env: &[],
                setting: "[changes] env",
                timeout: Duration::ZERO,
            },
            commit: rules.commit,
            emptied: Some(emptied),
        };
        let settle = |change: &mut Change, _| {
            change.status = ChangeStatus::Undone;
            change.undone_at = Some(now());
        };
        let steps = plan.steps();
        let end = self.carry_out(steps, undone, &terms, settle).await?;
        Ok(match end {
            End::Landed(landed) => Report { landed, ..Report::default() },
            End::TakenBack { why, output, notes } => {
                let rolled_back = vec![RolledBack { id, why, output, notes }];
                Report { rolled_back, ..Report::default() }
            }
        })
    }

    /// Returns the sets that are undone with it if `with_later` is set.
    pub fn later(&self, id: ChangeId) -> Result<Vec<Change>, ChangeError> {
        let later = self.on_top_of(&self.store.get(id)?)?;
        Ok(later.into_iter().map(|(later, _)| later).collect())
    }

    /// Returns the sets that were applied later to a file of this one or of one that goes with it,
    /// newest first.
    fn on_top_of(&self, change: &Change) -> Result<Vec<(Change, FilePath)>, ChangeError> {
        let mut files: Vec<FilePath> = change.paths().cloned().collect();
        let mut all: Vec<Change> = self.store.list()?;
        all.retain(|other| other.status.is_in() && other.order > change.order);
        all.sort_by_key(|other| other.order);
        let mut found = Vec::new();
        for other in all {
            let shared = other.paths().find(|path| files.contains(path)).cloned();
            if let Some(shared) = shared {
                files.extend(other.paths().cloned());
                found.push((other, shared));
            }
        }
        found.reverse();
        Ok(found)
    }
}
