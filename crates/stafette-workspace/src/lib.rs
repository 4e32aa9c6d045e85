//! The folders that agents work in: a worktree for each, and a fingerprint of the work in it. Also
//! changes of the user's own checkout, as sets that are applied whole or not at all.
//!
//! Invariants:
//! - Reading changes nothing: not the index, not the files, not the history.
//! - Nothing is removed or overwritten before it is saved, and nothing outside of the worktrees'
//!   folder is removed at all.
//! - Git gets every path explicitly; nothing that an agent can write redirects it or makes it start
//!   a program.

pub mod changes;
mod git;
mod provenance;
mod removal;
mod renewal;
pub mod worktree;

pub use changes::{ChangeError, Changes};
pub use git::{GitError, Repository, run_git};
pub use provenance::{Provenance, provenance, provenance_now};
pub use removal::remove_folder;
pub use renewal::{Renewal, RenewalError, Renewals, Stage};
pub use worktree::{Base, Revision, Worktree, WorktreeError, Worktrees};

use std::path::Path;
use std::time::Duration;

use crate::git::{Neutral, Place};

/// The time for a fingerprint: a round of a loop does not wait longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a fingerprint of the work in `folder`: the same text as long as no file differs,
/// uncommitted files included. `None` where there is no git repository.
pub async fn fingerprint(folder: &Path) -> Option<String> {
    tokio::time::timeout(PATIENCE, look(folder)).await.ok()?
}

async fn look(folder: &Path) -> Option<String> {
    // A separate index and separate objects: looking leaves nothing in the user's repository. And
    // separate settings: an agent that works there can have written the others.
    let (place, inner) = Place::find(folder).ok()??;
    let neutral = Neutral::of(&place).ok()?;
    let folder = place.tree?.join(inner);
    let add = ["add", "--all", "--", ".", ":(exclude).stafette"];
    neutral.git(&folder, add).run().await.ok()?;
    neutral.git(&folder, ["write-tree"]).text().await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn b_03_the_fingerprint_changes_with_the_files_and_with_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        assert_eq!(fingerprint(path).await, None);
        let init = tokio::process::Command::new("git")
            .args(["init", "-q"])
            .current_dir(path)
            .status()
            .await;
        assert!(init.expect("git").success());
        fs::write(path.join("a"), "1").expect("written");
        let first = fingerprint(path).await;
        assert!(first.is_some());
        assert_eq!(fingerprint(path).await, first);
        fs::create_dir(path.join(".stafette")).expect("a folder");
        fs::write(path.join(".stafette/store"), "x").expect("written");
        assert_eq!(fingerprint(path).await, first, "our own files are not the work");
        fs::write(path.join("a"), "2").expect("written");
        assert_ne!(fingerprint(path).await, first);
        assert!(!path.join(".git/index").exists(), "looking changes nothing");
        let kept = |entry: fs::DirEntry| entry.file_name().len() == 2;
        let objects = fs::read_dir(path.join(".git/objects")).expect("git's objects");
        assert!(!objects.map(|entry| entry.expect("an entry")).any(kept), "nor leaves anything");
    }
}
