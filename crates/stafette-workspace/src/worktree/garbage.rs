//! Removes worktrees and snapshots of runs that have ended, oldest first, and only as far as
//! necessary.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use stafette_core::{AgentName, RunId};

use super::snapshot::REFS;
use super::{TRASH, Worktree, WorktreeError, Worktrees, named};
use crate::removal::{Ground, measure};

/// The limits for worktrees of runs that have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// The bytes that all worktrees together may take up.
    pub max_bytes: u64,
    /// The time that worktrees and snapshots stay after their run has ended.
    pub max_age: Duration,
    /// The number of worktrees of ended runs that always stay, the newest ones.
    pub keep: usize,
}

/// A worktree that should have been removed and stays.
#[derive(Debug)]
pub struct Kept {
    pub path: PathBuf,
    /// The reason why it stays.
    pub why: WorktreeError,
}

/// The result of a garbage collection.
#[derive(Debug, Default)]
pub struct Collected {
    pub worktrees: Vec<PathBuf>,
    /// The removed branches; other branches hold all their commits.
    pub branches: Vec<String>,
    /// The refs of removed snapshots.
    pub snapshots: Vec<String>,
    pub freed: u64,
    /// The bytes that worktrees still take up.
    pub used: u64,
    /// The worktrees that could not be removed.
    pub kept: Vec<Kept>,
}

/// A worktree to consider for removal.
#[derive(Debug)]
struct Candidate {
    worktree: Worktree,
    used_at: SystemTime,
    bytes: u64,
}

impl Worktrees {
    /// Removes what exceeds a quota: worktrees of runs that have ended, oldest first, each saved
    /// before it is removed, and snapshots that are too old. Worktrees of living runs stay.
    pub async fn gc(
        &self,
        quota: &Quota,
        is_living: impl Fn(RunId) -> bool,
        now: SystemTime,
    ) -> Result<Collected, WorktreeError> {
        let _turn = self.turn.lock().await;
        let mut collected = Collected::default();
        // What an interrupted removal has left is no longer needed.
        if let Ok(ground) = Ground::open(&self.root) {
            let _ = ground.remove(std::path::Path::new(TRASH));
        }
        let mut all = self.candidates().await;
        all.sort_by_key(|candidate| std::cmp::Reverse(candidate.used_at));
        collected.used = all.iter().map(|candidate| candidate.bytes).sum();
        all.retain(|candidate| !is_living(candidate.worktree.run));
        for Candidate { worktree, used_at, bytes } in all.into_iter().skip(quota.keep).rev() {
            let age = now.duration_since(used_at).unwrap_or_default();
            if age <= quota.max_age && collected.used <= quota.max_bytes {
                continue;
            }
            match self.close_held(&worktree, "before it was cleared away").await {
                Ok(_) => {
                    collected.used -= bytes;
                    collected.freed += bytes;
                    collected.branches.extend(self.drop_branch(&worktree).await?);
                    collected.worktrees.push(worktree.path);
                }
                Err(why) => collected.kept.push(Kept { path: worktree.path, why }),
            }
        }
        collected.snapshots = self.drop_snapshots(quota, is_living, now).await?;
        Ok(collected)
    }

    /// Returns all recorded worktrees.
    async fn candidates(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        for run in entries(&self.root) {
            let Some(id) = run.file_name().and_then(|name| name.to_str()?.parse::<RunId>().ok())
            else {
                continue;
            };
            for note in entries(&run.join(".notes")) {
                let name = note.file_stem().and_then(|name| named(name.to_str()?));
                let used_at = note.metadata().and_then(|metadata| metadata.modified());
                let (Some(agent), Ok(used_at)) = (name, used_at) else { continue };
                let Some(worktree) = self.get(id, &agent) else { continue };
                let path = worktree.path.clone();
                let bytes = tokio::task::spawn_blocking(move || measure(&path)).await;
                let bytes = bytes.unwrap_or_default();
                found.push(Candidate { worktree, used_at, bytes });
            }
        }
        found
    }

    /// Removes an agent's branch if another one holds its commits as well.
    async fn drop_branch(&self, worktree: &Worktree) -> Result<Option<String>, WorktreeError> {
        let full = format!("refs/heads/{}", worktree.branch);
        let contains = format!("--contains={full}");
        let words =
            ["for-each-ref", "--format=%(refname)", &contains, "refs/heads", "refs/remotes"];
        let Ok(holders) = self.shared.git(words).text().await else { return Ok(None) };
        if !holders.lines().any(|holder| holder != full) {
            return Ok(None);
        }
        self.shared.git(["update-ref", "-d", &full]).run().await?;
        Ok(Some(worktree.branch.clone()))
    }

    async fn drop_snapshots(
        &self,
        quota: &Quota,
        is_living: impl Fn(RunId) -> bool,
        now: SystemTime,
    ) -> Result<Vec<String>, WorktreeError> {
        let format = "--format=%(refname) %(committerdate:unix)";
        let text = self.shared.git(["for-each-ref", format, REFS]).text().await?;
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut gone = Vec::new();
        let mut there: BTreeMap<(RunId, AgentName), bool> = BTreeMap::new();
        for line in text.lines() {
            let Some((name, made)) = line.split_once(' ') else { continue };
            let made = Duration::from_secs(made.parse().unwrap_or(u64::MAX));
            let mut parts =
                name.strip_prefix(REFS).unwrap_or_default().trim_matches('/').split('/');
            let run = parts.next().and_then(|run| run.parse::<RunId>().ok());
            let agent = parts.next().and_then(named);
            let (Some(run), Some(agent)) = (run, agent) else { continue };
            let has_worktree = *there
                .entry((run, agent.clone()))
                .or_insert_with(|| self.get(run, &agent).is_some());
            if is_living(run) || has_worktree || now.saturating_sub(made) <= quota.max_age {
                continue;
            }
            self.shared.git(["update-ref", "-d", name]).run().await?;
            gone.push(name.to_owned());
        }
        Ok(gone)
    }
}

fn entries(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
