//! Removes worktrees and snapshots of runs that have ended, oldest first, and only as far as
//! necessary.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use stafette_core::{AgentName, RunId};

use super::snapshot::REFS;
use super::{TRASH, Worktree, WorktreeError, Worktrees, named};
use crate::changes::Draft;
use crate::removal::{Ground, measure};

/// The branches with the results of runs.
const RESULTS: &str = "refs/heads/stafette/result/";

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

/// What was done with the branches and refs of runs that are gone.
#[derive(Debug, Default)]
pub struct Tidied {
    /// The refs that were removed: what they hold is elsewhere.
    pub removed: Vec<String>,
    /// The refs that hold something that is nowhere else.
    pub kept: Vec<String>,
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
        for run in entries(&self.root).into_iter().filter(|run| {
            let id = run.file_name().and_then(|name| name.to_str()?.parse::<RunId>().ok());
            id.is_some_and(|id| !is_living(id))
        }) {
            // Only if nothing is in them.
            let _ = std::fs::remove_dir(run.join(".notes"));
            let _ = std::fs::remove_dir(run);
        }
        collected.snapshots = self.drop_snapshots(quota, is_living, now).await?;
        Ok(collected)
    }

    /// Removes the branches and refs of runs that are gone, as far as another branch has their commits,
    /// or changes have their edits. Both functions get the short form of a run's id.
    pub async fn tidy(
        &self,
        is_gone: impl Fn(&str) -> bool,
        are_settled: impl Fn(&str, &[Draft]) -> bool,
    ) -> Result<Tidied, WorktreeError> {
        let _turn = self.turn.lock().await;
        let format = "--format=%(refname)";
        let words = ["for-each-ref", format, "refs/stafette", "refs/heads/stafette"];
        let listed = self.shared.git(words).text().await?;
        let mut tidied = Tidied::default();
        // A branch with a result comes last: it has the commits of the others.
        let (results, others): (Vec<&str>, Vec<&str>) =
            listed.lines().partition(|name| name.starts_with(RESULTS));
        for name in others.into_iter().chain(results) {
            let Some(run) = self.run_of(name).filter(|run| is_gone(run)) else { continue };
            if self.is_elsewhere(name, &run, &are_settled).await? {
                self.shared.git(["update-ref", "-d", name]).run().await?;
                tidied.removed.push(name.to_owned());
            } else {
                tidied.kept.push(name.to_owned());
            }
        }
        Ok(tidied)
    }

    /// Returns the short id of the run that a ref belongs to; `None` while it has its worktree.
    fn run_of(&self, name: &str) -> Option<String> {
        if let Some(inner) = name.strip_prefix("refs/stafette/") {
            let mut parts = inner.split('/').skip(1);
            let run: RunId = parts.next()?.parse().ok()?;
            let agent = parts.next().and_then(named)?;
            return self.get(run, &agent).is_none().then(|| run.short());
        }
        let (first, second) = name.strip_prefix("refs/heads/stafette/")?.split_once('/')?;
        let run = if first == "result" { second } else { first };
        let is_short = run.len() == 8 && run.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_short.then(|| run.to_owned())
    }

    /// True if removing a ref loses nothing.
    async fn is_elsewhere(
        &self,
        name: &str,
        run: &str,
        are_settled: impl Fn(&str, &[Draft]) -> bool,
    ) -> Result<bool, WorktreeError> {
        let ask = ["for-each-ref", "--format=%(worktreepath)", name];
        if !self.shared.git(ask).text().await?.trim().is_empty() {
            return Ok(false);
        }
        let contains = format!("--contains={name}");
        let words = ["for-each-ref", "--format=%(refname)", &contains];
        let words = words.into_iter().chain(["refs/heads", "refs/remotes", "refs/tags"]);
        let holders = self.shared.git(words).text().await?;
        if holders.lines().any(|holder| holder != name) {
            return Ok(true);
        }
        let tree = async |name: &str| {
            let name = format!("{name}^{{tree}}");
            self.shared.git(["rev-parse", "--quiet", "--verify", &name]).answer().await
        };
        let Some(own) = tree(name).await? else { return Ok(false) };
        let result = format!("{RESULTS}{run}");
        if name != result && tree(&result).await?.as_ref() == Some(&own) {
            return Ok(true);
        }
        let base = match self.head(&self.project).await? {
            Some(head) => self.shared.git(["merge-base", &head, name]).answer().await?,
            None => None,
        };
        let base = match base {
            Some(base) => base,
            None => self.shared.git(["mktree"]).text().await?,
        };
        let (drafts, left) = self.drafts(&base, &own).await?;
        Ok(left.is_empty() && are_settled(run, &drafts))
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
