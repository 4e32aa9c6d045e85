//! An agent's processes: one group, started clean and ended as a whole.

mod mark;
pub mod orphans;
mod table;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{
    Pid, Signal as Posix, getpgrp, kill_process, kill_process_group, test_kill_process_group,
};
use stafette_core::command::environment as variables;
use stafette_core::run::session::SessionState;
use stafette_core::wire::phase;
use stafette_core::{AgentName, Failure, FailureKind, TurnKey, Usage};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep};

use crate::terminal::Thread;
use crate::tty::ProgramSide;
use crate::{GRACE, Job, Signal, Survivors};
use mark::Mark;

/// The variable that carries the idempotency key of the turn.
pub(crate) const KEY: &str = "STAFETTE_KEY";

/// The variables that only the processes of agents have. One that is taken away leaves the others.
pub(crate) const MARKS: [&str; 4] = [KEY, GROUP, "STAFETTE_AGENT", "STAFETTE_HANDOFF"];

/// The name of a daemon's process, which no other process can take from it.
const DAEMON: &str = "stafette-daemon";

/// The variable that names the group by which a process was started.
const GROUP: &str = "STAFETTE_GROUP";

/// The pipes of a group's leader.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

/// The output of a group's leader, when its input is a file.
#[derive(Debug)]
pub(crate) struct Outputs {
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

/// A living process group. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Group {
    id: Pid,
    leader: Child,
    /// The note on the group; a group beside an agent's own is found by the turn's key alone.
    mark: Option<Mark>,
    /// The variable that every process started here carries, also one that has left the group, and
    /// no other process does.
    carried: Option<String>,
    /// The ticks that its processes had worked when that was last asked.
    worked: u64,
    over: bool,
}

/// The unit in which the system counts work.
const TICK: Duration = Duration::from_millis(10);

/// A program that only waits takes less than this part of the time.
const IDLE: u128 = 10;

/// True if so many ticks in this time are more than a program takes that only waits.
pub(crate) fn is_work(ticks: u64, time: Duration) -> bool {
    u128::from(ticks) * TICK.as_millis() * IDLE > time.as_millis()
}

/// The ticks that what a program has started has worked, without the program itself.
pub(crate) fn worked_beside(leader: i32) -> u64 {
    Pid::from_raw(leader).map_or(0, |leader| table::worked(leader, false))
}

/// The note that a program with many turns has this one: it identifies the program's processes. It
/// is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TurnNote(Mark);

impl TurnNote {
    /// Notes down the process that has the turn. If that fails, the program cannot use its own
    /// channel, and everything else continues.
    pub(crate) fn new(job: &Job, leader: i32) -> Option<Self> {
        let mark = Mark::new(mark::place(&job.scratch, job.order.key), Pid::from_raw(leader)?);
        mark.write().ok()?;
        Some(TurnNote(mark))
    }
}

impl Drop for TurnNote {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// A command with everything that is needed to start it.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) command: Vec<OsString>,
    pub(crate) folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    agent: AgentName,
    key: TurnKey,
    delivered_before: bool,
    /// The path of the note on the group.
    place: PathBuf,
    /// The session that the program keeps on its own.
    pub(crate) thread: Option<Arc<Thread>>,
}

impl Launch {
    /// Prepares a command for one turn.
    fn of_turn(job: &Job, command: &[OsString]) -> Self {
        Launch {
            command: job.within(command),
            folder: job.folder.clone(),
            environment: environment(job),
            agent: job.order.agent.clone(),
            key: job.order.key,
            delivered_before: job.order.deliveries > 1,
            place: mark::place(&job.scratch, job.order.key),
            thread: None,
        }
    }

    /// Prepares a command that stays for the turns of its agent in a run.
    pub(crate) fn of_terminal(job: &Job, command: &[OsString]) -> Self {
        let mut launch = Launch::of_turn(job, command);
        launch.place = mark::terminal_place(&job.scratch, job.order.key.run, &job.order.agent);
        launch.thread = Thread::of(job).map(Arc::new);
        launch.environment.retain(|(name, _)| name != "TERM");
        launch.environment.push(("TERM".into(), "xterm-256color".into()));
        launch.environment.push(("COLORTERM".into(), "truecolor".into()));
        launch
    }

    /// The token in the program's environment.
    pub(crate) fn token(&self) -> Option<&str> {
        let given = self.environment.iter().find(|(name, _)| name == "STAFETTE_TOKEN");
        given.and_then(|(_, token)| token.to_str())
    }

    /// Checks that the command can be started, and ends what an earlier delivery of it has left
    /// behind.
    async fn prepare(&self) -> Result<(Command, String), Failure> {
        let words = match &self.thread {
            Some(thread) => thread.command(&self.command),
            None => self.command.clone(),
        };
        let Some((program, arguments)) = words.split_first() else {
            return Err(fatal(format!("agent {} has no command: give it one", self.agent)));
        };
        if !self.folder.is_dir() {
            return Err(fatal(format!("the folder {} is not there", self.folder.display())));
        }
        for left in mark::left_behind(&self.place, self.key, self.delivered_before) {
            end(left, || {}).await;
        }
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let group = unique();
        command.env(GROUP, &group).kill_on_drop(true);
        Ok((command, format!("{GROUP}={group}")))
    }

    fn did_not_start(&self, error: &io::Error) -> Failure {
        let program = self.command.first().map(|program| program.to_string_lossy());
        let program = program.unwrap_or_default();
        let agent = &self.agent;
        match error.kind() {
            ErrorKind::NotFound => fatal(format!(
                "`{program}` was not found: install it, or change the command of {agent}"
            )),
            ErrorKind::PermissionDenied => fatal(format!(
                "`{program}` may not be run: make it executable, or change the command of {agent}"
            )),
            ErrorKind::ArgumentListTooLong => fatal(format!(
                "the prompt is too long for an argument: set prompt_via = \"stdin\" for {agent}"
            )),
            _ => recoverable(format!("`{program}` did not start: {error}")),
        }
    }

    fn noted(&self, leader: Child, carried: String) -> Result<Group, Failure> {
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let Some(id) = id else {
            return Err(recoverable("the process was gone at once".into()));
        };
        let mark = Mark::new(self.place.clone(), id);
        let mut group =
            Group { id, leader, mark: None, carried: Some(carried), worked: 0, over: false };
        mark.write().map_err(|error| {
            let place = self.place.display();
            recoverable(format!("cannot note the turn in {place}: {error}"))
        })?;
        group.mark = Some(mark);
        Ok(group)
    }
}

fn fatal(message: String) -> Failure {
    Failure::new(FailureKind::Fatal, message)
}

fn recoverable(message: String) -> Failure {
    Failure::new(FailureKind::Recoverable, message)
}

impl Group {
    /// Starts `command` for a job, after ending what an earlier delivery of it has left behind.
    /// When this returns, the group is noted down where a later delivery finds it.
    pub(crate) async fn start(
        job: &Job,
        command: &[OsString],
    ) -> Result<(Group, Pipes), Box<Signal>> {
        let started = Group::start_with_pipes(&Launch::of_turn(job, command)).await;
        started.map_err(|failure| Box::new(Signal::Failed { failure, usage: Usage::default() }))
    }

    /// The same for a command that gets `text` as its standard input. All of it is there before the
    /// command starts: a daemon that dies now leaves no agent with half an order.
    pub(crate) async fn start_fed(
        job: &Job,
        command: &[OsString],
        text: &str,
    ) -> Result<(Group, Outputs), Box<Signal>> {
        let started = Group::start_with_input(&Launch::of_turn(job, command), text).await;
        started.map_err(|failure| Box::new(Signal::Failed { failure, usage: Usage::default() }))
    }

    async fn start_with_input(launch: &Launch, text: &str) -> Result<(Group, Outputs), Failure> {
        let (mut command, carried) = launch.prepare().await?;
        let input = spool(&launch.place.with_extension("input"), text).map_err(|error| {
            recoverable(format!("the prompt of {} cannot be written: {error}", launch.agent))
        })?;
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        let mut leader = command.spawn().map_err(|error| launch.did_not_start(&error))?;
        let Some((output, errors)) = leader.stdout.take().zip(leader.stderr.take()) else {
            return Err(recoverable("the process was gone at once".into()));
        };
        Ok((launch.noted(leader, carried)?, Outputs { output, errors }))
    }

    async fn start_with_pipes(launch: &Launch) -> Result<(Group, Pipes), Failure> {
        let (mut command, carried) = launch.prepare().await?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        let mut leader = command.spawn().map_err(|error| launch.did_not_start(&error))?;
        let pipes = leader.stdin.take().zip(leader.stdout.take()).zip(leader.stderr.take());
        let Some(((input, output), errors)) = pipes else {
            return Err(recoverable("the process was gone at once".into()));
        };
        Ok((launch.noted(leader, carried)?, Pipes { input, output, errors }))
    }

    /// Starts a command as the leader of a session with this terminal.
    pub(crate) async fn start_in(launch: &Launch, terminal: ProgramSide) -> Result<Group, Failure> {
        let (command, carried) = launch.prepare().await?;
        let leader = terminal.start(command).map_err(|error| launch.did_not_start(&error))?;
        launch.noted(leader, carried)
    }

    /// Starts a command beside an agent's own group: it sees the agent's environment and `extra`,
    /// which cannot override the variables that identify its owner.
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
        // The agent's own group ends its stray processes as well.
        Ok(Group { id, leader, mark: None, carried: None, worked: 0, over: false })
    }

    /// The process id of the leader, which is also the id of the group.
    pub(crate) fn id(&self) -> i32 {
        self.id.as_raw_pid()
    }

    /// Waits until the leader has ended. The others of its group may live on.
    pub(crate) async fn leader_ends(&mut self) -> ExitStatus {
        // A leader that cannot be waited for was reaped elsewhere: not a success.
        self.leader.wait().await.unwrap_or_else(|_| ExitStatus::from_raw(1 << 8))
    }

    /// True if its processes have worked since the last call, which was this long ago: more than a
    /// program does that only waits.
    pub(crate) fn has_worked(&mut self, time: Duration) -> bool {
        let worked = table::worked(self.id, true);
        let before = std::mem::replace(&mut self.worked, worked);
        is_work(worked.saturating_sub(before), time)
    }

    /// Interrupts all processes of the group, as Ctrl-C in a terminal would.
    pub(crate) fn interrupt(&self) {
        kill(self.id, Posix::INT);
    }

    /// Ends all processes of the group: asks, and kills after [`GRACE`].
    pub(crate) async fn end(&mut self) {
        if self.over {
            return;
        }
        let leader = &mut self.leader;
        end(self.id, || drop(leader.try_wait())).await;
        end_strays(self.carried.as_deref()).await;
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
            // No one is left to wait for a grace period, and an agent must not outlive its session.
            kill(self.id, Posix::KILL);
            for stray in strays(self.carried.as_deref()) {
                let _ = kill_process(stray, Posix::KILL);
            }
            self.forget();
        }
    }
}

/// An unnamed file with this text, to be read from its beginning.
fn spool(place: &Path, text: &str) -> io::Result<File> {
    stafette_disk::folder_of(place)?;
    let mut options = stafette_disk::private();
    let mut file = options.read(true).write(true).create(true).truncate(true).open(place)?;
    fs::remove_file(place)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// The turns that have a note in `scratch`.
pub(crate) fn noted(scratch: &Path) -> Vec<TurnKey> {
    let Ok(files) = fs::read_dir(scratch) else { return Vec::new() };
    files.flatten().filter_map(|file| mark::turn(&file.path())).collect()
}

/// Process groups that an earlier delivery of a turn has left running.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: Vec<Pid>,
}

impl Groups {
    /// Finds the processes of an earlier delivery of this turn, by the notes about it in `scratch`.
    pub(crate) fn left_by(turn: TurnKey, scratch: &Path) -> Option<Self> {
        let groups = mark::left_behind(&mark::place(scratch, turn), turn, true);
        (!groups.is_empty()).then_some(Groups { groups })
    }
}

impl Survivors for Groups {
    fn ended(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            while self.groups.iter().any(|group| lives(*group)) {
                sleep(Duration::from_millis(50)).await;
            }
        })
    }

    /// Asks them, and kills them after [`GRACE`].
    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async {
            for group in self.groups {
                end(group, || {}).await;
            }
        })
    }
}

/// Ends a group; `reap` is called between two checks of it.
///
/// A group's id can be taken by a stranger only after its last member is gone and the system has
/// used up all other ids, so asking and killing within seconds hits no other process.
async fn end(group: Pid, mut reap: impl FnMut()) {
    for signal in [Posix::TERM, Posix::KILL] {
        if !kill(group, signal) {
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

/// Ends all processes that were started with this variable, `NAME=value`, and still run: they were
/// left by a process that was killed. Where the system does not show the environment of processes,
/// none is ended.
pub async fn end_left_behind(variable: &str) {
    end_strays(Some(variable)).await;
}

/// Ends the processes that have left the group for a group or a session of their own: they are
/// known by the variable that they carry, since nothing else ties them to it.
async fn end_strays(carried: Option<&str>) {
    for signal in [Posix::TERM, Posix::KILL] {
        let patience = Instant::now() + GRACE;
        let mut asked: Vec<Pid> = Vec::new();
        while Instant::now() < patience {
            let left = strays(carried);
            if left.is_empty() {
                return;
            }
            for stray in left {
                if !asked.contains(&stray) {
                    // A process that is gone by now needs nothing.
                    let _ = kill_process(stray, signal);
                    asked.push(stray);
                }
            }
            sleep(Duration::from_millis(5)).await;
        }
    }
}

fn strays(carried: Option<&str>) -> Vec<Pid> {
    carried.map(table::carrying).unwrap_or_default()
}

/// A text that no other group has, of this process or of another.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{since}-{count}", std::process::id())
}

/// Sends a signal to all processes of a group and, when its leader leads a session, to the other
/// groups of that session: a shell with job control makes one for each job. Returns true if any
/// process received it.
fn kill(group: Pid, signal: Posix) -> bool {
    let others = table::groups_in_session(group);
    let others = others.into_iter().filter(|other| *other != group && *other != getpgrp());
    let mut reached = kill_process_group(group, signal).is_ok();
    for other in others {
        reached |= kill_process_group(other, signal).is_ok();
    }
    reached
}

/// True if a process of the group still runs, or of the session that its leader leads.
fn lives(group: Pid) -> bool {
    let runs = test_kill_process_group(group).is_ok() && table::runs(group);
    runs || !table::groups_in_session(group).is_empty()
}

/// The process that leads the turn's group, by the note on it. A program that gets its order with
/// its command can be quicker than the note that it has the turn: then the note of its terminal
/// counts.
pub(crate) fn leader(scratch: &Path, key: TurnKey, agent: &AgentName) -> Option<i32> {
    let terminal = || mark::group(&mark::terminal_place(scratch, key.run, agent));
    mark::group(&mark::place(scratch, key)).or_else(terminal)
}

/// True if a process is related to the leader: in its group or session, or a descendant.
pub(crate) fn is_kin(caller: i32, leader: i32) -> bool {
    table::is_kin(caller, leader)
}

/// A process and those that started it or took it over, the nearest first; only the process itself
/// where the system does not show more.
pub(crate) fn lineage(process: i32) -> impl Iterator<Item = i32> {
    table::ancestors(process).into_iter()
}

/// True if a daemon started the process or took it over, or if that cannot be told.
pub(crate) fn is_daemons(process: i32) -> bool {
    table::is_daemons(process)
}

/// The value of a variable that a process was started with, where the system shows it.
pub(crate) fn given(process: i32, name: &str) -> Option<String> {
    table::given(process, name)
}

/// The signal for a process that has died: how, and its last output.
pub(crate) fn died(status: ExitStatus, last: &[String]) -> Signal {
    let mut note = describe(status);
    if !last.is_empty() {
        note = format!("{note}; last output:\n{}", last.join("\n"));
    }
    Signal::Session { state: SessionState::Crashed, note }
}

/// Describes an exit status.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, signal) => format!("killed by signal {}", signal.unwrap_or(0)),
    }
}

/// The phase that the turn is about, and the task that its answer has to name; nothing outside of
/// phases.
fn asked(job: &Job) -> impl Iterator<Item = (&'static str, String)> {
    let offer = &job.order.offer;
    let phase = phase::asked(offer).map(|phase| ("STAFETTE_PHASE", phase.to_string()));
    let task = offer.foreign.as_ref().map(|foreign| ("STAFETTE_TASK_ID", foreign.id.clone()));
    // No program can be started with a variable that has an end within it.
    let task = task.filter(|(_, id)| phase.is_some() && !id.contains('\0'));
    phase.into_iter().chain(task)
}

/// The environment of an agent.
pub(crate) fn environment(job: &Job) -> Vec<(OsString, OsString)> {
    let profile = job.profile.as_ref();
    let is_named = |name: &str| {
        job.agent.env.iter().any(|allowed| allowed == name)
            || profile.is_some_and(|profile| profile.env.pass.iter().any(|pass| pass == name))
    };
    let mut seen = variables::seen(std::env::vars_os(), is_named);
    if let Some(profile) = profile {
        let set = profile.variables(job.agent.runner);
        seen.extend(set.map(|(name, value)| (name.into(), value.into())));
    }
    let mcp = crate::profile::setup(job).into_iter().flat_map(|setup| setup.env);
    let level = profile.map(|profile| &profile.permissions.of(job.agent.permissions).env);
    let level = level.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    let mcp = level.chain(mcp);
    seen.extend(mcp.map(|(name, value)| (name.into(), value.into())));
    let key = job.order.key;
    let own = [
        (KEY, key.to_string()),
        ("STAFETTE_AGENT", job.order.agent.to_string()),
        ("STAFETTE_RUN", key.run.to_string()),
        ("STAFETTE_HANDOFF", key.handoff.to_string()),
        ("STAFETTE_ROUND", job.order.round.to_string()),
        ("STAFETTE_DELIVERY", job.order.deliveries.to_string()),
        ("STAFETTE_FRAME_WORD", job.frame_word.clone()),
        ("STAFETTE_PROGRAM", job.program.to_string_lossy().into_owned()),
    ];
    seen.extend(own.map(|(name, value)| (name.into(), value.into())));
    seen.extend(asked(job).map(|(name, value)| (name.into(), value.into())));
    seen.extend(job.given.iter().map(|(name, value)| (name.into(), value.into())));
    seen.extend(job.confined.iter().flat_map(|confined| confined.variables.clone()));
    seen
}
