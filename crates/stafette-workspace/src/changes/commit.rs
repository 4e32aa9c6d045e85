//! The commits of a change: the touched files before and after.
//!
//! They are made beside the user's branch and index. The branch moves once it is decided that the
//! change stays, and only if nothing else has moved it; what the user has staged stays staged.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stafette_core::change::FilePath;

use super::ChangeError;
use crate::git::{Git, GitError, Place};

/// Files whose presence means that a git operation is in progress.
const UNDER_WAY: [&str; 5] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"];

/// A move of the branch from one commit to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Move {
    from: String,
    pub(super) to: String,
    paths: Vec<String>,
}

/// The commits of a change while it is applied.
#[derive(Debug)]
pub(super) struct Commits {
    place: Place,
    scratch: tempfile::TempDir,
    head: String,
    /// The parent of the change's own commit: the branch, or the touched files as they were.
    ground: String,
    paths: Vec<String>,
    /// What the user should know once the branch has moved.
    pub(super) notes: Vec<String>,
}

impl Commits {
    /// Captures the touched files as they are. The error is the reason why it cannot be done; no
    /// change fails because of it.
    pub(super) async fn begin(
        project: &Path,
        files: &[FilePath],
        what: &str,
    ) -> Result<Commits, String> {
        let (place, prefix) = find(project).await?;
        if UNDER_WAY.iter().any(|name| place.own.join(name).exists()) {
            return Err("not committed: git is in the middle of something".to_owned());
        }
        let said = |error: GitError| format!("not committed: {error}");
        let ask = place.git(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]);
        let Some(head) = ask.answer().await.map_err(said)? else {
            return Err("not committed: the repository has no commit yet".to_owned());
        };
        let scratch = tempfile::tempdir().map_err(|error| format!("not committed: {error}"))?;
        let all = files.iter().map(|file| format!("{prefix}{file}")).collect();
        let paths = wanted(&place, all).await.map_err(said)?;
        let branch = place.git(["symbolic-ref", "--quiet", "HEAD"]).answer().await.map_err(said)?;
        let notes = Vec::new();
        let mut commits = Commits { place, scratch, ground: head.clone(), head, paths, notes };
        let read = commits.git(["read-tree", &commits.head]).run().await;
        read.map_err(said)?;
        let message = format!("Before {what}");
        if let Some(commit) = commits.commit(&message).await.map_err(said)? {
            commits.notes.push(format!(
                "what was not committed of these files before is a commit of its own: \"{message}\", \
                 {}",
                commit.get(..8).unwrap_or(&commit)
            ));
            commits.ground = commit;
        }
        if branch.is_none() {
            commits.notes.push(
                "HEAD is on no branch, so no branch has this commit: keep it with `git switch -c \
                 NAME`"
                    .to_owned(),
            );
        }
        Ok(commits)
    }

    fn git<const N: usize>(&self, words: [&str; N]) -> Git {
        self.place.git(words).index(&self.scratch.path().join("index"))
    }

    /// Commits the touched files as they are now; `None` if that changes nothing.
    async fn commit(&self, message: &str) -> Result<Option<String>, GitError> {
        if self.paths.is_empty() {
            return Ok(None);
        }
        let list = self.paths.join("\0");
        self.git(["update-index", "--add", "--remove", "-z", "--stdin"]).input(list).run().await?;
        let tree = self.git(["write-tree"]).text().await?;
        let ground = format!("{}^{{tree}}", self.ground);
        if self.place.git(["rev-parse", "--verify", &ground]).text().await? == tree {
            return Ok(None);
        }
        let words = ["commit-tree", &tree, "-p", &self.ground, "-m", message];
        // It becomes part of the user's history, so the user is its author if git knows the name.
        match self.place.git(words).text().await {
            Ok(commit) => Ok(Some(commit)),
            Err(_) => self.place.git(words).in_our_name().text().await.map(Some),
        }
    }

    /// Captures the touched files as the change leaves them.
    pub(super) async fn finish(&mut self, message: &str) -> Result<Option<Move>, GitError> {
        let Some(to) = self.commit(message).await? else { return Ok(None) };
        Ok(Some(Move { from: self.head.clone(), to, paths: self.paths.clone() }))
    }
}

impl Move {
    /// Moves the branch, unless it was moved otherwise. Safe to repeat.
    pub(super) async fn make(&self, project: &Path) -> Result<(), String> {
        let (place, _) = find(project).await?;
        let said = |error: GitError| format!("not committed: {error}");
        let ask = place.git(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]);
        let head = ask.answer().await.map_err(said)?.unwrap_or_default();
        if head != self.to {
            // Without a word of an agent: this is for a log, and the commit says the rest.
            let words = ["update-ref", "-m", "stafette: changes", "HEAD", &self.to, &self.from];
            place.git(words).run().await.map_err(said)?;
        }
        self.follow(&place).await.map_err(|error| format!("the index stays behind: {error}"))
    }

    /// Updates the index for files that the user has not staged otherwise.
    async fn follow(&self, place: &Place) -> Result<(), GitError> {
        let tree = async |commit: &str| {
            let words = ["ls-tree", "-r", "-z", "--full-tree", commit, "--"];
            let words = words.into_iter().chain(self.paths.iter().map(String::as_str));
            place.git(words).literally().bytes().await.map(|bytes| entries(&bytes, false))
        };
        let (from, to) = (tree(&self.from).await?, tree(&self.to).await?);
        let words = ["ls-files", "-s", "-z", "--"].into_iter();
        let words = words.chain(self.paths.iter().map(String::as_str));
        let staged = entries(&place.git(words).literally().bytes().await?, true);
        let mut lines = String::new();
        for path in &self.paths {
            if staged.get(path) == from.get(path) {
                let gone = format!("0 {}", "0".repeat(40));
                let entry = to.get(path).unwrap_or(&gone);
                lines.push_str(&format!("{entry}\t{path}\0"));
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        place.git(["update-index", "-z", "--index-info"]).input(lines).run().await
    }
}

/// Returns mode and object of each path.
fn entries(bytes: &[u8], is_index: bool) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split('\0').filter_map(|line| line.split_once('\t'));
    lines
        .filter_map(|(about, path)| {
            let words: Vec<&str> = about.split(' ').collect();
            let object = if is_index { words.get(1) } else { words.get(2) };
            Some((path.to_owned(), format!("{} {}", words.first()?, object?)))
        })
        .collect()
}

/// Finds the repository of the project, and the project's path in it.
async fn find(project: &Path) -> Result<(Place, String), String> {
    let none = || "not committed: there is no git repository".to_owned();
    let (place, inner) = Place::open(project).await.ok().flatten().ok_or_else(none)?;
    let prefix = match inner.to_string_lossy() {
        inner if inner.is_empty() => String::new(),
        inner => format!("{inner}/"),
    };
    Ok((place, prefix))
}

/// Returns the paths without those that git ignores.
async fn wanted(place: &Place, mut paths: Vec<String>) -> Result<Vec<String>, GitError> {
    let ask = place.git(["check-ignore", "-z", "--stdin"]).input(paths.join("\0"));
    let ignored = ask.answer().await?.unwrap_or_default();
    let ignored: Vec<&str> = ignored.split('\0').collect();
    paths.retain(|path| !ignored.contains(&path.as_str()));
    Ok(paths)
}

impl From<GitError> for ChangeError {
    fn from(source: GitError) -> Self {
        ChangeError::Git(source)
    }
}
