//! From a policy to a command that runs under it.

use std::ffi::OsString;
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bubblewrap;
use crate::{Enforced, Mode, Policy, Report};

/// What `sandboxed` ends with when it did not become the command.
const REFUSED: u8 = 125;

/// What the launcher is to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What is allowed.
    pub policy: Policy,
    /// How much of it must hold.
    pub mode: Mode,
    /// Whether bubblewrap has seen to the mounts.
    pub is_wrapped: bool,
    /// Where the report goes.
    pub report: PathBuf,
}

/// Why an agent does not run in its sandbox.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// The order to the launcher could not be written or read.
    #[error("cannot use {}: {source}", path.display())]
    Spec {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// The system cannot enforce all of a strict policy.
    #[error("the sandbox is strict and the system does not enforce all of it:\n{report}")]
    NotWhole {
        /// What it does enforce.
        report: Box<Report>,
    },
    /// The launcher was called in another way than we call it.
    #[error("usage: sandboxed --spec FILE -- COMMAND [ARGUMENT…]")]
    Usage,
    /// The command is not there, or may not be run from within.
    #[error("cannot run {}: {source}", program.to_string_lossy())]
    Command {
        /// The command.
        program: OsString,
        /// Why not.
        source: std::io::Error,
    },
}

/// A sandbox that is ready to be entered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// What to put in front of the command.
    pub prefix: Vec<OsString>,
    /// Variables to set for it.
    pub variables: Vec<(OsString, OsString)>,
    /// Where the launcher writes its [`Report`] before it becomes the command.
    pub report: PathBuf,
}

impl Prepared {
    /// What was enforced; nothing before the launcher got that far.
    #[must_use]
    pub fn report(&self) -> Option<Report> {
        serde_json::from_slice(&std::fs::read(&self.report).ok()?).ok()
    }
}

/// Makes a sandbox ready: `launcher` is how this program is called as the launcher (its own path
/// and `sandboxed`), `scratch` a folder for its order and its report that the agent may not write.
/// `folder` is where the command starts. Where there is `bubblewrap`, it sees to the mounts. Nothing
/// is to be put in front when the mode is off.
pub fn prepare(
    mode: Mode,
    policy: &Policy,
    launcher: &[OsString],
    scratch: &Path,
    folder: &Path,
    bubblewrap: Option<&Path>,
) -> Result<Option<Prepared>, SandboxError> {
    if mode == Mode::Off {
        return Ok(None);
    }
    let spec_file = scratch.join("sandbox.json");
    let report = scratch.join("sandbox-report.json");
    let failed = |source| SandboxError::Spec { path: spec_file.clone(), source };
    // Grants and pins are for what is there; what cannot be made is left out. Git does not see an
    // empty folder, so that one can stand where none must be made. A file would be seen.
    let is_folder = |path: &&PathBuf| path.extension().is_none() && !path.ends_with(".git");
    let pinned = policy.pinned.iter().filter(is_folder);
    for folder in policy.write.iter().chain(pinned).filter(|path| !path.exists()) {
        let _ = std::fs::create_dir_all(folder);
    }
    let spec = Spec {
        policy: policy.clone(),
        mode,
        is_wrapped: bubblewrap.is_some(),
        report: report.clone(),
    };
    let text = serde_json::to_vec_pretty(&spec).map_err(|error| failed(error.into()))?;
    std::fs::write(&spec_file, text).map_err(failed)?;
    // The launcher opens it from within, where nothing can be made.
    std::fs::write(&report, "").map_err(failed)?;
    let mut prefix = Vec::new();
    if let Some(program) = bubblewrap {
        let launcher = launcher.first().map(PathBuf::from).unwrap_or_default();
        let also = [launcher.as_path(), spec_file.as_path()];
        prefix.push(program.into());
        let mut arguments = bubblewrap::arguments(policy, &also, Some(folder));
        let at = arguments.len() - 1;
        arguments.splice(at..at, ["--bind".into(), report.clone().into(), report.clone().into()]);
        prefix.extend(arguments);
    }
    prefix.extend(launcher.iter().cloned());
    prefix.extend(["--spec".into(), spec_file.into_os_string(), "--".into()]);
    let variables = vec![("TMPDIR".into(), policy.temp.clone().into_os_string())];
    Ok(Some(Prepared { prefix, variables, report }))
}

/// The launcher: `--spec FILE -- COMMAND`. It must be called while the process has one thread, and
/// returns only when it did not become the command.
pub fn sandboxed(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Err(error) = enter(arguments.into_iter().collect());
    let _ = writeln!(std::io::stderr(), "sandboxed: {error}");
    ExitCode::from(REFUSED)
}

fn enter(arguments: Vec<OsString>) -> Result<std::convert::Infallible, SandboxError> {
    let [flag, spec_file, dashes, program, rest @ ..] = arguments.as_slice() else {
        return Err(SandboxError::Usage);
    };
    if flag != "--spec" || dashes != "--" {
        return Err(SandboxError::Usage);
    }
    let spec_file = PathBuf::from(spec_file);
    let failed = |source| SandboxError::Spec { path: spec_file.clone(), source };
    let text = std::fs::read(&spec_file).map_err(failed)?;
    let spec: Spec = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    let no_report = |source| SandboxError::Spec { path: spec.report.clone(), source };
    let mut report_file =
        std::fs::File::options().write(true).open(&spec.report).map_err(no_report)?;
    let report = restrict(&spec);
    let mut write = |report: &Report| {
        let text = serde_json::to_vec(report)?;
        report_file.rewind()?;
        report_file.write_all(&text)
    };
    write(&report).map_err(no_report)?;
    if spec.mode == Mode::Strict && !report.is_whole() {
        return Err(SandboxError::NotWhole { report: Box::new(report) });
    }
    let source = Command::new(program).args(rest).exec();
    // The one who looks at the report knows that another try would end the same way.
    let _ = write(&Report { no_command: Some(source.to_string()), ..report });
    Err(SandboxError::Command { program: program.clone(), source })
}

#[cfg(target_os = "linux")]
fn restrict(spec: &Spec) -> Report {
    let policy = &spec.policy;
    let mounts = match spec.is_wrapped {
        true => crate::mounts::check(policy),
        false => crate::mounts::put_in_place(policy),
    };
    let (files, network, scope, has_sockets) = match crate::fence::put_up(policy) {
        Ok(fence) => (fence.files, fence.network, fence.scope, fence.has_sockets),
        Err(error) => {
            let not = || Enforced::Not(error.to_string());
            (not(), not(), not(), false)
        }
    };
    let mounts = match mounts {
        Enforced::Not(why) if has_sockets => {
            Enforced::Not(format!("{why}; what is pinned can be changed"))
        }
        Enforced::Not(why) => {
            Enforced::Not(format!("{why}; what is pinned can be changed, and sockets be reached"))
        }
        other => other,
    };
    let calls = match (crate::calls::step_down(), crate::calls::deny()) {
        (Ok(()), Ok(())) => Enforced::Fully,
        (Err(error), Ok(())) => Enforced::Partly(format!("capabilities stay: {error}")),
        (_, Err(error)) => Enforced::Not(error.to_string()),
    };
    Report { files, mounts, network, scope, calls, no_command: None }
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &Spec) -> Report {
    let not = || Enforced::Not("there is no sandbox for this system yet".to_owned());
    Report {
        files: not(),
        mounts: not(),
        network: not(),
        scope: not(),
        calls: not(),
        no_command: None,
    }
}
