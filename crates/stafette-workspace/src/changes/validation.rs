//! Validates a change with the project's own command.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use stafette_core::redact::{Redactor, Stream};
use stafette_core::workflow::hooks::is_passed;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// The number of bytes that are kept of the command's output: the end of it.
const KEPT: usize = 32 * 1024;

/// The time for which output is read after the command has ended.
const REST: Duration = Duration::from_secs(1);

/// The prefix of Stafette's own environment variables.
const OURS: &str = "STAFETTE_";

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
    pub(crate) timeout: Duration,
}

/// Runs the command in the project, in its own process group, which is killed afterwards. Its output
/// is kept without its secrets.
pub(crate) async fn validate(
    project: &Path,
    Check { command, env, timeout }: Check<'_>,
    redactor: &Redactor,
) -> ValidationOutcome {
    let line = command.join(" ");
    let Some((program, arguments)) = command.split_first() else { return ValidationOutcome::Good };
    let mut child = Command::new(program);
    // Stafette's own settings are not for the project: where runs are stored, who may write there.
    let is_wanted = |name: &str| !name.starts_with(OURS) && is_passed(name, env);
    let wanted = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_wanted));
    child.env_clear().envs(wanted);
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
    for mut reader in readers.into_iter().flatten() {
        if tokio::time::timeout(REST, &mut reader).await.is_err() {
            reader.abort();
            let _ = reader.await;
        }
    }
    let why = match ended {
        Ok(Ok(status)) if status.success() => return ValidationOutcome::Good,
        Ok(Ok(status)) => format!("`{line}` says no ({status})"),
        Ok(Err(error)) => format!("`{line}` cannot be waited for: {error}"),
        Err(_) => {
            let _ = tokio::time::timeout(REST, child.wait()).await;
            format!("`{line}` was ended after {} seconds", timeout.as_secs_f64())
        }
    };
    let printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes: Vec<u8> = printed.iter().copied().collect();
    ValidationOutcome::Bad { why, output: String::from_utf8_lossy(&bytes).trim().to_owned() }
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
