//! Generations: notes, briefings and contexts of a team, and its context file. That a run which has
//! ended hands over, and that the next one begins, are orders of the run (`orders.rs`).

pub mod context_file;
mod follower;
pub(crate) mod imported;
pub(crate) mod landing;

use stafette_core::change::{Action, Change, ChangeStatus};
use stafette_core::team::generation::{self, ChangeCounts, Imported, Lineage};
use stafette_core::wire::context::{
    self as wire, ChangeAction, CodeChange, OrchestratorContext, PastRun,
};
use stafette_core::wire::scalar::Stamp;
use stafette_core::{Fields, Input, Run, RunId, TeamInput, Time};

use crate::{Engine, EngineError, clock};

pub use follower::ContextWriter;

/// The text that the next generation reads first.
#[derive(Clone, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Briefing {
    /// The run that it describes.
    pub run: RunId,
    /// The briefing, at most 2 KB long.
    pub briefing: String,
    /// A summary of the same run, in a few sentences.
    pub narrative: String,
}

/// The generations of a team.
#[derive(Clone, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Ancestry {
    /// The run that it describes.
    pub run: RunId,
    /// The place of the run among the generations.
    pub lineage: Lineage,
    /// The generations before it, the oldest first.
    pub history: Vec<PastRun>,
}

/// Generations of teams: `Engine::generations`.
#[derive(Clone, Copy, Debug)]
pub struct Generations<'a> {
    pub(crate) engine: &'a Engine,
}

impl Generations<'_> {
    /// Returns what a context starts here. A context of a run that still continues starts nothing:
    /// it would do the same work twice.
    ///
    /// # Errors
    /// When its run continues.
    pub async fn import(self, context: &OrchestratorContext) -> Result<Imported, EngineError> {
        // Redacted before anything is cut: half of a secret could not be recognised any more.
        let imported = generation::import(&self.engine.redacted(context.clone()), clock::now());
        if let Some(previous) = imported.lineage.previous
            && self.engine.store().unfinished().await?.contains(&previous)
        {
            return Err(EngineError::GoesOn { run: previous });
        }
        Ok(imported)
    }

    /// Leaves a note for the generation after `run`, or after the latest one that has followed it.
    ///
    /// # Errors
    /// When there is no such run, or the store fails to write.
    pub async fn note(self, run: RunId, text: String, by: String) -> Result<RunId, EngineError> {
        // No generation begins between finding the last one and sending it the note.
        let _turn = self.engine.once.generation().await;
        let run = self.last(run).await?;
        self.engine.record(run, Input::Team(TeamInput::Note { text, by })).await?;
        Ok(run)
    }

    /// The last generation of a run's team that has begun.
    pub(crate) async fn last(self, run: RunId) -> Result<RunId, EngineError> {
        let mut last = run;
        while let Some(next) = self.followed_by(last).await? {
            last = next;
        }
        Ok(last)
    }

    /// The run that follows, if it has begun.
    async fn followed_by(self, run: RunId) -> Result<Option<RunId>, EngineError> {
        let state = self.engine.state(run).await?;
        let over = state.team.lineage.as_ref().and_then(|lineage| lineage.handed_over.as_ref());
        let Some(next) = over.and_then(|over| over.next.as_ref()) else { return Ok(None) };
        Ok(self.engine.store().run(next.run).await?.map(|row| row.run))
    }

    /// Returns the state of a run's team, for other orchestrators.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn context(self, run: RunId) -> Result<OrchestratorContext, EngineError> {
        let state = self.engine.state(run).await?;
        let changes = self.changes_of(&state).await?;
        Ok(picture_of(&state, &changes, clock::now()))
    }

    /// Returns the text that the generation after a run reads first.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn briefing(self, run: RunId) -> Result<Briefing, EngineError> {
        let briefing = generation::briefing(&self.context(run).await?);
        let narrative = generation::narrative(&*self.engine.state(run).await?);
        Ok(Briefing { run, briefing, narrative })
    }

    /// Returns the generations of a run's team.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn of(self, run: RunId) -> Result<Ancestry, EngineError> {
        let state = self.engine.state(run).await?;
        let first = || Box::new(Lineage::first(state.created_at, Fields::new()));
        let lineage = *state.team.lineage.clone().unwrap_or_else(first);
        Ok(Ancestry { run, lineage, history: self.context(run).await?.history })
    }

    /// The changes made by a run and the generations before it.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) async fn changes_of(self, run: &Run) -> Result<Vec<Change>, EngineError> {
        let past =
            run.team.lineage.iter().flat_map(|lineage| &lineage.past).filter_map(|past| past.run);
        let team: Vec<RunId> = past.chain([run.id]).collect();
        let mut changes = self.engine.changes().list().await?;
        changes.retain(|change| team.iter().any(|run| change.is_of(*run)));
        Ok(changes)
    }
}

/// The state of a run's team, with the changes that its generations have made.
#[must_use]
pub fn picture_of(run: &Run, changes: &[Change], at: Time) -> OrchestratorContext {
    let code: Vec<CodeChange> = changes.iter().flat_map(code_changes).collect();
    generation::context(run, &code, &counts(run, changes), at)
}

/// The counts of changes that matter for the next generation: its own, and those that are still
/// open.
#[must_use]
pub fn counts(run: &Run, changes: &[Change]) -> ChangeCounts {
    let matters = |change: &&Change| {
        let open = matches!(change.status, ChangeStatus::Pending | ChangeStatus::Approved);
        open || change.run() == Some(run.id)
    };
    ChangeCounts::of(changes.iter().filter(matters))
}

/// A change in the form that a context uses, file by file.
fn code_changes(change: &Change) -> Vec<CodeChange> {
    let stamp = |at: &Option<String>| Some(at.clone().map(Stamp));
    let status = match change.status {
        ChangeStatus::Pending | ChangeStatus::Approved => wire::ChangeStatus::Pending,
        ChangeStatus::Applied => wire::ChangeStatus::Applied,
        ChangeStatus::Validated => wire::ChangeStatus::Validated,
        ChangeStatus::Failed | ChangeStatus::Refused | ChangeStatus::Undone => {
            wire::ChangeStatus::Failed
        }
    };
    let one = |file: &str, action| CodeChange {
        file: file.to_owned(),
        action,
        content: None,
        applied_at: stamp(&change.applied_at),
        validated_at: stamp(&change.validated_at),
        status,
        extra: Fields::from_iter([("change".to_owned(), change.id.to_string().into())]),
    };
    let edits = change.edits.iter().flat_map(|edit| {
        let action = match edit.action {
            Action::Create | Action::Rename => ChangeAction::Create,
            Action::Modify => ChangeAction::Modify,
            Action::Delete => ChangeAction::Delete,
        };
        let left = edit.from.as_ref().map(|from| one(from.as_str(), ChangeAction::Delete));
        left.into_iter().chain([one(edit.file.as_str(), action)])
    });
    edits.collect()
}
