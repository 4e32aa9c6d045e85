//! Turns a policy into a command that runs under it.

use std::ffi::OsString;
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bubblewrap;
#[cfg(target_os = "linux")]
use crate::init::attend;
use crate::{Enforced, Mode, Pin, Places, Policy, Report};

/// The exit code of `sandboxed` if it could not become the command.
const REFUSED: u8 = 125;

/// The folders that are created empty, so that they can be pinned.
const RESERVED: [&str; 7] = [".claude", ".codex", ".gemini", ".stafette", ".git", "hooks", "info"];

/// The instructions for the launcher.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub policy: Policy,
    /// The places that have to stay as they are.
    pub pins: Vec<Pin>,
    /// The required strictness; decides if a partial sandbox is accepted.
    pub mode: Mode,
    /// True if bubblewrap has already set up the mounts.
    pub is_wrapped: bool,
    /// The process that starts the launcher, and with which the sandbox ends.
    pub parent: u32,
    /// An empty folder, at which the launcher makes the agent's view of the file system.
    pub root: PathBuf,
    pub report: PathBuf,
}

/// The reason why an agent does not run in its sandbox.
#[derive(Debug, Error)]
pub enum SandboxError {
    #[error("cannot use {}: {source}", path.display())]
    Spec { path: PathBuf, source: std::io::Error },
    #[error("the sandbox is strict and the system does not enforce all of it:\n{report}")]
    NotWhole { report: Box<Report> },
    #[error("usage: sandboxed --spec FILE -- COMMAND [ARGUMENT…]")]
    Usage,
    /// The command does not exist, or may not be run in the sandbox.
    #[error("cannot run {}: {source}", program.to_string_lossy())]
    Command { program: OsString, source: std::io::Error },
    /// Something else than what is there has been mounted at a place in a folder that the agent can
    /// write: it was made a link to that while the sandbox was prepared.
    #[error("{} was replaced while the sandbox was prepared; try again", path.display())]
    Replaced { path: PathBuf },
    /// The process that started the launcher has ended meanwhile.
    #[error("the process that started the sandbox has ended")]
    Abandoned,
}

/// A sandbox that is ready to be entered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// The arguments to put in front of the command.
    pub prefix: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
    /// The file to which the launcher writes its [`Report`] before it becomes the command.
    pub report: PathBuf,
}

impl Prepared {
    /// Returns the restrictions that took effect; `None` until the launcher has reported them.
    pub fn report(&self) -> Option<Report> {
        serde_json::from_slice(&std::fs::read(&self.report).ok()?).ok()
    }
}

/// Prepares a sandbox: `launcher` is the command line of this program as the launcher (its own path
/// and `sandboxed`), `scratch` a folder for its instructions and its report that the agent cannot
/// write. `folder` is where the command starts. If `bubblewrap` is given, it sets up the mounts.
/// Returns `None` if the mode is off.
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
    // Grants need existing folders; one that cannot be created is left out.
    for folder in policy.write.iter().filter(|path| **path != policy.temp && !path.exists()) {
        let _ = std::fs::create_dir_all(folder);
    }
    // Whatever the umask, and also if an earlier turn has left it open.
    let private = std::fs::Permissions::from_mode(0o700);
    stafette_disk::folder(&policy.temp)
        .and_then(|()| std::fs::set_permissions(&policy.temp, private))
        .map_err(|source| SandboxError::Spec { path: policy.temp.clone(), source })?;
    let root = scratch.join("root");
    stafette_disk::folder(&root).map_err(failed)?;
    policy.pinned.iter().filter(|path| policy.is_writable(path)).for_each(|path| reserve(path));
    let pins = policy.pins();
    let spec = Spec {
        policy: policy.clone(),
        pins: pins.clone(),
        mode,
        is_wrapped: bubblewrap.is_some(),
        parent: std::process::id(),
        root,
        report: report.clone(),
    };
    let text = serde_json::to_vec_pretty(&spec).map_err(|error| failed(error.into()))?;
    stafette_disk::write(&spec_file, text).map_err(failed)?;
    // The launcher opens it inside the sandbox, where nothing can be created.
    stafette_disk::write(&report, "").map_err(failed)?;
    let mut prefix = Vec::new();
    if let Some(program) = bubblewrap {
        let launcher = launcher.first().map(PathBuf::from).unwrap_or_default();
        let also = [launcher.as_path(), spec_file.as_path()];
        prefix.push(program.into());
        let mut arguments = bubblewrap::arguments(policy, &pins, &also, Some(folder));
        let at = arguments.len() - 1;
        arguments.splice(at..at, ["--bind".into(), report.clone().into(), report.clone().into()]);
        prefix.extend(arguments);
    }
    prefix.extend(launcher.iter().cloned());
    prefix.extend(["--spec".into(), spec_file.into_os_string(), "--".into()]);
    let mut variables = vec![("TMPDIR".into(), policy.temp.clone().into_os_string())];
    let identity = crate::policy::identity(policy).into_iter();
    variables.extend(identity.map(|(name, value)| (name.into(), value.into())));
    Ok(Some(Prepared { prefix, variables, report }))
}

/// Tries a whole sandbox on a command that does nothing, in a folder for it, and returns what took
/// effect: [`Mode::Strict`] starts where that is everything.
pub fn try_out(launcher: &[OsString], scratch: &Path) -> Result<Report, SandboxError> {
    let tree = scratch.join("tree");
    let policy = Policy::for_agent(&Places {
        home: scratch.join("home"),
        pinned: vec![tree.join("inner/.claude")],
        worktree: tree.clone(),
        temp: scratch.join("temp"),
        ..Places::default()
    });
    let failed = |source| SandboxError::Spec { path: scratch.to_owned(), source };
    stafette_disk::folder(&tree.join("inner")).map_err(failed)?;
    let bubblewrap = bubblewrap::find_bubblewrap();
    let prepared = prepare(Mode::Auto, &policy, launcher, scratch, &tree, bubblewrap.as_deref())?;
    let missing = || SandboxError::Usage;
    let prepared = prepared.ok_or_else(missing)?;
    let (program, rest) = prepared.prefix.split_first().ok_or_else(missing)?;
    let mut command = Command::new(program);
    command.args(rest).arg("true").current_dir(&tree);
    bubblewrap::finish(&mut command)
        .map_err(|source| SandboxError::Command { program: program.clone(), source })?;
    prepared.report().ok_or_else(|| failed(std::io::Error::other("the launcher said nothing")))
}

/// Creates what is pinned and missing, where it steers programs as soon as an agent makes it and is
/// nothing while it is empty: git ignores empty folders. Another file would be visible.
fn reserve(path: &Path) {
    let is_one_of = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    if path.symlink_metadata().is_ok() {
        return;
    }
    // Where it cannot be created, the agent cannot do it either, or the report says so.
    let _ = match () {
        () if is_one_of(&RESERVED) => std::fs::create_dir(path),
        // Never through a link that has come meanwhile.
        () if path.ends_with("config.worktree") => std::fs::File::create_new(path).map(drop),
        () => Ok(()),
    };
}

/// Runs the launcher: `--spec FILE -- COMMAND`. It must be called while the process has one thread,
/// and returns only if it did not become the command.
pub fn sandboxed(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    enter(arguments.into_iter().collect()).unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "sandboxed: {error}");
        ExitCode::from(REFUSED)
    })
}

fn enter(arguments: Vec<OsString>) -> Result<ExitCode, SandboxError> {
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
    let no_command = |source| SandboxError::Command { program: program.clone(), source };
    let mut command = Command::new(program);
    command.args(rest);
    // The one in the namespaces is this program again.
    let Some(place) = Place::of(&spec)? else { return attend().map_err(no_command) };
    let no_report = |source| SandboxError::Spec { path: spec.report.clone(), source };
    let mut report_file =
        std::fs::File::options().write(true).open(&spec.report).map_err(no_report)?;
    let report = restrict(&spec, &place)?;
    let mut write = |report: &Report| {
        let text = serde_json::to_vec(report)?;
        report_file.rewind()?;
        report_file.write_all(&text)
    };
    write(&report).map_err(no_report)?;
    if spec.mode == Mode::Strict && !report.is_whole() {
        return Err(SandboxError::NotWhole { report: Box::new(report) });
    }
    place.run(command).map_err(|source| {
        // The reader of the report knows from this that another try would end the same way.
        let _ = write(&Report { no_command: Some(source.to_string()), ..report });
        no_command(source)
    })
}

#[cfg(not(target_os = "linux"))]
fn attend() -> std::io::Result<ExitCode> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Where a process of the launcher runs that restricts itself.
enum Place {
    /// In namespaces that another one has prepared, as their first process.
    #[cfg(target_os = "linux")]
    Inside,
    /// In the namespaces of bubblewrap.
    Wrapped,
    /// In no namespaces of its own, for this reason.
    Bare(std::io::Error),
}

impl Place {
    /// `None` outside of the namespaces that it has prepared: it starts the one inside, and waits for
    /// it.
    #[cfg(target_os = "linux")]
    fn of(spec: &Spec) -> Result<Option<Place>, SandboxError> {
        use crate::init;
        let (place, parent) = match () {
            () if spec.is_wrapped => return Ok(Some(Place::Wrapped)),
            () if init::is_first() => (Some(Place::Inside), None),
            () => match init::separate() {
                Ok(()) => (None, Some(spec.parent)),
                Err(error) => return Ok(Some(Place::Bare(error))),
            },
        };
        let failed = |source| SandboxError::Spec { path: spec.root.clone(), source };
        match init::end_with(parent).map_err(failed)? {
            true => Ok(place),
            false => Err(SandboxError::Abandoned),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: &Spec) -> Result<Option<Place>, SandboxError> {
        Ok(Some(Place::Bare(std::io::ErrorKind::Unsupported.into())))
    }

    /// Runs a command, or becomes it; returns the exit code.
    fn run(&self, mut command: Command) -> std::io::Result<ExitCode> {
        match self {
            #[cfg(target_os = "linux")]
            Place::Inside => crate::init::run(command),
            _ => Err(command.exec()),
        }
    }
}

#[cfg(target_os = "linux")]
fn restrict(spec: &Spec, place: &Place) -> Result<Report, SandboxError> {
    use crate::mounts;
    let policy = &spec.policy;
    let (mounts, has_view) = match place {
        Place::Wrapped => match mounts::replaced(&spec.pins) {
            Ok(None) => (mounts::check(policy), true),
            Ok(Some(path)) => return Err(SandboxError::Replaced { path }),
            Err(source) => return Err(SandboxError::Spec { path: mounts::TABLE.into(), source }),
        },
        Place::Bare(error) => (Enforced::Not(format!("no namespaces: {error}")), false),
        Place::Inside => match mounts::put_in_place(policy, &spec.pins, &spec.root) {
            Ok(mounts) => (mounts, true),
            Err(error) => (Enforced::Not(format!("no view of the file system: {error}")), false),
        },
    };
    // In a view of its own all devices are the agent's, and its terminal, which has another name
    // outside, is the console; without one, only its terminal is.
    let devices = match has_view {
        true => ["/dev", "/dev/console"].map(PathBuf::from).to_vec(),
        false => mounts::terminal().into_iter().collect(),
    };
    let (files, network, scope, has_sockets) = match crate::fence::put_up(policy, &devices) {
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
    Ok(Report { files, mounts, network, scope, calls, no_command: None })
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &Spec, _: &Place) -> Result<Report, SandboxError> {
    let not = || Enforced::Not("there is no sandbox for this system yet".to_owned());
    Ok(Report {
        files: not(),
        mounts: not(),
        network: not(),
        scope: not(),
        calls: not(),
        no_command: None,
    })
}
