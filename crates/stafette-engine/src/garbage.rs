//! Clears away the worktrees of runs that have ended, within a quota: when the engine opens, after
//! a run has ended, and when a person asks for it. Each is saved before it is removed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use stafette_core::RunId;
use stafette_core::change::{Change, ChangeStatus};
use stafette_workspace::changes::Draft;
use stafette_workspace::worktree::{Collected, Quota, Tidied};
use stafette_workspace::{Changes, WorktreeError, Worktrees};

/// The environment variable with the quota for worktrees, in bytes.
pub const VARIABLE: &str = "STAFETTE_WORKTREES_MAX_BYTES";

/// The quota for worktrees when the variable is not set, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// The time for which worktrees and snapshots of a run that has ended are kept.
const MAX_AGE: Duration = Duration::from_secs(14 * 24 * 3600);

/// The result of clearing away.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Cleared {
    /// The number of worktrees that were removed.
    pub worktrees: usize,
    /// The number of branches that were removed because other branches hold the same commits.
    pub branches: usize,
    /// The number of snapshots that were removed.
    pub snapshots: usize,
    /// The number of bytes that were freed.
    pub freed: u64,
    /// The number of bytes that worktrees still take up.
    pub used: u64,
    /// Items that should have been removed but stay, each with the reason.
    pub kept: Vec<String>,
}

impl From<Collected> for Cleared {
    fn from(collected: Collected) -> Self {
        let Collected { worktrees, branches, snapshots, freed, used, kept } = collected;
        let kept = kept.iter().map(|kept| format!("{}: {}", kept.path.display(), kept.why));
        Cleared {
            worktrees: worktrees.len(),
            branches: branches.len(),
            snapshots: snapshots.len(),
            freed,
            used,
            kept: kept.collect(),
        }
    }
}

/// Clears away what is left of runs that have ended; does nothing in a project that never had
/// worktrees. `state` is the folder of its state.
///
/// # Errors
/// When the worktrees cannot be read.
pub async fn clear(
    project: &Path,
    state: &Path,
    is_living: impl Fn(RunId) -> bool,
) -> Result<Option<Cleared>, WorktreeError> {
    let home = home(state);
    if !home.is_dir() {
        return Ok(None);
    }
    let worktrees = Worktrees::new(project, &home).await?;
    collect(&worktrees, is_living).await.map(Some)
}

/// Removes the branches and refs of runs that are gone, as far as what they hold is in another branch,
/// or in changes that are applied, rejected or undone; `is_gone` gets the short form of a run's id.
///
/// # Errors
/// When git cannot be asked.
pub async fn tidy(
    project: &Path,
    state: &Path,
    is_gone: impl Fn(&str) -> bool,
) -> Result<Tidied, WorktreeError> {
    let home = home(state);
    if !home.is_dir() {
        return Ok(Tidied::default());
    }
    let worktrees = Worktrees::new(project, &home).await?;
    let opened = Changes::open(project, state).and_then(|changes| Ok((changes.list()?, changes)));
    let (known, changes) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            tracing::warn!(%error, "branches and refs of runs stay");
            return Ok(Tidied::default());
        }
    };
    let are_settled = |run: &str, drafts: &[Draft]| {
        let is_of = |change: &&Change| {
            [change.author.run, change.run()].into_iter().flatten().any(|it| it.short() == run)
        };
        let own: Vec<&Change> = known.iter().filter(is_of).collect();
        let is_settled = |change: &&Change| {
            change.status.is_in()
                || matches!(change.status, ChangeStatus::Refused | ChangeStatus::Undone)
        };
        let is_known = |draft| own.iter().any(|change| changes.has(change, draft));
        own.iter().all(is_settled) && drafts.iter().all(is_known)
    };
    worktrees.tidy(is_gone, are_settled).await
}

/// Tells git where the worktrees are, after the state was moved; does nothing where there are none.
///
/// # Errors
/// When git does not find them.
pub async fn repair(project: &Path, state: &Path) -> Result<(), WorktreeError> {
    let home = home(state);
    if !home.is_dir() {
        return Ok(());
    }
    Worktrees::new(project, &home).await?.repair().await
}

pub(crate) async fn collect(
    worktrees: &Worktrees,
    is_living: impl Fn(RunId) -> bool,
) -> Result<Cleared, WorktreeError> {
    let said = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    let quota = Quota { max_bytes: said.unwrap_or(MAX_BYTES), max_age: MAX_AGE, keep: 0 };
    Ok(worktrees.gc(&quota, is_living, SystemTime::now()).await?.into())
}

/// The folder of a project's worktrees, in the folder of its state.
pub(crate) fn home(state: &Path) -> PathBuf {
    state.join("worktrees")
}
