//! The first contact with real agents: `stafette doctor --try`, with each command line as its vendor
//! publishes it, and nothing else on the search path.

mod agent;

pub use agent::Agent;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use thiserror::Error;

use crate::cli::InstallError;
use crate::tools::{self, ToolError};

/// The reason why agents could not be tried.
#[derive(Debug, Error)]
pub enum TrialError {
    /// An agent could not be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Node.js could not be installed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A file could not be written, or a program not be started.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The command did not print what was tried.
    #[error("`stafette doctor --try` printed no trials: {0}")]
    Stafette(String),
}

/// Returns `stafette doctor --try`, with these agents on its search path and `home` as the user's
/// home. Agents for the Agent Client Protocol are only there if `acp` says so.
///
/// # Errors
///
/// If an agent cannot be installed, or `home` cannot be written.
pub fn command(
    stafette: &Path,
    home: &Path,
    agents: &[Agent],
    acp: bool,
) -> Result<Command, TrialError> {
    let bin = home.join("bin");
    fs::create_dir_all(&bin)?;
    for agent in agents {
        for program in agent.programs(acp)? {
            symlink(&program, bin.join(program.file_name().unwrap_or_default()))?;
        }
    }
    symlink(tools::node_24()?.join("bin/node"), bin.join("node"))?;
    let user = home.join("user");
    fs::create_dir_all(&user)?;
    let mut path: OsString = bin.into_os_string();
    path.push(":/usr/local/bin:/usr/bin:/bin");
    let mut command = Command::new(stafette);
    command.args(["doctor", "--try"]).current_dir(&user).env_clear().stdin(Stdio::null());
    command.env("PATH", path).env("HOME", user).env("LANG", "C.UTF-8");
    Ok(command)
}

/// Tries an agent in one mode, which needs nothing but `home`, with these further `words` of the
/// command; returns the trials as `--json` prints them.
///
/// # Errors
///
/// If the agent cannot be installed, or Stafette prints something else.
pub fn trials(
    stafette: &Path,
    home: &Path,
    agent: Agent,
    runner: &str,
    words: &[&str],
) -> Result<Vec<Value>, TrialError> {
    let mut command = command(stafette, home, &[agent], runner == "acp")?;
    command.args(["--json", "--only", agent.name(), "--runner", runner]).args(words);
    let output = command.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match said["trials"].as_array() {
        Some(trials) if !trials.is_empty() => Ok(trials.clone()),
        _ => Err(TrialError::Stafette(text(&output.stdout) + &text(&output.stderr))),
    }
}
