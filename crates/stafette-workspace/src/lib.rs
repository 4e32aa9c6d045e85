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
pub use git::GitError;
pub use provenance::{Provenance, provenance};
pub use renewal::{Renewal, RenewalError, Renewals, Stage};
pub use worktree::{Base, Worktree, WorktreeError, Worktrees};

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Git answers quickly or something is wrong with it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a fingerprint of the work in `folder`: the same text as long as no file differs,
/// uncommitted files included. `None` where there is no git repository.
pub async fn fingerprint(folder: &Path) -> Option<String> {
    // A separate index and separate objects: looking leaves nothing in the user's repository.
    let scratch = tempfile::tempdir().ok()?;
    let known = ask(folder, scratch.path(), None, &["rev-parse", "--git-path", "objects"]).await?;
    std::fs::create_dir(scratch.path().join("objects")).ok()?;
    let known = Some(folder.join(known));
    let known = known.as_deref();
    ask(folder, scratch.path(), known, &["read-tree", "--empty"]).await?;
    ask(folder, scratch.path(), known, &["add", "--all", "--", ".", ":(exclude).stafette"]).await?;
    ask(folder, scratch.path(), known, &["write-tree"]).await
}

/// Asks git with an index of its own in `scratch`. Objects that the repository has not got go there as
/// well, once it is known where the repository keeps its own.
async fn ask(
    folder: &Path,
    scratch: &Path,
    known: Option<&Path>,
    arguments: &[&str],
) -> Option<String> {
    let own = known.map(|known| {
        let objects = scratch.join("objects");
        [("GIT_OBJECT_DIRECTORY", objects), ("GIT_ALTERNATE_OBJECT_DIRECTORIES", known.to_owned())]
    });
    let output = Command::new("git")
        // Reading starts nothing that an agent may have configured.
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_INDEX_FILE", scratch.join("index"))
        .envs(own.into_iter().flatten())
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, output).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
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
        let init = Command::new("git").args(["init", "-q"]).current_dir(path).status().await;
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
