//! The limits of an agent's processes: from the workflow's setting to a command in front of the
//! agent's.
//!
//! An agent in a sandbox may change its worktree (or the project, when it has none), a temporary
//! folder of its own and its program's own state; it may read the system, installed tools and the
//! files of its command; and it reaches the daemon's socket. Keys in the user's home are hidden, and
//! what steers git, agents and other programs of the user cannot be changed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use stafette_agents::profile::{Profile, config_file, on_path};
use stafette_agents::{Confined, Job};
use stafette_core::change::{AUTOMATION, is_integration, is_lever, is_starter};
use stafette_core::workflow::{PermissionLevel, Sandbox};
use stafette_core::{RunId, Workflow};
use stafette_sandbox::{Mode, Places, Policy, Prepared, SandboxError, find_bubblewrap, prepare};
use stafette_workspace::{Worktree, remove_folder};

use crate::engine::Settings;

/// The folders of agents' settings that an agent must not make either.
const RESERVED: [&str; 4] = [".claude", ".codex", ".gemini", ".stafette"];

/// The files and folders of the project that are a workflow's own, relative to it.
#[derive(Clone, Debug)]
pub(crate) struct OwnPaths {
    parts: Vec<String>,
    intake: Option<String>,
}

impl OwnPaths {
    pub(crate) fn of(workflow: &Workflow) -> Self {
        OwnPaths { parts: workflow.parts(), intake: workflow.intake_folder() }
    }
}

/// A sandbox that is ready for an agent.
#[derive(Clone, Debug)]
pub(crate) struct Confinement {
    pub(crate) is_strict: bool,
    prepared: Prepared,
    temp: PathBuf,
}

impl Confinement {
    /// The protections that the sandbox lacks, once the launcher has tried; `None` when it has all.
    pub(crate) fn gaps(&self) -> Option<String> {
        let report = self.prepared.report().filter(|report| !report.is_whole())?;
        Some(report.to_string().trim_end().to_owned())
    }

    /// True if the command does not exist, or may not be run from within the sandbox.
    pub(crate) fn has_no_command(&self) -> bool {
        self.prepared.report().is_some_and(|report| report.no_command.is_some())
    }

    /// True if the launcher did not become the agent's command.
    pub(crate) fn has_refused(&self) -> bool {
        self.has_no_command() || (self.is_strict && self.gaps().is_some())
    }

    /// Removes the temporary folder of an agent that did not start.
    pub(crate) fn clear(&self) {
        // Files that cannot be removed do no harm.
        let _ = remove_folder(&self.temp);
    }
}

/// Prepares the sandbox of a job, if its agent has one. It reads files and programs, so it may take
/// a moment. `own` are the files and folders of the project that are the workflow's own.
pub(crate) fn confine(
    settings: &Settings,
    job: &Job,
    worktree: Option<&Worktree>,
    own: &OwnPaths,
) -> Result<Option<(Confined, Confinement)>, SandboxError> {
    let mode = match job.agent.sandbox {
        Sandbox::Off => return Ok(None),
        // Its own questions are off, so that nothing else would hold it where the sandbox holds little.
        Sandbox::Auto if job.agent.permissions == PermissionLevel::All => Mode::Strict,
        Sandbox::Auto => Mode::Auto,
        Sandbox::Strict => Mode::Strict,
    };
    let home = home();
    let name = format!("{}-{}", job.order.key.run, job.order.agent);
    let scratch = settings.scratch.join("sandbox").join(&name);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| SandboxError::Spec { path, source }
    };
    stafette_disk::folder(&scratch).map_err(failed(&scratch))?;
    let state = job.profile.as_ref().map(|profile| state(profile, &home)).unwrap_or_default();
    let mut policy = Policy::for_agent(&Places {
        home: home.clone(),
        worktree: worktree.map_or_else(|| job.folder.clone(), |worktree| worktree.path.clone()),
        git_own: worktree.map(|worktree| worktree.git_own().to_owned()),
        git_common: worktree.map(|worktree| worktree.git_common().to_owned()),
        branch: worktree.map(|worktree| worktree.branch.clone()),
        lent: worktree.map(Worktree::lent),
        temp: temporary(&home).join(&name),
        state,
        sockets: vec![settings.socket.clone()],
        pinned: match worktree {
            Some(worktree) => {
                [&worktree.path, &job.folder].into_iter().flat_map(|it| levers(it)).collect()
            }
            None => levers(&job.folder).into_iter().chain(steering(&job.folder, own)).collect(),
        },
    });
    let git = match worktree {
        Some(worktree) => vec![worktree.git_common().to_owned(), worktree.git_own().to_owned()],
        None => vec![job.folder.join(".git")],
    };
    for (number, git) in git.iter().enumerate() {
        policy.withhold(git, &scratch.join(format!("git-{number}"))).map_err(failed(git))?;
    }
    policy.read.extend(programs(settings, job, &home));
    policy.read.extend(config_file(job));
    // Often a link to a file of a service, in a folder that is not granted.
    policy.read.extend(Path::new("/etc/resolv.conf").canonicalize());
    policy.closed.extend(settings.closed.iter().cloned());
    policy.hidden.extend(other_projects(&settings.state));
    let launcher: [OsString; 2] = [settings.program.clone().into(), "sandboxed".into()];
    let bubblewrap = find_bubblewrap();
    let prepared = prepare(mode, &policy, &launcher, &scratch, &job.folder, bubblewrap.as_deref())?;
    Ok(prepared.map(|prepared| {
        let confined = Confined {
            prefix: prepared.prefix.clone(),
            variables: prepared.variables.clone(),
            pinned: policy.pinned,
        };
        (confined, Confinement { is_strict: mode == Mode::Strict, prepared, temp: policy.temp })
    }))
}

/// The state folders of the user's other projects, in which their sockets are: this agent is nobody
/// there.
fn other_projects(state: &Path) -> Vec<PathBuf> {
    let beside = state.parent().map(std::fs::read_dir).into_iter().flatten().flatten().flatten();
    let others = beside.map(|entry| entry.path()).filter(|path| path != state);
    others.filter(|path| path.join("project.json").is_file()).collect()
}

/// The paths in a folder that make agents start programs. Some are reserved where they are missing.
fn levers(folder: &Path) -> Vec<PathBuf> {
    let mut all = RESERVED.map(|name| folder.join(name)).to_vec();
    all.extend(named(folder, is_lever));
    all.sort();
    all.dedup();
    all
}

/// The paths in the project that start programs of the user, as soon as they are changed there and
/// not in a worktree: what shells, editors and hooks obey, continuous integration, the parts of the
/// workflow, and the folder in which a file starts a run.
fn steering(project: &Path, own: &OwnPaths) -> Vec<PathBuf> {
    let plain = |path: &String| project.join(path).components().collect::<PathBuf>();
    let mut all = named(project, |name| is_starter(name) || is_integration(name));
    all.extend(AUTOMATION.iter().map(|folder| project.join(folder)).filter(|path| path.exists()));
    all.extend(own.parts.iter().map(plain).filter(|path| path.is_file()));
    all.extend(own.intake.iter().map(plain).inspect(|folder| {
        // What is not there cannot be pinned. Where it cannot be made, the agent cannot do it either.
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder);
    }));
    all
}

fn named(folder: &Path, is_one: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter(|entry| is_one(&entry.file_name().to_string_lossy()));
    found.map(|entry| entry.path()).collect()
}

/// Removes the temporary files of a run's agents.
pub(crate) fn leave(settings: &Settings, run: RunId) {
    let own = format!("{run}-");
    for folder in [temporary(&home()), settings.scratch.join("sandbox")] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)) {
            // Files that cannot be removed do no harm.
            let _ = remove_folder(&entry.path());
        }
    }
    // Inputs of turns that ended while no daemon was there.
    let entries = std::fs::read_dir(&settings.scratch).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&own) && name.ends_with(".json") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The longest first line of a script, in bytes.
const FIRST_LINE: u64 = 512;

/// What the interpreter of a script is made of, wherever it is installed: Node.js and Python are often
/// not the system's.
fn interpreter(program: &Path, home: &Path) -> Vec<PathBuf> {
    let Some(found) = named_first(program) else { return Vec::new() };
    let real = found.canonicalize().unwrap_or_else(|_| found.clone());
    let installed = |program: &Path| {
        let bin = program.parent().filter(|folder| folder.ends_with("bin"));
        let prefix = bin.and_then(Path::parent).filter(|prefix| !home.starts_with(prefix));
        let parts = |prefix: &Path| ["bin", "lib", "lib64", "pyvenv.cfg"].map(|it| prefix.join(it));
        prefix.map(parts).into_iter().flatten().collect::<Vec<_>>()
    };
    [installed(&found), installed(&real), vec![found, real]].concat()
}

/// The interpreter that the first line of a script names, by its path or for `env` to find.
fn named_first(program: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    // It can be a file of the project.
    let file = stafette_disk::open(program, u64::MAX).ok()?;
    BufReader::new(file.take(FIRST_LINE)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let first = words.next()?;
    match Path::new(first).file_name()? == "env" {
        true => on_path(words.find(|word| !word.starts_with('-') && !word.contains('='))?),
        false => on_path(first),
    }
}

fn home() -> PathBuf {
    // Without a home folder there is nothing in it to hide.
    std::env::var_os("HOME").map_or_else(|| PathBuf::from("/nonexistent"), PathBuf::from)
}

/// The folder for agents' temporary folders: not in the project, whose `.stafette` is closed to
/// them, and not where other users could have put files.
fn temporary(home: &Path) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|cache| cache.is_absolute()).unwrap_or_else(|| home.join(".cache"));
    cache.join("stafette/tmp")
}

/// The folders in which a program keeps its own state, as far as they are known here.
fn state(profile: &Profile, home: &Path) -> Vec<PathBuf> {
    let place = |word: &String| match (word.strip_prefix("~/"), word.strip_prefix('$')) {
        (Some(rest), _) => Some(home.join(rest)),
        (None, Some(name)) => std::env::var_os(name).map(PathBuf::from),
        (None, None) => Some(PathBuf::from(word)),
    };
    let places = profile.sandbox.state.iter().filter_map(place);
    places.filter(|place| place.is_absolute()).collect()
}

/// Folders with files and sockets of all kinds of programs.
const SHARED: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/var/run", "/dev/shm"];

/// The paths that must be readable for the agent's command to start and to reach the daemon: each
/// program, and its folder unless that is a whole home or shared by all programs.
fn programs(settings: &Settings, job: &Job, home: &Path) -> Vec<PathBuf> {
    let mut all = vec![settings.program.clone()];
    let own = job.agent.command.first().cloned();
    let profile = job.profile.as_ref().and_then(|profile| profile.command(job.agent.runner));
    let program = own.or_else(|| profile.and_then(|command| command.first().cloned()));
    let program = program.and_then(|program| on_path(&program).or(Some(program.into())));
    all.extend(program.filter(|program: &PathBuf| program.is_absolute()));
    all.extend(job.agent.script.as_ref().map(|script| job.folder.join(script)));
    let mut places = Vec::new();
    for program in all {
        let real = program.canonicalize().unwrap_or_else(|_| program.clone());
        for program in [program, real] {
            let is_shared = |folder: &Path| {
                home.starts_with(folder) || SHARED.iter().any(|shared| folder == Path::new(shared))
            };
            let beside = program.parent().filter(|folder| !is_shared(folder));
            places.extend(beside.map(Path::to_owned));
            // A program of npm needs the packages that were installed with it.
            let packages = program.ancestors().filter(|folder| folder.ends_with("node_modules"));
            places.extend(packages.last().map(Path::to_owned));
            places.extend(interpreter(&program, home));
            places.push(program);
        }
    }
    places.sort();
    places.dedup();
    places
}
