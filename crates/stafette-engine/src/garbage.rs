//! Clears away the worktrees of runs that have ended, within a quota: when the engine opens, after
//! a run has ended, and when a person asks for it. Each is saved before it is removed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use stafette_core::RunId;
use stafette_workspace::worktree::{Collected, Quota};
use stafette_workspace::{WorktreeError, Worktrees};

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
