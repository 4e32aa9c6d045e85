//! Whether a file came with the repository.

use std::path::Path;

use crate::git::{GitError, Neutral, Place};

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

/// Returns where `name` in `folder` comes from; without a repository, nothing is tracked. The
/// repository need not be trusted: its index is read, and none of its settings.
pub async fn provenance(folder: &Path, name: &str) -> Result<Provenance, GitError> {
    let Some((place, inner)) = Place::find(folder)? else { return Ok(Provenance::Untracked) };
    // First the lock: git holds it while it writes files, and lists them before it lets go.
    if place.own.join("index.lock").symlink_metadata().is_ok() {
        return Ok(Provenance::Busy);
    }
    let index = place.own.join("index");
    if index.symlink_metadata().is_err() {
        return Ok(Provenance::Untracked);
    }
    let unfit = |why: String| GitError::NoRepository { path: index.clone(), why };
    if !stafette_disk::is_regular(&index) {
        return Err(unfit("it is no plain file".to_owned()));
    }
    let neutral = Neutral::of(&place).map_err(|error| unfit(error.to_string()))?;
    let folder = place.tree.as_deref().unwrap_or(folder).join(inner);
    let ask = neutral.git(&folder, ["ls-files", "-z", "--", name]).index(&index);
    let listed = ask.literally().bytes().await?;
    Ok(if listed.is_empty() { Provenance::Untracked } else { Provenance::Tracked })
}

/// As [`provenance`], for callers that are not asynchronous; they wait for it.
pub fn provenance_now(folder: &Path, name: &str) -> Result<Provenance, GitError> {
    let failed = |source| GitError::NotStarted { command: "git ls-files".to_owned(), source };
    // A thread of its own, since the caller's may belong to a runtime.
    std::thread::scope(|scope| {
        let ask = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(failed)?.block_on(provenance(folder, name))
        });
        ask.join().unwrap_or_else(|_| Err(failed(std::io::Error::other("it panicked"))))
    })
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
        assert_eq!(of("own").await, Provenance::Untracked, "nothing is in it");
        fs::create_dir(folder.path().join(".git/objects")).expect("a folder");
        assert!(provenance(&inner, "own").await.is_err(), "git cannot say");
    }
}
