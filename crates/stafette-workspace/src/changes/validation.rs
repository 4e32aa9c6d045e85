//! Validates a change with the project's own command.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use stafette_core::command::environment;
use stafette_core::redact::{Redactor, Stream};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// The number of bytes that are kept of the command's output: the end of it.
const KEPT: usize = 32 * 1024;

/// The time for which output is read after the command has ended.
const REST: Duration = Duration::from_secs(1);

/// The exit codes of shells for a program that they do not find, and for one that does not run.
const NOT_FOUND: i32 = 127;
const NOT_A_PROGRAM: i32 = 126;

/// The variable that the project's commands and their children inherit; its value names the
/// project.
const MARK: &str = "STAFETTE_VALIDATES";

/// Returns the variable that every command of a project carries. A command that outlives the
/// process that started it would keep writing where others work by now; the mark finds it.
pub fn mark(project: &Path) -> String {
    format!("{MARK}={}", project.display())
}

/// The result of the validation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ValidationOutcome {
    /// The command ended with success.
    Good,
    /// The command failed, with the reason and the end of its output.
    Bad { why: String, output: String },
}

/// A command of the project: its words, the variables that it may see, and its time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check<'a> {
    pub(crate) command: &'a [String],
    pub(crate) env: &'a [String],
    /// The setting that names these variables.
    pub(crate) setting: &'static str,
    pub(crate) timeout: Duration,
}

/// Runs the command in the project, in its own process group, which is killed afterwards. Its output
/// is kept without its secrets.
pub(crate) async fn validate(
    project: &Path,
    Check { command, env, setting, timeout }: Check<'_>,
    redactor: &Redactor,
) -> ValidationOutcome {
    let line = command.join(" ");
    let Some((program, arguments)) = command.split_first() else { return ValidationOutcome::Good };
    let mut child = Command::new(program);
    let seen = environment::seen(std::env::vars_os(), |name| env.iter().any(|it| it == name));
    child.env_clear().envs(seen.iter().map(|(name, value)| (name, value)));
    child.args(arguments).current_dir(project).env(MARK, project);
    child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    child.process_group(0).kill_on_drop(true);
    let mut child = match child.spawn() {
        Ok(child) => child,
        Err(error) => {
            let why = format!("`{line}` did not start: {error}");
            return ValidationOutcome::Bad { why, output: String::new() };
        }
    };
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = Group(group);
    let printed = Arc::new(Mutex::new(VecDeque::new()));
    let readers = [
        child
            .stdout
            .take()
            .map(|pipe| tokio::spawn(read(pipe, redactor.stream(), printed.clone()))),
        child
            .stderr
            .take()
            .map(|pipe| tokio::spawn(read(pipe, redactor.stream(), printed.clone()))),
    ];
    let ended = tokio::time::timeout(timeout, child.wait()).await;
    // Processes that it left behind would keep writing.
    drop(group);
    if ended.is_err() {
        let _ = tokio::time::timeout(REST, child.wait()).await;
    }
    for mut reader in readers.into_iter().flatten() {
        if tokio::time::timeout(REST, &mut reader).await.is_err() {
            reader.abort();
            let _ = reader.await;
        }
    }
    let printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes: Vec<u8> = printed.iter().copied().collect();
    let output = String::from_utf8_lossy(&bytes).trim().to_owned();
    let why = match ended {
        Ok(Ok(status)) if status.success() => return ValidationOutcome::Good,
        Ok(Ok(status)) => {
            let unseen = unseen(&output, &seen);
            let hint = match status.code() {
                _ if !unseen.is_empty() => {
                    format!("; it does not see {}: name them in `{setting}`", unseen.join(", "))
                }
                Some(NOT_FOUND | NOT_A_PROGRAM) => {
                    format!("; it sees only harmless variables and those that `{setting}` names")
                }
                _ => String::new(),
            };
            format!("`{line}` says no ({status}){hint}")
        }
        Ok(Err(error)) => format!("`{line}` cannot be waited for: {error}"),
        Err(_) => format!("`{line}` was ended after {} seconds", timeout.as_secs_f64()),
    };
    ValidationOutcome::Bad { why, output }
}

/// Lists the variables of this process that a command prints the names of, and did not see.
fn unseen(output: &str, seen: &[(OsString, OsString)]) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: HashSet<&str> = output.split(|c| !is_part(c)).collect();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    // Other names are words that are printed for other reasons.
    let is_meant = |name: &String| {
        name.contains('_') && words.contains(name.as_str()) && !environment::is_ours(name)
    };
    let is_seen = |name: &String| seen.iter().any(|(it, _)| *it == **name);
    let mut unseen: Vec<String> = names.filter(is_meant).filter(|it| !is_seen(it)).collect();
    unseen.sort();
    unseen
}

/// A process group that is killed on drop.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The output of one pipe, redacted before it is cut to its end: of a secret that is cut, the rest
/// would not be recognised.
struct Output {
    stream: Stream,
    printed: Arc<Mutex<VecDeque<u8>>>,
}

impl Output {
    fn keep(&self, piece: Vec<u8>) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.extend(piece);
        let surplus = printed.len().saturating_sub(KEPT);
        printed.drain(..surplus);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let last = self.stream.finish();
        self.keep(last);
    }
}

async fn read(mut pipe: impl AsyncRead + Unpin, stream: Stream, printed: Arc<Mutex<VecDeque<u8>>>) {
    let mut output = Output { stream, printed };
    let mut piece = vec![0; 8 * 1024];
    while let Ok(n @ 1..) = pipe.read(&mut piece).await {
        let clean = output.stream.push(&piece[..n]);
        output.keep(clean);
    }
}
