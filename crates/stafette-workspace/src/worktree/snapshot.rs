//! Uncommitted work as a commit that only a ref of Stafette holds.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use stafette_core::{AgentName, RunId};

use super::{Worktree, WorktreeError, Worktrees, plain};
use crate::git::{GitError, Place};

/// The refs that hold snapshots.
pub(super) const REFS: &str = "refs/stafette/snapshots";

/// The saved content of a worktree at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotRef {
    pub name: String,
    /// The commit. The first parent is what was checked out; the second, if there is one, is what
    /// was staged and differed.
    pub commit: String,
    /// The reason why it was made.
    pub why: String,
}

/// The files of a work tree as if all were committed.
#[derive(Debug)]
pub(super) struct Content {
    /// The tree of everything that is not ignored.
    pub(super) tree: String,
    staged: String,
    /// Nested repositories, whose files are not included.
    pub(super) nested: Vec<PathBuf>,
}

impl Worktrees {
    /// Saves what is in a worktree and in no commit of its branch: changed, staged and new files
    /// that are not ignored, and commits that only its HEAD holds. Returns `None` if there is
    /// nothing to save, and the last snapshot if nothing has changed since. Neither the files nor
    /// the index are changed.
    pub async fn snapshot(
        &self,
        worktree: &Worktree,
        why: &str,
    ) -> Result<Option<SnapshotRef>, WorktreeError> {
        self.regain(worktree).await?;
        let content = self.content(&worktree.place).await?;
        self.snapshot_of(worktree, &content, why).await
    }

    pub(super) async fn snapshot_of(
        &self,
        worktree: &Worktree,
        content: &Content,
        why: &str,
    ) -> Result<Option<SnapshotRef>, WorktreeError> {
        let place = &worktree.place;
        let head = self.head(place).await?;
        let checked_out = match &head {
            Some(head) => Some(place.git(["rev-parse", &format!("{head}^{{tree}}")]).text().await?),
            None => None,
        };
        let is_staged =
            content.staged != content.tree && Some(&content.staged) != checked_out.as_ref();
        if checked_out.as_ref() == Some(&content.tree) && !is_staged {
            let branch = format!("refs/heads/{}", worktree.branch);
            let commit = head.clone().unwrap_or_default();
            let reaches = ["merge-base", "--is-ancestor", &commit, &branch];
            if matches!(place.git(reaches).answer().await, Ok(Some(_))) {
                return Ok(None);
            }
        }
        let mut words = vec!["commit-tree".to_owned(), content.tree.clone()];
        let mut parents = Vec::from_iter(head);
        if is_staged {
            let mut staging = vec![
                "commit-tree".to_owned(),
                content.staged.clone(),
                "-m".into(),
                "Staged".into(),
            ];
            staging.extend(parents.iter().flat_map(|parent| ["-p".to_owned(), parent.clone()]));
            parents.push(place.git(staging).in_our_name().text().await?);
        }
        let last = self.snapshots(worktree.run, &worktree.agent).await?.pop();
        if let Some(last) = &last
            && self.shape(place, &last.commit).await?
                == self.shape_of(place, &content.tree, &parents).await?
        {
            return Ok(Some(last.clone()));
        }
        words.extend(parents.into_iter().flat_map(|parent| ["-p".to_owned(), parent]));
        words.extend(["-m".to_owned(), why.to_owned()]);
        let commit = place.git(words).in_our_name().text().await?;
        self.file(worktree, last, commit, why).await.map(Some)
    }

    /// Keeps a commit that is about to leave its branch.
    pub(super) async fn keep(
        &self,
        worktree: &Worktree,
        commit: &str,
        why: &str,
    ) -> Result<SnapshotRef, WorktreeError> {
        let tree = format!("{commit}^{{tree}}");
        let words = ["commit-tree", &tree, "-p", commit, "-m", why];
        let commit = self.shared.git(words).in_our_name().text().await?;
        let last = self.snapshots(worktree.run, &worktree.agent).await?.pop();
        self.file(worktree, last, commit, why).await
    }

    async fn file(
        &self,
        worktree: &Worktree,
        last: Option<SnapshotRef>,
        commit: String,
        why: &str,
    ) -> Result<SnapshotRef, WorktreeError> {
        let number = last.and_then(|last| number(&last.name)).unwrap_or(0) + 1;
        let name = format!("{}/{number}", folder(worktree.run, &worktree.agent));
        // The empty value requires that it does not exist yet.
        self.shared.git(["update-ref", &name, &commit, ""]).run().await?;
        Ok(SnapshotRef { name, commit, why: why.to_owned() })
    }

    /// Returns the snapshots of an agent in a run, oldest first.
    pub async fn snapshots(
        &self,
        run: RunId,
        agent: &AgentName,
    ) -> Result<Vec<SnapshotRef>, WorktreeError> {
        let format = "--format=%(refname) %(objectname) %(contents:subject)";
        let text = self.shared.git(["for-each-ref", format, &folder(run, agent)]).text().await?;
        let mut found: Vec<SnapshotRef> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.splitn(3, ' ').map(str::to_owned);
                let (name, commit) = (words.next()?, words.next()?);
                Some(SnapshotRef { name, commit, why: words.next().unwrap_or_default() })
            })
            .collect();
        found.sort_by_key(|snapshot| number(&snapshot.name));
        Ok(found)
    }

    /// Brings a worktree to the content of a snapshot: what was uncommitted then is uncommitted
    /// again. The current content is saved first; the agent must be idle.
    pub async fn restore(
        &self,
        snapshot: &SnapshotRef,
        worktree: &Worktree,
    ) -> Result<Option<SnapshotRef>, WorktreeError> {
        let _turn = self.turn.lock().await;
        let kept = self.save(worktree, "before a snapshot was restored").await?;
        let parent = format!("{}^1", snapshot.commit);
        let head = self.shared.git(["rev-parse", "--verify", &parent]).text().await?;
        let tree = format!("{}^{{tree}}", snapshot.commit);
        let tree = self.shared.git(["rev-parse", "--verify", &tree]).text().await?;
        self.settle(worktree, &head, &tree).await?;
        Ok(kept)
    }

    /// Returns the files of a work tree, read through a separate index.
    pub(super) async fn content(&self, place: &Place) -> Result<Content, WorktreeError> {
        let failed = |source| WorktreeError::Files {
            what: "make an index for",
            path: place.own.clone(),
            source,
        };
        let scratch = tempfile::tempdir().map_err(failed)?;
        let index = scratch.path().join("index");
        let copy = scratch.path().join("copy");
        // Its agent may be running, and have put a pipe there.
        let opened = stafette_disk::open(&place.own.join("index"), u64::MAX);
        let copied = opened.and_then(|mut from| io::copy(&mut from, &mut File::create(&copy)?));
        let staged = match copied {
            Ok(_) => place.git(["write-tree"]).index(&copy).text().await,
            Err(_) => place.git(["rev-parse", "--verify", "HEAD^{tree}"]).text().await,
        };
        let staged = match staged {
            Ok(tree) => tree,
            // In the middle of a merge, with a broken index, or without any commit. Then it does
            // not matter what is tracked: all existing files are taken.
            Err(GitError::Failed { .. }) => match self.head(place).await? {
                Some(head) => format!("{head}^{{tree}}"),
                None => place.git(["mktree"]).text().await?,
            },
            Err(error) => return Err(error.into()),
        };
        let staged = place.git(["rev-parse", "--verify", &staged]).text().await?;
        // From a tree, so that no index entry claims that its file need not be read.
        place.git(["read-tree", &staged]).index(&index).run().await?;
        // Git would inspect nested repositories, by their own settings.
        let links = self.links(place, &index).await?;
        let forget = links.iter().flat_map(|(_, path)| [&path[..], b"\0"].concat());
        let update = ["update-index", "-z", "--force-remove", "--stdin"];
        place.git(update).index(&index).input(forget.collect::<Vec<u8>>()).run().await?;
        place.git(["add", "--all", "--", "."]).index(&index).run().await?;
        let found = self.links(place, &index).await?;
        let there: BTreeSet<&Vec<u8>> = found.iter().map(|(_, path)| path).collect();
        let missing = links.iter().filter(|(_, path)| !there.contains(path));
        let again = missing.flat_map(|(commit, path)| {
            [b"160000 ", commit.as_bytes(), b"\t", path, b"\0"].concat()
        });
        let update = ["update-index", "-z", "--add", "--index-info"];
        place.git(update).index(&index).input(again.collect::<Vec<u8>>()).run().await?;
        let tree = place.git(["write-tree"]).index(&index).text().await?;
        let nested = found.into_iter().map(|(_, path)| OsString::from_vec(path).into()).collect();
        Ok(Content { tree, staged, nested })
    }

    /// Returns the repositories that an index contains: commit and path.
    async fn links(
        &self,
        place: &Place,
        index: &Path,
    ) -> Result<Vec<(String, Vec<u8>)>, WorktreeError> {
        let listed = place.git(["ls-files", "--stage", "-z"]).index(index).bytes().await?;
        let entries = listed.split(|byte| *byte == 0);
        let links = entries.filter_map(|entry| {
            let rest = entry.strip_prefix(b"160000 ")?;
            let tab = rest.iter().position(|byte| *byte == b'\t')?;
            let commit = rest[..tab].split(|byte| *byte == b' ').next()?;
            Some((String::from_utf8_lossy(commit).into_owned(), rest[tab + 1..].to_vec()))
        });
        Ok(links.collect())
    }

    /// Returns what makes two snapshots equal: files, what was checked out, and what was staged.
    async fn shape(&self, place: &Place, commit: &str) -> Result<String, GitError> {
        let said = place.git(["show", "--no-patch", "--format=%T %P", commit]).text().await?;
        let mut words = said.split(' ').map(str::to_owned);
        let tree = words.next().unwrap_or_default();
        self.shape_of(place, &tree, &words.filter(|word| !word.is_empty()).collect::<Vec<_>>())
            .await
    }

    async fn shape_of(
        &self,
        place: &Place,
        tree: &str,
        parents: &[String],
    ) -> Result<String, GitError> {
        let mut shape = format!("{tree} {}", parents.first().map_or("", String::as_str));
        if let Some(staged) = parents.get(1) {
            let staged = place.git(["rev-parse", &format!("{staged}^{{tree}}")]).text().await?;
            shape = format!("{shape} {staged}");
        }
        Ok(shape)
    }
}

fn folder(run: RunId, agent: &AgentName) -> String {
    format!("{REFS}/{run}/{}", plain(agent))
}

fn number(name: &str) -> Option<u32> {
    name.rsplit('/').next()?.parse().ok()
}
