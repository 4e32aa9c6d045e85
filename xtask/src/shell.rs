//! Runs other programs, and reports when they fail.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use thiserror::Error;

/// The failure of a program.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    /// It could not be started.
    #[error("`{line}` could not be started: {source}")]
    NotStarted { line: String, source: io::Error },
    /// It ended with an error.
    #[error("`{line}` ended with {status}")]
    Failed { line: String, status: ExitStatus },
}

/// Makes a cargo command in the workspace's folder.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in env::vars_os().filter(|(name, _)| is_in_the_way(name)) {
        command.env_remove(name);
    }
    command
}

/// True for variables that must not reach the tests: the repository of a git hook, a user's
/// settings, and cargo's variables about this program, which are wrong for the ones that it builds
/// next.
fn is_in_the_way(name: &OsString) -> bool {
    let prefixes = ["GIT_", "STAFETTE_", "CARGO_PKG_", "CARGO_MANIFEST_"];
    name.to_str().is_some_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
}

/// Runs a command with visible output.
pub(crate) fn run(command: &mut Command) -> Result<(), CommandError> {
    let line = line(command);
    eprintln!("$ {line}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CommandError::Failed { line, status }),
        Err(source) => Err(CommandError::NotStarted { line, source }),
    }
}

/// Returns the standard output of a command.
pub(crate) fn output(command: &mut Command) -> Result<String, CommandError> {
    let line = line(command);
    match command.stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(CommandError::Failed { line, status: output.status }),
        Err(source) => Err(CommandError::NotStarted { line, source }),
    }
}

/// Returns the output of a command, if it exists and works.
pub(crate) fn probe(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Returns a command as it would be typed.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = [name].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
