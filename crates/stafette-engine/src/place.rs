//! The folder a turn works in: the project itself, or a worktree of the agent, brought to the state
//! of the agent that handed the work over.

use std::path::PathBuf;
use std::sync::Arc;

use stafette_core::change::{Change, ChangeRules};
use stafette_core::{AgentName, Party, Run, RunId, State, TurnOrder};
use stafette_workspace::{Base, Worktree, WorktreeError, Worktrees};
use tokio::sync::{Mutex, OnceCell};

use crate::changes::NoChange;
use crate::engine::Settings;
use crate::{changes, garbage};

/// The working folders of one project.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    settings: Arc<Settings>,
    worktrees: Arc<OnceCell<Worktrees>>,
    /// Held while worktrees are cleared away.
    clearing: Arc<Mutex<()>>,
}

impl Places {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Places { settings, worktrees: Arc::default(), clearing: Arc::default() }
    }

    /// Returns the worktree for a turn, with the work in it: what was handed over, or the change that is
    /// to be revised. Asking again after a crash gives the same one.
    pub(crate) async fn prepare(&self, order: &TurnOrder) -> Result<Worktree, NoChange> {
        let worktrees = self.worktrees().await?;
        let run = order.key.run;
        let giver = giver(order).and_then(|agent| worktrees.get(run, &agent));
        let base = giver.clone().map_or(Base::AsItIs, Base::Of);
        let own = worktrees.open(run, &order.agent, &base).await?;
        // Only once for each turn: what the agent has done in it since must not be rolled back.
        let done = self.settings.scratch.join(format!(
            "{run}-{}-{}.{}.placed",
            order.key.handoff, order.key.attempt, order.key.turn
        ));
        if let Some(giver) = giver.filter(|giver| giver.agent != own.agent && !done.exists()) {
            worktrees.advance(&giver, &own).await?;
        }
        // Without the note the work is brought over once more, which is harmless until the turn
        // begins.
        let _ = stafette_disk::write(&done, "");
        if let Some(change) = order.revises() {
            // Only once: a later attempt continues with what an earlier one has left.
            let done = self.settings.scratch.join(format!("{run}-{}.revises", order.key.handoff));
            if !done.exists() {
                changes::bring_in(&self.settings, worktrees, &own, change).await?;
                let _ = stafette_disk::write(&done, "");
            }
        } else if !matches!(order.offer.from, Party::Agent(_)) {
            worktrees.end_revision(&own).await?;
        }
        Ok(own)
    }

    /// Called when an agent has finished a turn: proposes the change that is revised in its worktree,
    /// as it has left it there. Returns `None` if none is, or it left it as it was.
    pub(crate) async fn revised(
        &self,
        order: &TurnOrder,
        rules: &ChangeRules,
    ) -> Result<Option<Change>, NoChange> {
        let worktrees = self.worktrees().await?;
        let Some(own) = worktrees.get(order.key.run, &order.agent) else { return Ok(None) };
        changes::revise(&self.settings, worktrees, &own, rules, Some(order.key.handoff)).await
    }

    /// Called when an agent has finished a turn: its commits become visible in the repository.
    /// Errors are only logged, since the next one that needs them tries again.
    pub(crate) async fn collect(&self, order: &TurnOrder) {
        let Ok(worktrees) = self.worktrees().await else { return };
        let Some(own) = worktrees.get(order.key.run, &order.agent) else { return };
        if let Err(error) = worktrees.collect(&own).await {
            tracing::warn!(run = %order.key.run, %error, "an agent's commits stay in its worktree");
        }
    }

    /// Called when the run has ended: leaves the outcome on a branch and removes the worktrees,
    /// each saved. The branch is also proposed as a change, or as the revision of the one that the run
    /// was to revise.
    ///
    /// # Errors
    /// When it is to be tried again. Work that cannot be on a branch or in a change is only logged.
    pub(crate) async fn leave(&self, run: &Run) -> Result<(), NoChange> {
        if !run.workflow.workflow.worktrees {
            return Ok(());
        }
        let worktrees = match self.worktrees().await {
            Err(WorktreeError::NoRepository { .. }) => return Ok(()),
            worktrees => worktrees?,
        };
        let last = last_at_work(run).and_then(|agent| worktrees.get(run.id, &agent));
        if let Some(last) = &last
            && let Err(error) = worktrees.land(last, &Worktrees::result_branch(run.id)).await
        {
            if error.may_pass() {
                return Err(error.into());
            }
            tracing::error!(run = %run.id, %error, "the result has no branch; its worktree stays");
            return Ok(());
        }
        if let Some(last) = &last {
            let (settings, rules) = (&self.settings, run.workflow.change_rules());
            let revised = changes::revise(settings, worktrees, last, &rules, None).await;
            unless_it_may_pass(run.id, revised)?;
            // What cannot be a revision any more, since the change was applied, is a change of its own.
            let proposed = changes::propose(settings, worktrees, run, last).await;
            unless_it_may_pass(run.id, proposed)?;
        }
        let all: Vec<Worktree> =
            run.workflow.agents.keys().filter_map(|agent| worktrees.get(run.id, agent)).collect();
        for worktree in all {
            if let Err(error) = worktrees.close(&worktree, "the run is over").await {
                tracing::warn!(run = %run.id, %error, "a worktree stays");
            }
        }
        Ok(())
    }

    /// Returns the folder with what an agent has edited and nobody has taken over yet, if there is any.
    pub(crate) async fn edited(&self, order: &TurnOrder) -> Option<PathBuf> {
        let worktrees = self.worktrees().await.ok()?;
        let own = worktrees.get(order.key.run, &order.agent)?;
        worktrees.is_edited(&own).await.ok()?.then_some(own.folder)
    }

    /// Clears away the worktrees of runs that have ended, unless another process is doing so.
    /// Errors are only logged.
    pub(crate) async fn clear(&self, is_living: impl Fn(RunId) -> bool) {
        let home = garbage::home(&self.settings.state);
        let Ok(_alone) = self.clearing.try_lock() else { return };
        if !home.is_dir() {
            return;
        }
        let cleared = match self.worktrees().await {
            Ok(worktrees) => garbage::collect(worktrees, is_living).await,
            Err(error) => Err(error),
        };
        match cleared {
            Ok(cleared) if cleared.worktrees + cleared.snapshots > 0 => {
                tracing::info!(?cleared, "what was over is cleared away");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "what is over stays"),
        }
    }

    /// The diff of a run's outcome; `None` when it left none, or none can be read.
    pub(crate) async fn diff(&self, run: RunId) -> Option<String> {
        self.worktrees().await.ok()?.result_diff(run).await.ok()?
    }

    async fn worktrees(&self) -> Result<&Worktrees, WorktreeError> {
        let home = garbage::home(&self.settings.state);
        self.worktrees.get_or_try_init(|| Worktrees::new(&self.settings.project, &home)).await
    }
}

/// Logs why the work of a run is no change, unless trying again may help. Its branch has the work in any
/// case.
fn unless_it_may_pass(
    run: RunId,
    proposed: Result<Option<Change>, NoChange>,
) -> Result<(), NoChange> {
    match proposed {
        Err(error) if error.may_pass() => Err(error),
        Err(error) => {
            tracing::warn!(%run, %error, "the result is no change, only a branch");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// The agent whose work a turn continues with: the giver at first, and later the agent that
/// answered last.
fn giver(order: &TurnOrder) -> Option<AgentName> {
    let answered = order.answers.last().map(|answer| &answer.by);
    let party = answered.unwrap_or(&order.offer.from);
    match party {
        Party::Agent(name) => name.parse().ok(),
        Party::Orchestrator | Party::Human => None,
    }
}

fn last_at_work(run: &Run) -> Option<AgentName> {
    let closed =
        run.handoffs.values().filter_map(|handoff| match (&handoff.state, &handoff.offer.to) {
            (State::Closed(closing), Party::Agent(name)) if handoff.turn > 0 => {
                Some((closing.at, handoff.id, name))
            }
            _ => None,
        });
    closed.max_by_key(|(at, id, _)| (*at, *id)).and_then(|(_, _, name)| name.parse().ok())
}
