//! The result of a run as a readable diff.

use stafette_core::RunId;

use super::{WorktreeError, Worktrees};

impl Worktrees {
    /// Returns the diff of a run's result; `None` if the run left none.
    pub async fn result_diff(&self, run: RunId) -> Result<Option<String>, WorktreeError> {
        let branch = format!("refs/heads/{}", Self::result_branch(run));
        let there = self.shared.git(["rev-parse", "--quiet", "--verify", &branch]).answer().await?;
        let Some(commit) = there else { return Ok(None) };
        let base = self.shared.git(["merge-base", "HEAD", &commit]).answer().await?;
        let base = match base {
            Some(base) => base,
            None => self.shared.git(["mktree"]).text().await?,
        };
        // No external diff program: its output could be anything.
        let words = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", &base, &commit];
        let bytes = self.shared.git(words).bytes().await?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}
