//! An agent's processes: one group, started clean and ended whole.

mod mark;
mod table;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal as Posix, kill_process_group, test_kill_process_group};
use stafette_core::{TurnKey, Usage};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep};

use crate::{GRACE, Job, Signal};
use mark::Mark;

/// Variables that every agent may see.
const HARMLESS: [&str; 7] = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL"];

/// Beginnings of variables that every agent may see.
const HARMLESS_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The variable that carries the idempotency key of the turn.
pub(crate) const KEY: &str = "STAFETTE_KEY";

/// The pipes of a group's leader.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

/// A living process group. To drop it is to kill it.
#[derive(Debug)]
pub(crate) struct Group {
    id: Pid,
    leader: Child,
    /// Where it is noted down; a group beside an agent's own is found by the turn's key alone.
    mark: Option<Mark>,
    over: bool,
}

impl Group {
    /// Starts `command` for a job, after ending what an earlier delivery of it has left behind.
    /// When this returns, the group is noted down where a later delivery finds it.
    pub(crate) async fn start(
        job: &Job,
        command: &[OsString],
    ) -> Result<(Group, Pipes), Box<Signal>> {
        let failed = |signal: fn(String, Usage) -> Signal, message: String| {
            Box::new(signal(message, Usage::default()))
        };
        let Some((program, arguments)) = command.split_first() else {
            let message = format!("agent {} has no command: give it one", job.order.agent);
            return Err(failed(Signal::fatal, message));
        };
        if !job.folder.is_dir() {
            let message = format!("the folder {} is not there", job.folder.display());
            return Err(failed(Signal::fatal, message));
        }
        let place = mark::place(&job.scratch, job.order.key);
        for left in mark::left_behind(&place, job.order.key, job.order.deliveries > 1) {
            end(left, || {}).await;
        }

        let mut spawning = Command::new(program);
        spawning.args(arguments).current_dir(&job.folder).env_clear().envs(environment(job));
        spawning.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        spawning.process_group(0).kill_on_drop(true);
        let mut leader = spawning.spawn().map_err(|error| {
            let program = program.to_string_lossy();
            let agent = &job.order.agent;
            match error.kind() {
                ErrorKind::NotFound => failed(
                    Signal::fatal,
                    format!("`{program}` was not found: install it, or change the command of {agent}"),
                ),
                ErrorKind::PermissionDenied => failed(
                    Signal::fatal,
                    format!("`{program}` may not be run: make it executable, or change the command of {agent}"),
                ),
                ErrorKind::ArgumentListTooLong => failed(
                    Signal::fatal,
                    format!("the prompt is too long for an argument: set prompt_via = \"stdin\" for {agent}"),
                ),
                _ => failed(Signal::recoverable, format!("`{program}` did not start: {error}")),
            }
        })?;
        let pipes = leader.stdin.take().zip(leader.stdout.take()).zip(leader.stderr.take());
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (Some(((input, output), errors)), Some(id)) = (pipes, id) else {
            return Err(failed(Signal::recoverable, "the process was gone at once".into()));
        };
        let mark = Mark::new(place, id);
        let mut group = Group { id, leader, mark: None, over: false };
        mark.write().map_err(|error| {
            let message = format!("cannot note the turn in {}: {error}", job.scratch.display());
            failed(Signal::recoverable, message)
        })?;
        group.mark = Some(mark);
        Ok((group, Pipes { input, output, errors }))
    }

    /// Starts a command beside an agent's own group: it sees what the agent may see, and `extra`,
    /// except that nobody can deny whose it is.
    pub(crate) fn beside(
        job: &Job,
        mut command: Command,
        extra: Vec<(String, String)>,
    ) -> io::Result<Group> {
        let extra = extra.into_iter().filter(|(name, _)| !name.starts_with("STAFETTE_"));
        command.env_clear().envs(environment(job)).envs(extra);
        command.process_group(0).kill_on_drop(true);
        let leader = command.spawn()?;
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let id = id.ok_or(ErrorKind::NotFound)?;
        Ok(Group { id, leader, mark: None, over: false })
    }

    /// Waits until the leader has ended. The others of its group may live on.
    pub(crate) async fn leader_ends(&mut self) -> ExitStatus {
        // A leader that cannot be waited for was taken away by somebody else: not a success.
        self.leader.wait().await.unwrap_or_else(|_| ExitStatus::from_raw(1 << 8))
    }

    /// Ends everyone in the group: asks, and kills after [`GRACE`].
    pub(crate) async fn end(&mut self) {
        if self.over {
            return;
        }
        let leader = &mut self.leader;
        end(self.id, || drop(leader.try_wait())).await;
        self.over = true;
        self.forget();
    }

    fn forget(&self) {
        if let Some(mark) = &self.mark {
            mark.remove();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.over {
            // Nobody is left to wait for a grace period, and an agent must not outlive its session.
            let _ = kill_process_group(self.id, Posix::KILL);
            self.forget();
        }
    }
}

/// Ends a group; `reap` is called between two looks at it.
///
/// A group's number can be taken by a stranger only after its last member is gone and the system
/// has used up all other numbers, so asking and killing within seconds hits nobody else.
async fn end(group: Pid, mut reap: impl FnMut()) {
    for signal in [Posix::TERM, Posix::KILL] {
        if kill_process_group(group, signal).is_err() {
            return;
        }
        let patience = Instant::now() + GRACE;
        let mut pause = Duration::from_millis(2);
        while Instant::now() < patience {
            reap();
            if !lives(group) {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

/// Whether anyone in the group still runs.
fn lives(group: Pid) -> bool {
    test_kill_process_group(group).is_ok() && table::runs(group)
}

/// The process that leads the turn's group, by the note that is kept of it.
pub(crate) fn leader(scratch: &Path, key: TurnKey) -> Option<i32> {
    mark::group(&mark::place(scratch, key))
}

/// Whether a process is of the leader's family: its group, its session or its descendants.
pub(crate) fn is_kin(caller: i32, leader: i32) -> bool {
    table::is_kin(caller, leader)
}

/// What an agent sees of the environment.
fn environment(job: &Job) -> Vec<(OsString, OsString)> {
    let profile = job.profile.as_ref();
    let allowed = |name: &str| {
        HARMLESS.contains(&name)
            || HARMLESS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || job.agent.env.iter().any(|allowed| allowed == name)
            || profile.is_some_and(|profile| profile.env.pass.iter().any(|pass| pass == name))
    };
    let mut seen: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(allowed)).collect();
    if let Some(profile) = profile {
        let set = profile.variables(job.agent.runner);
        seen.extend(set.map(|(name, value)| (name.into(), value.into())));
    }
    let key = job.order.key;
    let own = [
        (KEY, key.to_string()),
        ("STAFETTE_AGENT", job.order.agent.to_string()),
        ("STAFETTE_RUN", key.run.to_string()),
        ("STAFETTE_HANDOFF", key.handoff.to_string()),
        ("STAFETTE_ROUND", job.order.round.to_string()),
        ("STAFETTE_DELIVERY", job.order.deliveries.to_string()),
        ("STAFETTE_FRAME_WORD", job.frame_word.clone()),
    ];
    seen.extend(own.map(|(name, value)| (name.into(), value.into())));
    seen.extend(job.given.iter().map(|(name, value)| (name.into(), value.into())));
    seen
}
