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

use std::sync::Arc;

use stafette_agents::end_left_behind;
use stafette_core::change::{Author, Change, ChangeId, ChangeRules, ChangeStatus, Proposal};
use stafette_core::redact::Redact;
use stafette_core::team::change::{is_asked_about, is_being_revised};
use stafette_core::{HandoffId, Run, TurnOrder};
use stafette_workspace::changes::{LeftOut, mark};
use stafette_workspace::{ChangeError, Changes, Worktree, WorktreeError, Worktrees};
use thiserror::Error;

use crate::engine::Settings;
use crate::orders::begins_next;
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

    /// Returns the changes that wait for a person to approve, apply or reject them, oldest first. Left
    /// out are those that a question is about, that an agent is revising, and that the team's next
    /// generation applies.
    ///
    /// # Errors
    /// When the changes cannot be read.
    pub async fn waiting(self) -> Result<Vec<Change>, EngineError> {
        let mut changes = self.list().await?;
        changes.retain(|it| matches!(it.status, ChangeStatus::Pending | ChangeStatus::Approved));
        let living = self.engine.living();
        let has = |run: &Run, change: &Change| {
            change.is_of(run.id)
                && (is_being_revised(run, change.id) || is_asked_about(run, change.id))
        };
        let applies = |run: &Run, change: &Change| {
            let goes_on = !run.status().is_final() || begins_next(run);
            let lineage = run.team.lineage.as_ref().filter(|_| goes_on);
            let past = lineage.iter().flat_map(|lineage| &lineage.past).filter_map(|it| it.run);
            lineage.is_some() && past.chain([run.id]).any(|run| change.is_of(run))
        };
        changes.retain(|change| {
            let applies = |run: &Arc<Run>| !change.waits_for_person() && applies(run, change);
            !living.iter().any(|run| has(run, change) || applies(run))
        });
        Ok(changes)
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

/// Brings a set into the worktree of the agent that is to revise it.
pub(crate) async fn bring_in(
    settings: &Settings,
    worktrees: &Worktrees,
    own: &Worktree,
    id: ChangeId,
) -> Result<(), NoChange> {
    let read = async move |changes: Changes| {
        let change = changes.get(id)?;
        let files = changes.files(&change)?;
        Ok((change, files))
    };
    let (change, files) = with(settings, read).await?;
    Ok(worktrees.bring_in(own, id, change.revision, &files).await?)
}

/// Proposes the set that is revised in a worktree as its agent has left it; `None` if it has not
/// touched anything. The agent must be idle.
pub(crate) async fn revise(
    settings: &Settings,
    worktrees: &Worktrees,
    own: &Worktree,
    rules: &ChangeRules,
    handoff: Option<HandoffId>,
) -> Result<Option<Change>, NoChange> {
    let Some(revision) = worktrees.revision(own).await? else { return Ok(None) };
    let id = revision.change;
    let known = with(settings, async move |changes| changes.get(id)).await?;
    if known.revision > revision.number {
        // The agent has handed it in, and the files are to agree with that.
        return bring_in(settings, worktrees, own, id).await.map(|()| None);
    }
    let Some(drafts) = worktrees.revised(own, &revision).await? else { return Ok(None) };
    let (run, agent, person) = (Some(own.run), Some(own.agent.clone()), String::new());
    let (author, rules) = (Author { run, agent, handoff, person }, rules.clone());
    let revise = async move |changes: Changes| {
        let (drafts, _) = changes.fitting(drafts, &rules).await?;
        changes.revise(id, drafts, author, &rules).await
    };
    let change = with(settings, revise).await?;
    worktrees.proposed(own, &revision, &change).await?;
    Ok(Some(change))
}

/// Proposes the outcome of a run, once: what it leaves in its last worktree, and none of its sets has.
/// Returns what cannot be in a set.
pub(crate) async fn propose(
    settings: &Settings,
    worktrees: &Worktrees,
    run: &Run,
    last: &Worktree,
) -> Result<Vec<LeftOut>, NoChange> {
    let changes = Changes::open(&settings.project, &settings.state)?;
    let mut known = readable(&changes)?;
    known.retain(|change| change.is_of(run.id));
    let (mut drafts, mut left) = worktrees.difference(last).await?;
    drafts.retain(|draft| !known.iter().any(|change| changes.has(change, draft)));
    let files: Vec<String> = drafts.iter().map(|draft| draft.file.clone()).collect();
    let propose = async {
        let rules = run.workflow.change_rules();
        let (drafts, odd) = changes.fitting(drafts, &rules).await?;
        if !drafts.is_empty() {
            let author =
                Author { run: Some(run.id), agent: Some(last.agent.clone()), ..Author::default() };
            let reason = run.request.chars().take(2_000).collect();
            changes.draft(drafts, author, reason, &rules).await?;
        }
        Ok::<_, ChangeError>(odd)
    };
    match propose.await {
        Ok(odd) => left.extend(odd),
        Err(error) if error.may_pass() => return Err(error.into()),
        Err(error) => {
            let why = error.to_string();
            left.extend(files.into_iter().map(|file| LeftOut { file, why: why.clone() }));
        }
    }
    Ok(left)
}
