//! Makes commits once for each key.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use stafette_core::{AgentName, TurnKey};

/// The trailer that ties a commit to its turn.
const TRAILER: &str = "Stafette-Turn";

/// The maximum number of attempts while a file of git is locked.
const TRIES: u32 = 50;

/// The number of attempts before the lock may be taken for that of a dead git.
const PATIENCE: u32 = 5;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The result of a commit step.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Commit {
    Made(String),
    /// The commit of an earlier delivery, or the last one where there is nothing to commit.
    Found(String),
}

/// Commits everything in `folder` in the agent's name, unless this turn has done so before.
pub(super) fn commit(
    folder: &Path,
    agent: &AgentName,
    key: TurnKey,
    message: &str,
) -> Result<Commit, String> {
    if let Some(hash) = find(folder, key)? {
        return Ok(Commit::Found(hash));
    }
    git(folder, agent, &["add", "--all"])?;
    let head = head(folder);
    let unchanged = run(folder, agent, &["diff", "--cached", "--quiet"])?.status.success();
    if let Some(head) = &head
        && unchanged
    {
        return Ok(Commit::Found(head.clone()));
    }
    let trailer = format!("{TRAILER}: {key}");
    git(folder, agent, &["commit", "--quiet", "-m", message, "-m", &trailer])?;
    let hash = self::head(folder).ok_or("git has committed nothing")?;
    Ok(Commit::Made(hash))
}

/// The commit of a turn, if it is in the history.
fn find(folder: &Path, key: TurnKey) -> Result<Option<String>, String> {
    if head(folder).is_none() {
        return Ok(None);
    }
    let grep = format!("--grep={TRAILER}: {key}");
    let format = format!("--format=%H%x09%(trailers:key={TRAILER},valueonly,separator=%x2C)");
    let mut command = quiet(folder);
    command.args(["log", "--fixed-strings", &grep, &format]);
    let output = command.output().map_err(|error| cannot(&error))?;
    if !output.status.success() {
        return Err(complaint(&output));
    }
    // The text that is searched for may be the beginning of another key.
    let key = key.to_string();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut commits = text.lines().filter_map(|line| line.split_once('\t'));
    Ok(commits
        .find(|(_, keys)| keys.split(',').any(|other| other.trim() == key))
        .map(|(hash, _)| hash.to_owned()))
}

/// The commit that is checked out, if there is one.
fn head(folder: &Path) -> Option<String> {
    answer(folder, &["rev-parse", "--quiet", "--verify", "HEAD"])
}

/// The output of git, in one line.
fn answer(folder: &Path, question: &[&str]) -> Option<String> {
    let output = quiet(folder).args(question).output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

/// Runs git, which must succeed.
fn git(folder: &Path, agent: &AgentName, arguments: &[&str]) -> Result<(), String> {
    let output = run(folder, agent, arguments)?;
    if output.status.success() { Ok(()) } else { Err(complaint(&output)) }
}

/// Runs git. A lock that a process holds is waited for; one that a killed git has left is removed.
fn run(folder: &Path, agent: &AgentName, arguments: &[&str]) -> Result<Output, String> {
    let mut tries = 0;
    loop {
        let mut command = quiet(folder);
        let mail = format!("{agent}@stafette.local");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), agent.as_str());
            command.env(format!("GIT_{who}_EMAIL"), &mail);
        }
        command.args(["-c", "commit.gpgSign=false"]).args(arguments);
        let output = command.output().map_err(|error| cannot(&error))?;
        let Some(lock) = lock_in(&output) else {
            return Ok(output);
        };
        tries += 1;
        if tries > TRIES {
            return Ok(output);
        }
        // A living git releases it sooner or later; a dead one never does.
        if tries > PATIENCE && abandoned(folder, &lock) {
            // If it cannot be removed, the next attempt reports it.
            drop(fs::remove_file(&lock));
        } else {
            thread::sleep(PAUSE);
        }
    }
}

/// The lock file that blocked git.
fn lock_in(output: &Output) -> Option<PathBuf> {
    if output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let (_, rest) = text.split_once("Unable to create '")?;
    let (path, rest) = rest.split_once('\'')?;
    let path = PathBuf::from(path);
    let is_lock = path.extension().is_some_and(|extension| extension == "lock");
    (is_lock && rest.starts_with(": File exists")).then_some(path)
}

/// True if no process can be holding a lock: it belongs to this working tree, and no git works
/// there.
#[cfg(target_os = "linux")]
fn abandoned(folder: &Path, lock: &Path) -> bool {
    let own = answer(folder, &["rev-parse", "--absolute-git-dir"]);
    let Some(tree) = answer(folder, &["rev-parse", "--show-toplevel"]) else {
        return false;
    };
    let Ok(processes) = fs::read_dir("/proc") else {
        return false;
    };
    own.is_some_and(|own| lock.starts_with(own))
        && !processes.flatten().any(|process| {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let works_in = fs::read_link(process.path().join("cwd"));
            name.starts_with("git") && works_in.is_ok_and(|place| place.starts_with(&tree))
        })
}

/// True if no process can be holding a lock: it is older than any step of git.
#[cfg(not(target_os = "linux"))]
fn abandoned(_: &Path, lock: &Path) -> bool {
    let age = fs::metadata(lock).and_then(|lock| lock.modified()).map(|since| since.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > Duration::from_secs(60)))
}

/// Git in a folder, with a fixed language and without prompts.
fn quiet(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
    command
}

fn cannot(error: &io::Error) -> String {
    format!("git cannot be run: {error}")
}

fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    format!("git: {}", text.trim())
}

#[cfg(test)]
mod tests;
