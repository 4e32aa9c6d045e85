//! The command of a hook: it reads JSON, returns a status and a reason, and leaves no process
//! behind.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use stafette_core::command::environment;
use stafette_core::workflow::hooks::Hook;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// Maximum size of its error output that is kept, in bytes.
const MOST: u64 = 16 * 1024;

/// Time that error output may still arrive after the command has ended.
const AFTERWORD: Duration = Duration::from_millis(500);

/// Result of a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The hook raises no objection.
    Passed,
    Refused {
        why: String,
    },
    /// The hook failed, or took too long.
    Broken {
        why: String,
    },
}

/// A process group that is killed when this is dropped.
struct Family(Option<Pid>);

impl Drop for Family {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails most often because the group is gone already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs a hook within its time limit.
pub(crate) async fn run(hook: &Hook, folder: &Path, input: &Value) -> Outcome {
    let Some((program, arguments)) = hook.command.split_first() else {
        return Outcome::Broken { why: "it has no command".to_owned() };
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().kill_on_drop(true).process_group(0);
    let is_named = |name: &str| hook.env.iter().any(|it| it == name);
    command.envs(environment::seen(std::env::vars_os(), is_named));
    command.env("STAFETTE_HOOK", &hook.on);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::Broken { why: format!("`{program}`: {error}") },
    };
    let _family = Family(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let bytes = serde_json::to_vec(input).unwrap_or_default();
    let stdin = child.stdin.take();
    let feeding = tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            // A hook may close its input early.
            let _ = stdin.write_all(&bytes).await;
        }
    });
    let errors = child.stderr.take();
    let hearing = tokio::spawn(async move {
        match errors {
            Some(errors) => listen(errors).await,
            None => String::new(),
        }
    });
    let ended = tokio::time::timeout(hook.timeout.into(), child.wait()).await;
    feeding.abort();
    match ended {
        Err(_) => Outcome::Broken { why: format!("`{program}` took longer than {}", hook.timeout) },
        Ok(Err(error)) => Outcome::Broken { why: format!("`{program}`: {error}") },
        Ok(Ok(status)) if status.success() => Outcome::Passed,
        Ok(Ok(status)) => {
            // A process that the hook left running may hold the pipe open.
            let stop = hearing.abort_handle();
            let said = tokio::time::timeout(AFTERWORD, hearing).await;
            stop.abort();
            let said = said.ok().and_then(Result::ok).unwrap_or_default();
            let said = said.trim();
            match status.code() {
                Some(2) if said.is_empty() => {
                    Outcome::Refused { why: format!("`{program}` gave no reason") }
                }
                Some(2) => Outcome::Refused { why: said.to_owned() },
                _ => Outcome::Broken { why: format!("`{program}` ended with {status}: {said}") },
            }
        }
    }
}

async fn listen(mut errors: impl AsyncRead + Unpin) -> String {
    let mut said = Vec::new();
    let _ = (&mut errors).take(MOST).read_to_end(&mut said).await;
    // Keeps reading, so that a full pipe does not block the hook.
    let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&said).into_owned()
}
