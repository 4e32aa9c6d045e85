//! Runs git: with a clean environment and a time limit, and with its message if it fails.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The time limit of a command. A checkout of a large repository on a slow disk takes minutes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Variables that would make git read or write something else than intended.
const MISLEADING: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_CONFIG_PARAMETERS",
];

/// Settings for every command: hooks and watchers are programs, and git runs here outside of an
/// agent's sandbox.
const SETTINGS: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.safecrlf=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
];

/// A git command failed.
#[derive(Debug, Error)]
pub enum GitError {
    /// Git is not installed, or may not be run.
    #[error("`{command}` did not start: {source}")]
    NotStarted {
        /// The command line that was tried.
        command: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The command took too long and was killed.
    #[error("`{command}` was ended after {} seconds", after.as_secs())]
    Slow {
        /// The command line that was run.
        command: String,
        /// The time limit that it exceeded.
        after: Duration,
    },
    /// Git reported an error.
    #[error("`{command}` failed ({status}): {stderr}")]
    Failed {
        /// The command line that was run.
        command: String,
        /// The exit status of git.
        status: std::process::ExitStatus,
        /// The output on standard error.
        stderr: String,
    },
}

/// A repository, given to git explicitly. Nothing is read from the `.git` of a work tree: an agent
/// that works there could point it to a repository whose settings start programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The work tree; `None` for the shared part.
    pub(crate) tree: Option<PathBuf>,
    /// The git folder of the work tree: its HEAD and its index.
    pub(crate) own: PathBuf,
    /// The git folder that all work trees share.
    pub(crate) common: PathBuf,
}

impl Place {
    /// Prepares a command in this repository.
    pub(crate) fn git<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Git {
        let mut git = Git::new(self.tree.as_deref().unwrap_or(&self.common), arguments);
        git.set("GIT_DIR", &self.own);
        if self.own != self.common {
            git.set("GIT_COMMON_DIR", &self.common);
        }
        if let Some(tree) = &self.tree {
            git.set("GIT_WORK_TREE", tree);
        }
        git
    }
}

/// One git command, to be run.
#[derive(Debug)]
pub(crate) struct Git {
    folder: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    input: Vec<u8>,
}

impl Git {
    /// Prepares a command in a folder, for the repository that git finds there.
    pub(crate) fn new<A: AsRef<OsStr>>(
        folder: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Git {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        Git {
            folder: folder.to_owned(),
            arguments: arguments.collect(),
            variables: Vec::new(),
            input: Vec::new(),
        }
    }

    fn set(&mut self, name: &'static str, value: impl AsRef<OsStr>) {
        self.variables.push((name, value.as_ref().to_owned()));
    }

    /// Uses a separate index: the existing one keeps what is staged in it.
    pub(crate) fn index(mut self, index: &Path) -> Git {
        self.set("GIT_INDEX_FILE", index);
        self
    }

    /// Commits in the name of Stafette, for commits that have no other author.
    pub(crate) fn in_our_name(mut self) -> Git {
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            self.set(name, "Stafette");
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            self.set(name, "stafette@localhost");
        }
        self
    }

    /// Takes paths literally, without patterns.
    pub(crate) fn literally(mut self) -> Git {
        self.set("GIT_LITERAL_PATHSPECS", "1");
        self
    }

    /// Passes this on standard input.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Git {
        self.input = input.into();
        self
    }

    /// Returns the command line for messages.
    fn line(&self) -> String {
        let words = self.arguments.iter().map(|word| word.to_string_lossy().into_owned());
        std::iter::once("git".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Returns its output, or the reason why it failed.
    pub(crate) async fn bytes(self) -> Result<Vec<u8>, GitError> {
        let mut command = Command::new("git");
        for name in MISLEADING {
            command.env_remove(name);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(&self.arguments).current_dir(&self.folder);
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|source| GitError::NotStarted { command: self.line(), source })?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input reports its own error.
            let _ = stdin.write_all(&self.input).await;
        }
        let Ok(output) = tokio::time::timeout(PATIENCE, child.wait_with_output()).await else {
            // Its filters are separate processes and would keep running.
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            return Err(GitError::Slow { command: self.line(), after: PATIENCE });
        };
        let output =
            output.map_err(|source| GitError::NotStarted { command: self.line(), source })?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(GitError::Failed { command: self.line(), status: output.status, stderr })
    }

    /// Returns its output as one text.
    pub(crate) async fn text(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.bytes().await?).trim_end().to_owned())
    }

    /// Returns its output as paths, one per line.
    pub(crate) async fn paths(self) -> Result<Vec<PathBuf>, GitError> {
        let bytes = self.bytes().await?;
        let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|byte| *byte == b'\n');
        Ok(lines.map(|line| PathBuf::from(OsString::from_vec(line.to_vec()))).collect())
    }

    /// Returns its output, or `None` if it exits with status 1.
    pub(crate) async fn answer(self) -> Result<Option<String>, GitError> {
        match self.text().await {
            Ok(text) => Ok(Some(text)),
            Err(GitError::Failed { status, .. }) if status.code() == Some(1) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks only that it succeeds.
    pub(crate) async fn run(self) -> Result<(), GitError> {
        self.bytes().await.map(drop)
    }
}
