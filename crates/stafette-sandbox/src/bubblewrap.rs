//! Bubblewrap: a program that builds a restricted view of the file system for another one.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::policy::real;
use crate::view::{self, Step};
use crate::{Pin, Policy};

/// The time limit for a command that does nothing, and the pause between two looks at it.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// Returns the path of bubblewrap, if it is installed and works here.
pub fn find_bubblewrap() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let program = std::env::split_paths(&path)
        .map(|folder| folder.join("bwrap"))
        .find(|program| program.is_file())?;
    // It needs namespaces, which some systems deny to their users.
    let mut probe = Command::new(&program);
    probe.args(["--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true"]);
    finish(&mut probe).is_ok_and(|status| status.success()).then_some(program)
}

/// Runs a command that does nothing. One that does not end would hold up every agent: it is ended.
pub(crate) fn finish(command: &mut Command) -> io::Result<ExitStatus> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(PAUSE);
    }
    child.kill()?;
    child.wait()?;
    Err(io::Error::new(io::ErrorKind::TimedOut, "it did not end"))
}

/// Returns the arguments with which only what the policy grants is visible, and the pins stay in their
/// places; `also` is what the launcher itself needs to see. Bubblewrap takes what it pins from the file
/// system outside: the launcher checks what has come of that.
pub(crate) fn arguments(
    policy: &Policy,
    pins: &[Pin],
    also: &[&Path],
    folder: Option<&Path>,
) -> Vec<OsString> {
    let mut all: Vec<OsString> =
        ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
            .map(OsString::from)
            .to_vec();
    let mut add = |option: &str, paths: &[&Path]| {
        all.push(option.into());
        all.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    for step in view::steps(policy, pins, also) {
        match &step {
            Step::Link { at, target } => add("--symlink", &[target, at]),
            Step::Bind { from, at, is_read_only: true } => add("--ro-bind-try", &[from, at]),
            Step::Bind { from, at, is_read_only: false } => add("--bind-try", &[from, at]),
            Step::Pin(Pin { at, is_read_only: true }) => {
                add("--ro-bind-try", &[at, at]);
                // The pins of the folders around it have covered what lay over it.
                let over = policy.swaps.iter().find(|swap| real(&swap.over) == *at);
                over.iter().for_each(|swap| add("--ro-bind-try", &[&swap.with, at]));
            }
            Step::Pin(Pin { at, is_read_only: false }) => add("--bind-try", &[at, at]),
            Step::Proc => add("--proc", &[Path::new("/proc")]),
            Step::Dev => add("--dev", &[Path::new("/dev")]),
            Step::Cover(path) => add("--tmpfs", &[path]),
        }
    }
    if let Some(folder) = folder {
        add("--chdir", &[folder]);
    }
    all.push("--".into());
    all
}
