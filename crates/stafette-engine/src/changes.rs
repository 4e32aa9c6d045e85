//! Changes of the project's own files, for those who propose, allow, apply and undo them.

use std::path::{Path, PathBuf};

use stafette_agents::tell;
use stafette_core::Run;
use stafette_core::change::{Author, Change};
use stafette_workspace::{ChangeError, Changes, Worktree, WorktreeError, Worktrees};
use thiserror::Error;

use crate::Engine;

/// Where changes are kept.
fn home(project: &Path) -> PathBuf {
    project.join(".stafette")
}

impl Engine {
    /// Does something with the project's changes. It is done to the end, whoever goes away
    /// meanwhile, and on a thread of its own: it waits for disks.
    ///
    /// # Errors
    /// Those of the work, and that the changes cannot be opened.
    pub async fn changes<T, F>(
        &self,
        work: impl FnOnce(Changes) -> F + Send + 'static,
    ) -> Result<T, ChangeError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ChangeError>>,
    {
        let project = self.settings().project.clone();
        let runtime = tokio::runtime::Handle::current();
        let work = tokio::task::spawn_blocking(move || {
            let changes = Changes::open(&project, &home(&project))?;
            runtime.block_on(work(changes))
        });
        work.await.unwrap_or(Err(ChangeError::Busy))
    }

    /// The agent that a process belongs to, and what it works on, if it does.
    #[must_use]
    pub fn agent_of(&self, process: i32) -> Option<Author> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let scratch = &self.settings().scratch;
        self.living().iter().find_map(|run| {
            let mut orders = run.outbox();
            let order =
                orders.find(|order| tell::belongs(process, scratch, order.key, &order.agent))?;
            Some(Author {
                run: Some(order.key.run),
                agent: Some(order.agent.clone()),
                handoff: Some(order.key.handoff),
                person: String::new(),
            })
        })
    }
}

/// Why the work of a run is no change.
#[derive(Debug, Error)]
pub(crate) enum NoChange {
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// Proposes what came of a run, once.
pub(crate) async fn propose(
    project: &Path,
    worktrees: &Worktrees,
    run: &Run,
    last: &Worktree,
) -> Result<Option<Change>, NoChange> {
    let changes = Changes::open(project, &home(project))?;
    if changes.list()?.iter().any(|change| change.author.run == Some(run.id)) {
        return Ok(None);
    }
    let drafts = worktrees.difference(last).await?;
    if drafts.is_empty() {
        return Ok(None);
    }
    let author = Author { run: Some(run.id), agent: Some(last.agent.clone()), ..Author::default() };
    let reason = run.request.chars().take(2_000).collect();
    Ok(Some(changes.draft(drafts, author, reason, &run.workflow.changes).await?))
}
