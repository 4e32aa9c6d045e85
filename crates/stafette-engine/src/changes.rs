//! Changes of the project's own files: proposed, approved, applied and rolled back.
//!
//! The contents of a set are stored beside the runs, in a record of its own; what becomes of it is
//! recorded in its run. To apply it or to take it back is an order of that run, and so is to note in
//! the record what people said: the record holds nothing that its run does not know, or it belongs
//! to no run.

mod hold;
mod review;
mod talk;
mod work;

use stafette_agents::end_left_behind;
use stafette_core::change::{Author, Change, ChangeId, ChangeRules, Proposal};
use stafette_core::redact::Redact;
use stafette_core::{Run, TurnOrder};
use stafette_workspace::changes::mark;
use stafette_workspace::{ChangeError, Changes, Worktree, WorktreeError, Worktrees};
use thiserror::Error;

use crate::engine::Settings;
use crate::{Engine, EngineError};

pub use stafette_core::team::change::{Hand, Heard};
pub(crate) use work::Requests;

/// Changes of the project's own files: `Engine::changes`.
#[derive(Clone, Copy, Debug)]
pub struct ChangeSets<'a> {
    pub(crate) engine: &'a Engine,
}

impl ChangeSets<'_> {
    /// Runs an operation on the project's changes. It completes even if the caller goes away, and
    /// runs on a thread of its own because it waits for disks.
    ///
    /// # Errors
    /// Those of the operation, and that the changes cannot be opened.
    pub async fn with<T, F>(
        self,
        work: impl FnOnce(Changes) -> F + Send + 'static,
    ) -> Result<T, ChangeError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ChangeError>>,
    {
        with(self.engine.settings(), work).await
    }

    async fn get(self, id: ChangeId) -> Result<Change, ChangeError> {
        self.with(async move |changes| changes.get(id)).await
    }

    /// Returns the changes whose records can be read, oldest first. One that cannot is logged: it must
    /// not stop the orders that are about others.
    pub(crate) async fn list(self) -> Result<Vec<Change>, ChangeError> {
        self.with(async |changes| readable(&changes)).await
    }

    /// Finishes or rolls back what a crash has left half-done in the project.
    pub(crate) async fn recover(self) {
        if !self.engine.settings().state.join("changes").is_dir() {
            return;
        }
        // A command that outlived its daemon would write to files that are being repaired.
        end_left_behind(&mark(&self.engine.settings().project)).await;
        if let Err(error) = self.with(async |changes| changes.recover().await).await {
            tracing::error!(%error, "changes cannot be recovered");
        }
        let (engine, alive) = (self.engine.clone(), self.engine.holds());
        tokio::spawn(async move {
            // Until then nothing is recorded of the runs.
            engine.stopped().released().await;
            if let Err(error) = engine.changes().recover_proposals().await {
                tracing::error!(%error, "sets cannot be given to their runs");
            }
            drop(alive);
        });
    }
}

/// Runs an operation on the changes of a project, on a thread that may block.
async fn with<T, F>(
    settings: &Settings,
    work: impl FnOnce(Changes) -> F + Send + 'static,
) -> Result<T, ChangeError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ChangeError>>,
{
    let (project, state) = (settings.project.clone(), settings.state.clone());
    let redactor = settings.redactor.clone();
    let runtime = tokio::runtime::Handle::current();
    let work = tokio::task::spawn_blocking(move || {
        let changes = Changes::open(&project, &state)?.redacted(redactor);
        runtime.block_on(work(changes))
    });
    work.await.unwrap_or(Err(ChangeError::Busy))
}

fn readable(changes: &Changes) -> Result<Vec<Change>, ChangeError> {
    let (readable, damaged) = changes.readable()?;
    for error in damaged {
        tracing::error!(%error, "a change is left out");
    }
    Ok(readable)
}

/// Completes the operation even if the caller goes away.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, EngineError>> + Send + 'static,
) -> Result<T, EngineError> {
    tokio::spawn(work).await.unwrap_or(Err(EngineError::Stopping))
}

/// Stores the proposal that an agent makes in a turn: as a new set, or in place of the one that was
/// returned to it for revision. Secrets in its reason are taken out.
pub(crate) async fn take_in(
    settings: &Settings,
    rules: &ChangeRules,
    order: &TurnOrder,
    mut proposal: Proposal,
) -> Result<Change, ChangeError> {
    proposal.author = Author {
        run: Some(order.key.run),
        agent: Some(order.agent.clone()),
        handoff: Some(order.key.handoff),
        person: String::new(),
    };
    proposal.revises = proposal.revises.or_else(|| order.revises());
    proposal.granted = proposal.revises.is_some() && proposal.revises == order.revises();
    // It is written to disk before the run receives it.
    proposal.reason.redact(&settings.redactor);
    let rules = rules.clone();
    with(settings, async move |changes| changes.propose(proposal, &rules).await).await
}

/// The reason why the work of a run is no change.
#[derive(Debug, Error)]
pub(crate) enum NoChange {
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Change(#[from] ChangeError),
}

impl NoChange {
    /// True if trying again may help.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            NoChange::Worktree(error) => error.may_pass(),
            NoChange::Change(error) => error.may_pass(),
        }
    }
}

/// Proposes the outcome of a run, once.
pub(crate) async fn propose(
    settings: &Settings,
    worktrees: &Worktrees,
    run: &Run,
    last: &Worktree,
) -> Result<Option<Change>, NoChange> {
    let changes = Changes::open(&settings.project, &settings.state)?;
    if readable(&changes)?.iter().any(|change| change.author.run == Some(run.id)) {
        return Ok(None);
    }
    let drafts = worktrees.difference(last).await?;
    if drafts.is_empty() {
        return Ok(None);
    }
    let author = Author { run: Some(run.id), agent: Some(last.agent.clone()), ..Author::default() };
    let reason = run.request.chars().take(2_000).collect();
    Ok(Some(changes.draft(drafts, author, reason, &run.workflow.change_rules()).await?))
}
