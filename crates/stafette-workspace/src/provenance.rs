//! Whether a file came with the repository.

use std::path::Path;

use crate::git::{Git, GitError};

/// Where a file of a project comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provenance {
    /// Git does not know it: a program or a person has put it there.
    Untracked,
    /// Git tracks it, or something in it.
    Tracked,
    /// Git is writing files at the moment, and knows better later.
    Busy,
}

/// Returns where `name` in `folder` comes from; without a repository, nothing is tracked.
///
/// # Errors
/// When git cannot say.
pub async fn provenance(folder: &Path, name: &str) -> Result<Provenance, GitError> {
    let is_repository = |folder: &Path| folder.join(".git").symlink_metadata().is_ok();
    if !folder.ancestors().any(is_repository) {
        return Ok(Provenance::Untracked);
    }
    // First the lock: git holds it while it writes files, and lists them before it lets go.
    let ask = ["rev-parse", "--path-format=absolute", "--git-path", "index.lock"];
    let locks = Git::new(folder, ask).paths().await?;
    if locks.iter().any(|lock| lock.symlink_metadata().is_ok()) {
        return Ok(Provenance::Busy);
    }
    let listed = Git::new(folder, ["ls-files", "-z", "--", name]).literally().bytes().await?;
    Ok(if listed.is_empty() { Provenance::Untracked } else { Provenance::Tracked })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn git(folder: &Path, arguments: &[&str]) {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@t"])
            .args(arguments)
            .current_dir(folder)
            .output();
        assert!(done.expect("git").status.success(), "{arguments:?}");
    }

    #[tokio::test]
    async fn b_20_what_git_has_brought_is_told_from_what_was_put_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("in*side");
        fs::create_dir(&inner).expect("a folder");
        let of = async |name: &str| provenance(&inner, name).await.expect("an answer");
        for name in ["came", "own", "*"] {
            fs::write(inner.join(name), "x").expect("written");
        }
        assert_eq!(of("came").await, Provenance::Untracked, "there is no repository");
        git(folder.path(), &["init", "-q"]);
        git(folder.path(), &["add", "in*side/came"]);
        assert_eq!(of("came").await, Provenance::Tracked);
        assert_eq!(
            (of("own").await, of("*").await),
            (Provenance::Untracked, Provenance::Untracked)
        );
        let whole = provenance(folder.path(), "in*side").await.expect("an answer");
        assert_eq!(whole, Provenance::Tracked, "something in it is");
        fs::write(folder.path().join(".git/index.lock"), "").expect("written");
        assert_eq!(of("own").await, Provenance::Busy);
        fs::remove_dir_all(folder.path().join(".git")).expect("removed");
        fs::create_dir(folder.path().join(".git")).expect("a folder");
        assert!(provenance(&inner, "own").await.is_err(), "git cannot say");
    }
}
