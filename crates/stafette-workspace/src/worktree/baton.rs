//! Passes work from one worktree to the next, and in the end to the user.
//!
//! The giver's commits reach the taker as commits, and uncommitted work as uncommitted files: the
//! taker finds what is in the giver's own folder. No commit is invented that has to be removed from
//! a history later, and nothing is lost on the way, because both sides are saved as snapshots
//! first.

use super::{SnapshotRef, Worktree, WorktreeError, Worktrees};

/// The outcome of passing work on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// The commit that the taker is on now.
    pub head: String,
    /// The giver's uncommitted work, if it had any.
    pub given: Option<SnapshotRef>,
    /// The taker's own work that was replaced, if it had any.
    pub kept: Option<SnapshotRef>,
}

/// The result of a run, on a branch for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Landed {
    pub branch: String,
    pub commit: String,
}

impl Worktrees {
    /// Brings the taker's worktree to the state of the giver's. Ignored files stay as they are on
    /// both sides, so caches and build output of the taker remain useful. Both agents must be idle.
    /// Safe to repeat after a crash.
    pub async fn advance(&self, from: &Worktree, to: &Worktree) -> Result<Passed, WorktreeError> {
        let _turn = self.turn.lock().await;
        let given = self.save(from, &format!("passed to {}", to.agent)).await?;
        let why = format!("before the work of {} came", from.agent);
        let kept = self.save(to, &why).await?;
        let (head, tree) = self.start(&super::Base::Of(from.clone())).await?;
        let had = self.head(&to.place).await?;
        let kept = match (kept, had) {
            (Some(kept), _) => Some(kept),
            // Committed, but on a separate line that the branch is about to leave.
            (None, Some(had)) if had != head && !self.reaches(&had, &head).await? => {
                Some(self.keep(to, &had, &why).await?)
            }
            (None, _) => None,
        };
        match tree {
            Some(tree) => self.settle(to, &head, &tree).await?,
            None => self.settle(to, &head, &format!("{head}^{{tree}}")).await?,
        }
        self.pass_base(from, to).await?;
        self.pass_revision(from, to).await?;
        Ok(Passed { head, given, kept })
    }

    /// Puts the work of a worktree on a branch for the user: commits as they are, uncommitted work
    /// as one commit on top. The worktree itself and every checkout stay as they are. A branch with
    /// other work on it is refused.
    pub async fn land(&self, worktree: &Worktree, onto: &str) -> Result<Landed, WorktreeError> {
        let _turn = self.turn.lock().await;
        self.save(worktree, "at the end of the run").await?;
        let (head, tree) = self.start(&super::Base::Of(worktree.clone())).await?;
        let committed = format!("{head}^{{tree}}");
        let committed = self.shared.git(["rev-parse", "--verify", &committed]).text().await?;
        let commit = match tree {
            Some(tree) if tree != committed => {
                let message = format!("Work of {} in run {}", worktree.agent, worktree.run.short());
                let words = ["commit-tree", &tree, "-p", &head, "-m", &message];
                // It becomes part of the user's history, so the user is its author if git knows the
                // name.
                match self.shared.git(words).text().await {
                    Ok(commit) => commit,
                    Err(_) => self.shared.git(words).in_our_name().text().await?,
                }
            }
            _ => head,
        };
        if let Some(path) = self.checkout_of(onto).await? {
            return Err(WorktreeError::CheckedOut { branch: onto.to_owned(), path });
        }
        let full = format!("refs/heads/{onto}");
        let old = self.shared.git(["rev-parse", "--quiet", "--verify", &full]).answer().await?;
        if let Some(old) = &old
            && !self.reaches(old, &commit).await?
        {
            let same = self.is_same_work(old, &commit).await?;
            let diverged = WorktreeError::Diverged { branch: onto.to_owned() };
            return if same {
                Ok(Landed { branch: onto.to_owned(), commit: old.clone() })
            } else {
                Err(diverged)
            };
        }
        let words = ["update-ref", &full, &commit, old.as_deref().unwrap_or_default()];
        self.shared.git(words).run().await?;
        Ok(Landed { branch: onto.to_owned(), commit })
    }

    /// True if two commits hold the same files on the same parent, so that a repeated landing has
    /// no effect.
    async fn is_same_work(&self, a: &str, b: &str) -> Result<bool, WorktreeError> {
        let show = |commit: &str| self.shared.git(["show", "--no-patch", "--format=%T %P", commit]);
        Ok(show(a).text().await? == show(b).text().await?)
    }

    /// Saves a worktree before it is changed.
    pub(super) async fn save(
        &self,
        worktree: &Worktree,
        why: &str,
    ) -> Result<Option<SnapshotRef>, WorktreeError> {
        self.snapshot(worktree, why).await.map_err(|source| WorktreeError::NotSaved {
            path: worktree.path.clone(),
            source: Box::new(source),
        })
    }

    /// True if `new` contains all commits of `old`.
    async fn reaches(&self, old: &str, new: &str) -> Result<bool, WorktreeError> {
        let ask = self.shared.git(["merge-base", "--is-ancestor", old, new]);
        Ok(ask.answer().await?.is_some())
    }

    /// Brings a worktree to a commit with other files in it, which are uncommitted there. Its
    /// earlier content must have been saved.
    pub(super) async fn settle(
        &self,
        worktree: &Worktree,
        head: &str,
        tree: &str,
    ) -> Result<(), WorktreeError> {
        self.mend(worktree)?;
        let place = &worktree.place;
        for step in ["rebase-merge", "rebase-apply", "sequencer"] {
            // Half a rebase of the old work would continue with the new.
            let step = place.own.join(step);
            if step.is_dir() {
                crate::removal::remove_folder(&step).map_err(|source| WorktreeError::Files {
                    what: "remove",
                    path: step,
                    source,
                })?;
            }
        }
        place.git(["read-tree", "--reset", "-u", tree]).run().await?;
        place.git(["clean", "--quiet", "--force", "-d"]).run().await?;
        let branch = format!("refs/heads/{}", worktree.branch);
        place.git(["update-ref", &branch, head]).run().await?;
        place.git(["symbolic-ref", "HEAD", &branch]).run().await?;
        place.git(["reset", "--quiet"]).run().await?;
        self.lend(worktree).await?;
        super::make_folder(&worktree.folder)
    }
}
