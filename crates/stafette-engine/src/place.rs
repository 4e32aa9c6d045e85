//! The folder a turn works in: the project itself, or a worktree of the agent, brought to the state
//! of the agent that handed the work over.

use std::path::PathBuf;
use std::sync::Arc;

use stafette_core::change::{Change, ChangeRules};
use stafette_core::team::order::{LeftFile, Leftover};
use stafette_core::{AgentName, Party, Run, RunId, State, TurnOrder};
use stafette_workspace::changes::LeftOut;
use stafette_workspace::{Base, Worktree, WorktreeError, Worktrees};
use tokio::sync::{Mutex, OnceCell};

use crate::changes::NoChange;
use crate::engine::Settings;
use crate::{changes, garbage};

/// The most that is read of a note about what is in no change, in bytes.
const LEFT_BYTES: u64 = 4 * 1024 * 1024;

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
    /// was to revise. Returns what is in no change, and where it is.
    ///
    /// # Errors
    /// When it is to be tried again.
    pub(crate) async fn leave(&self, run: &Run) -> Result<Option<Leftover>, NoChange> {
        if !run.workflow.workflow.worktrees {
            return Ok(None);
        }
        let worktrees = match self.worktrees().await {
            Err(WorktreeError::NoRepository { .. }) => return Ok(None),
            worktrees => worktrees?,
        };
        let agent = last_at_work(run);
        let Some(last) = agent.and_then(|agent| worktrees.get(run.id, &agent)) else {
            // A process that could not record it any more has closed them.
            self.close_all(worktrees, run).await;
            return Ok(self.left(run.id));
        };
        let mut left = Leftover::default();
        match worktrees.land(&last, &Worktrees::result_branch(run.id)).await {
            Ok(landed) => left.branch = Some(landed.branch),
            Err(error) if error.may_pass() => return Err(error.into()),
            Err(error) => {
                tracing::error!(run = %run.id, %error, "the result has no branch; its worktree stays");
                left.why = error.to_string();
                left.folder = Some(last.path.display().to_string());
                return Ok(Some(left));
            }
        }
        let (settings, rules) = (&self.settings, run.workflow.change_rules());
        match changes::revise(settings, worktrees, &last, &rules, None).await {
            Err(error) if error.may_pass() => return Err(error),
            // What cannot be a revision any more, since the change was applied, is a change of its own.
            Err(error) => tracing::warn!(run = %run.id, %error, "the result is no revision"),
            Ok(_) => {}
        }
        match changes::propose(settings, worktrees, run, &last).await {
            Err(error) if error.may_pass() => return Err(error),
            Err(error) => left.why = error.to_string(),
            Ok(files) => {
                left.add(files.into_iter().map(|LeftOut { file, why }| LeftFile { file, why }));
            }
        }
        if !left.is_empty() {
            self.keep_left(run.id, &left)?;
        }
        let stays = self.close_all(worktrees, run).await;
        // Its branch has no files of repositories in it.
        left.folder = stays.contains(&last.agent).then(|| last.path.display().to_string());
        Ok((!left.is_empty()).then_some(left))
    }

    /// Removes the worktrees of a run, each saved. Returns the agents of those that stay.
    async fn close_all(&self, worktrees: &Worktrees, run: &Run) -> Vec<AgentName> {
        let agents = run.workflow.agents.keys();
        let all: Vec<Worktree> = agents.filter_map(|agent| worktrees.get(run.id, agent)).collect();
        let mut stay = Vec::new();
        for worktree in all {
            if let Err(error) = worktrees.close(&worktree, "the run is over").await {
                tracing::warn!(run = %run.id, %error, "a worktree stays");
                stay.push(worktree.agent);
            }
        }
        stay
    }

    /// Notes what is in no change, before the worktrees go in which it was found.
    fn keep_left(&self, run: RunId, left: &Leftover) -> Result<(), WorktreeError> {
        let path = self.left_note(run);
        let text = serde_json::to_string(left).unwrap_or_default();
        stafette_disk::write(&path, text).map_err(|source| WorktreeError::Files {
            what: "write",
            path,
            source,
        })
    }

    fn left(&self, run: RunId) -> Option<Leftover> {
        let text = stafette_disk::read_text(&self.left_note(run), LEFT_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn left_note(&self, run: RunId) -> PathBuf {
        self.settings.scratch.join(format!("{run}.left"))
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
