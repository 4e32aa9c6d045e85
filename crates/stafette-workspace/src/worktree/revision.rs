//! A change in the worktree of the agent that revises it: the agent finds the change in its files, and
//! what it leaves in them is the next revision.
//!
//! For each such worktree a ref holds two commits: the files without the change, and on top of them
//! the files with the change as its record has it. The difference between the first and the files as
//! they are is the change as it is to be.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use stafette_core::change::{Change, ChangeId};

use super::difference::{Line, read};
use super::{Worktree, WorktreeError, Worktrees, plain};
use crate::changes::{Draft, SetFile};
use crate::git::GitError;

/// The refs that hold the changes under revision.
const REVISIONS: &str = "refs/stafette/revisions";

/// A change that is revised in a worktree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Revision {
    pub change: ChangeId,
    /// The revision of the change that the worktree began with, or has proposed since.
    pub number: u32,
    /// The commit with that revision in it; its parent is without the change.
    commit: String,
}

/// The files of a change in git: path and, if the file exists, mode and object.
type Entries = Vec<(Vec<u8>, Option<(&'static str, String)>)>;

impl Worktrees {
    /// Brings a change into a worktree, whose agent must be idle. Of everything else in it nothing is
    /// changed, and what the change replaces is saved. Safe to repeat after a crash.
    pub async fn bring_in(
        &self,
        worktree: &Worktree,
        change: ChangeId,
        number: u32,
        files: &[SetFile],
    ) -> Result<(), WorktreeError> {
        let _turn = self.turn.lock().await;
        self.save(worktree, &format!("before {change} came to be revised")).await?;
        let place = &worktree.place;
        let head = place.git(["rev-parse", "--verify", "HEAD^{commit}"]).text().await?;
        let now = self.content(place).await?.tree;
        let (before, after) = self.entries(files).await?;
        let (without, with) =
            (self.overlay(&now, &before).await?, self.overlay(&now, &after).await?);
        let without = self.commit(&without, &head, &format!("Without {change}")).await?;
        let earlier = self.revision(worktree).await?.filter(|earlier| earlier.change == change);
        self.begin_with(worktree, earlier.as_ref(), &after).await?;
        self.settle(worktree, &head, &with).await?;
        let mut there = self.content(place).await?.tree;
        if there != with {
            // Git does not see files that it ignores, unless they are in its index.
            let files = after.iter().filter(|(_, entry)| entry.is_some());
            let files: Vec<u8> = files.flat_map(|(path, _)| [&path[..], b"\0"].concat()).collect();
            let words = ["--literal-pathspecs", "add", "--force", "--pathspec-from-file=-"];
            let add = place.git(words.into_iter().chain(["--pathspec-file-nul"]));
            add.input(files).run().await?;
            there = self.content(place).await?.tree;
        }
        self.note_revision(worktree, change, number, &there, &without).await
    }

    /// Returns the change that is revised in a worktree, if any.
    pub async fn revision(&self, worktree: &Worktree) -> Result<Option<Revision>, WorktreeError> {
        let name = format!("{}^{{commit}}", Self::revision_name(worktree));
        let found = self.shared.git(["rev-parse", "--quiet", "--verify", &name]).answer().await?;
        let Some(commit) = found else { return Ok(None) };
        let title = self.shared.git(["show", "--no-patch", "--format=%s", &commit]).text().await?;
        let parts = title.split_once('@');
        let parsed = parts.and_then(|(id, number)| Some((id.parse().ok()?, number.parse().ok()?)));
        Ok(parsed.map(|(change, number)| Revision { change, number, commit }))
    }

    /// Returns a change as the agent has left it in its worktree, without what cannot be an edit;
    /// `None` if it has not touched anything. Its agent must be idle.
    pub async fn revised(
        &self,
        worktree: &Worktree,
        revision: &Revision,
    ) -> Result<Option<Vec<Draft>>, WorktreeError> {
        let _turn = self.turn.lock().await;
        self.regain(worktree).await?;
        let now = self.content(&worktree.place).await?.tree;
        let had = format!("{}^{{tree}}", revision.commit);
        let had = self.shared.git(["rev-parse", "--verify", &had]).text().await?;
        match now == had {
            true => Ok(None),
            false => {
                let (drafts, _) = self.drafts(&format!("{}^", revision.commit), &now).await?;
                Ok(Some(drafts))
            }
        }
    }

    /// Notes that what is in a worktree was proposed as this revision of its change. What it does not
    /// have is left for the end of the run.
    pub async fn proposed(
        &self,
        worktree: &Worktree,
        revision: &Revision,
        revised: &Change,
    ) -> Result<(), WorktreeError> {
        use std::os::unix::ffi::OsStrExt;
        let _turn = self.turn.lock().await;
        let now = self.content(&worktree.place).await?.tree;
        let without = format!("{}^", revision.commit);
        let without = self.shared.git(["rev-parse", "--verify", &without]).text().await?;
        let mut after = self.changed(&without, &now).await?;
        let paths: BTreeSet<PathBuf> =
            revised.paths().map(|path| self.prefix.join(path.as_str())).collect();
        after.retain(|(path, _)| paths.contains(Path::new(OsStr::from_bytes(path))));
        self.begin_with(worktree, Some(revision), &after).await?;
        self.note_revision(worktree, revised.id, revised.revision, &now, &without).await
    }

    /// Ends a revision: what the agent does from now on is other work.
    pub async fn end_revision(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        Ok(self.shared.git(["update-ref", "-d", &Self::revision_name(worktree)]).run().await?)
    }

    /// Has the taker of work continue the giver's revision, if that is one.
    pub(super) async fn pass_revision(
        &self,
        from: &Worktree,
        to: &Worktree,
    ) -> Result<(), WorktreeError> {
        match self.revision(from).await? {
            Some(Revision { commit, .. }) => {
                let words = ["update-ref", &Self::revision_name(to), &commit];
                Ok(self.shared.git(words).run().await?)
            }
            None => self.end_revision(to).await,
        }
    }

    /// Has the work in a worktree begin with a change as it is in these files, in place of an earlier
    /// revision: a run does not make what it was given, its own outcome is what it does besides.
    async fn begin_with(
        &self,
        worktree: &Worktree,
        earlier: Option<&Revision>,
        after: &Entries,
    ) -> Result<(), WorktreeError> {
        let Some(base) = self.base(worktree).await? else { return Ok(()) };
        let mut tree = format!("{base}^{{tree}}");
        if let Some(Revision { commit, .. }) = earlier {
            let undone = self.changed(commit, &format!("{commit}^")).await?;
            tree = self.overlay(&tree, &undone).await?;
        }
        let tree = self.overlay(&tree, after).await?;
        let began = self.commit(&tree, &base, "What the work began with").await?;
        self.set_base(worktree, &began).await
    }

    /// Returns the files that differ between two trees, as they are in the second.
    async fn changed(&self, from: &str, to: &str) -> Result<Entries, GitError> {
        use std::os::unix::ffi::OsStrExt;
        let words = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", from, to];
        let lines = read(&self.shared.git(words).bytes().await?);
        let entry = |line: Line| {
            let mode = match line.modes.1.as_str() {
                "000000" => None,
                "100755" => Some("100755"),
                "120000" => Some("120000"),
                "160000" => Some("160000"),
                _ => Some("100644"),
            };
            (line.file.as_os_str().as_bytes().to_vec(), mode.map(|mode| (mode, line.new)))
        };
        Ok(lines.into_iter().map(entry).collect())
    }

    fn revision_name(worktree: &Worktree) -> String {
        format!("{REVISIONS}/{}/{}", worktree.run, plain(&worktree.agent))
    }

    async fn note_revision(
        &self,
        worktree: &Worktree,
        change: ChangeId,
        number: u32,
        tree: &str,
        without: &str,
    ) -> Result<(), WorktreeError> {
        let commit = self.commit(tree, without, &format!("{change}@{number}")).await?;
        let words = ["update-ref", &Self::revision_name(worktree), &commit];
        Ok(self.shared.git(words).run().await?)
    }

    async fn commit(&self, tree: &str, parent: &str, message: &str) -> Result<String, GitError> {
        let words = ["commit-tree", tree, "-p", parent, "-m", message];
        self.shared.git(words).in_our_name().text().await
    }

    /// Stores the contents of a change in git; returns its files before and after it.
    async fn entries(&self, files: &[SetFile]) -> Result<(Entries, Entries), WorktreeError> {
        use std::os::unix::ffi::OsStrExt;
        let mut known = BTreeMap::new();
        let (mut before, mut after) = (Entries::new(), Entries::new());
        for SetFile { path, before: was, after: is } in files {
            let path = self.prefix.join(path.as_str()).as_os_str().as_bytes().to_vec();
            for (state, entries) in [(was, &mut before), (is, &mut after)] {
                let Some((content, bytes)) = state else {
                    entries.push((path.clone(), None));
                    continue;
                };
                let object = match known.get(&content.sha256) {
                    Some(object) => String::clone(object),
                    None => {
                        let store = ["hash-object", "-w", "--stdin"];
                        self.shared.git(store).input(bytes.clone()).text().await?
                    }
                };
                known.insert(content.sha256.clone(), object.clone());
                let mode = if content.mode & 0o100 == 0 { "100644" } else { "100755" };
                entries.push((path.clone(), Some((mode, object))));
            }
        }
        Ok((before, after))
    }

    /// Returns a tree with these files in it as they are given, and with all of its other files.
    async fn overlay(&self, tree: &str, entries: &Entries) -> Result<String, WorktreeError> {
        let failed = |source| WorktreeError::Files {
            what: "make an index for",
            path: self.shared.own.clone(),
            source,
        };
        let scratch = tempfile::tempdir().map_err(failed)?;
        let index = scratch.path().join("index");
        let git = |words: &[&str]| self.shared.git(words).index(&index);
        git(&["read-tree", tree]).run().await?;
        let gone = entries.iter().filter(|(_, entry)| entry.is_none());
        let gone: Vec<u8> = gone.flat_map(|(path, _)| [&path[..], b"\0"].concat()).collect();
        git(&["update-index", "-z", "--force-remove", "--stdin"]).input(gone).run().await?;
        let there = entries.iter().filter_map(|(path, entry)| Some((path, entry.as_ref()?)));
        let line = |(path, (mode, object)): (&Vec<u8>, &(&str, String))| {
            [mode.as_bytes(), b" ", object.as_bytes(), b"\t", &path[..], b"\0"].concat()
        };
        let there: Vec<u8> = there.flat_map(line).collect();
        git(&["update-index", "-z", "--add", "--index-info"]).input(there).run().await?;
        Ok(git(&["write-tree"]).text().await?)
    }
}
