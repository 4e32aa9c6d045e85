//! Worktrees of runs that are over are cleared away within a quota: when the engine opens, after a
//! run has ended, and when a person asks for it. Each is saved before it goes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use stafette_core::RunId;
use stafette_workspace::worktree::{Collected, Quota};
use stafette_workspace::{WorktreeError, Worktrees};

/// The variable that says how many bytes worktrees may take up.
pub const VARIABLE: &str = "STAFETTE_WORKTREES_MAX_BYTES";

/// How many bytes worktrees may take up when nobody has said so.
const MAX_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// How long worktrees and snapshots of a run that is over stay.
const MAX_AGE: Duration = Duration::from_secs(14 * 24 * 3600);

/// What was cleared away.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Cleared {
    /// Worktrees that are gone.
    pub worktrees: usize,
    /// Branches that are gone, since others hold all that they held.
    pub branches: usize,
    /// Snapshots that are gone.
    pub snapshots: usize,
    /// Bytes that came free.
    pub freed: u64,
    /// Bytes that worktrees still take up.
    pub used: u64,
    /// What stays though it should not, each with the reason.
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

/// Clears away what is over in a project; nothing when it has never had worktrees.
///
/// # Errors
/// When the worktrees cannot be looked at.
pub async fn clear(
    project: &Path,
    is_living: impl Fn(RunId) -> bool,
) -> Result<Option<Cleared>, WorktreeError> {
    let home = home(project);
    if !home.is_dir() {
        return Ok(None);
    }
    let worktrees = Worktrees::new(project, &home).await?;
    collect(&worktrees, is_living).await.map(Some)
}

pub(crate) async fn collect(
    worktrees: &Worktrees,
    is_living: impl Fn(RunId) -> bool,
) -> Result<Cleared, WorktreeError> {
    let said = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    let quota = Quota { max_bytes: said.unwrap_or(MAX_BYTES), max_age: MAX_AGE, keep: 0 };
    Ok(worktrees.gc(&quota, is_living, SystemTime::now()).await?.into())
}

/// Where the worktrees of a project are.
pub(crate) fn home(project: &Path) -> PathBuf {
    project.join(".stafette/worktrees")
}
