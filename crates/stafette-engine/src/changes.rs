//! Changes of the project's own files: proposed, approved, applied and rolled back.
//!
//! A set is stored beside the runs, and its run records its progress. A person's decision is
//! recorded first and then written to the set; a proposal, and the outcome of an attempt to apply
//! it or roll it back, is stored first, marked as unreported, and then recorded. Either way the
//! next daemon completes the missing half when it starts.

mod hold;
mod review;
mod talk;
pub mod telling;

use stafette_core::change::{Author, Change, ChangeId, ChangeRules, ChangeStatus, Proposal};
use stafette_core::redact::Redact;
use stafette_core::{Event, Recorded, Run, TeamEvent, TurnOrder};
use stafette_workspace::{ChangeError, Changes, Worktree, WorktreeError, Worktrees};
use thiserror::Error;

use crate::engine::Settings;
use crate::{Engine, EngineError};

pub use hold::Hand;
pub use talk::Heard;

impl Engine {
    /// Runs an operation on the project's changes. It completes even if the caller goes away, and
    /// runs on a thread of its own because it waits for disks.
    ///
    /// # Errors
    /// Those of the operation, and that the changes cannot be opened.
    pub async fn changes<T, F>(
        &self,
        work: impl FnOnce(Changes) -> F + Send + 'static,
    ) -> Result<T, ChangeError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ChangeError>>,
    {
        with(self.settings(), work).await
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
    let runtime = tokio::runtime::Handle::current();
    let work = tokio::task::spawn_blocking(move || {
        let changes = Changes::open(&project, &state)?;
        runtime.block_on(work(changes))
    });
    work.await.unwrap_or(Err(ChangeError::Busy))
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
    // It is written to disk before the run receives it.
    proposal.reason.redact(&settings.redactor);
    let rules = rules.clone();
    with(settings, async move |changes| changes.propose(proposal, &rules).await).await
}

/// Marks that the run knows a change in its present state. If that fails, it is reported again
/// later.
pub(crate) async fn told(settings: &Settings, change: Change) {
    let told = with(settings, async move |changes| changes.told(&change).await).await;
    if let Err(error) = told {
        tracing::warn!(%error, "a change will be told again");
    }
}

/// Writes to the sets the decisions that people recorded in the run.
pub(crate) async fn mirror(settings: &Settings, events: &[Recorded]) {
    let word = |event: &Event| match event {
        Event::Team(TeamEvent::ChangeSettled(settled)) => {
            matches!(settled.status, ChangeStatus::Approved | ChangeStatus::Refused)
        }
        Event::Team(TeamEvent::ChangeCommented(_)) => true,
        _ => false,
    };
    let words = events.iter().map(|recorded| &recorded.event).filter(|event| word(event));
    let words: Vec<Event> = words.cloned().collect();
    if words.is_empty() {
        return;
    }
    let written = with(settings, async move |changes| {
        for event in &words {
            match event {
                Event::Team(TeamEvent::ChangeSettled(settled)) => {
                    follow(&changes, settled.change, settled.status, &settled.by).await?;
                }
                Event::Team(TeamEvent::ChangeCommented(said)) => {
                    changes.comment(said.change, said.comment.clone()).await?;
                }
                _ => {}
            }
        }
        Ok(())
    });
    if let Err(error) = written.await {
        tracing::warn!(%error, "what was said of a change is not written to it yet");
    }
}

/// Gives a set the status that a person gave it in its run, unless it is further along already.
async fn follow(
    changes: &Changes,
    id: ChangeId,
    status: ChangeStatus,
    by: &str,
) -> Result<(), ChangeError> {
    if !telling::follows(&changes.get(id)?, status) {
        return Ok(());
    }
    match status {
        ChangeStatus::Approved => changes.approve(id, by).await.map(drop),
        _ => changes.refuse(id, by).await.map(drop),
    }
}

/// The reason why the work of a run is no change.
#[derive(Debug, Error)]
pub(crate) enum NoChange {
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// Proposes the outcome of a run, once.
pub(crate) async fn propose(
    settings: &Settings,
    worktrees: &Worktrees,
    run: &Run,
    last: &Worktree,
) -> Result<Option<Change>, NoChange> {
    let changes = Changes::open(&settings.project, &settings.state)?;
    if changes.list()?.iter().any(|change| change.author.run == Some(run.id)) {
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
