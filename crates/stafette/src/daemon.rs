//! The daemon: one for each project, found by its socket.

mod background_tasks;
pub(crate) mod door;
pub(crate) mod ground;
mod knowledge_gate;
pub(crate) mod orphans;
mod scrub;
mod telemetry;
mod trusted;

use std::fs::{self, File};
use std::mem::ManuallyDrop;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stafette_core::redact::Redactor;
use stafette_engine::{Engine, EngineError, Plugins, Settings, clock, crash};
use stafette_files::Coordination;
use stafette_hooks::Hooks;
use stafette_server::{Edge, Problem, ReadWorkflow, Tokens};
use stafette_stages::{Stages, StagesSettings};
use stafette_store::Store;
use stafette_telemetry::rotation;
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::project::Project;
use crate::state::moved::Moved;
use crate::store::{self, Home};
use crate::window::Signals;
use crate::{log, state, trust};
use background_tasks::BackgroundTasks;
use door::{Listens, Wanted};
use ground::Ground;
use knowledge_gate::KnowledgeGate;
use trusted::TrustedWorkflows;

/// The time limit for a daemon's first answer, or its end. One that dies is not waited for, so this
/// is for machines that are slow, and for stores that are large.
const START: Duration = Duration::from_secs(60);

/// The time after which a caller is told that it waits for a daemon's end.
const TELL: Duration = Duration::from_secs(2);

/// Connects to the project's daemon, which is started when none runs. Stopped runs stay stopped
/// until the user acts: looking at them must not start agents.
pub(crate) async fn reach(project: &Project) -> Result<Client, Failure> {
    tell_older(project).await;
    let client = Client::new(&project.socket()?);
    if !client.is_up().await? {
        start_again(project, &client).await?;
    }
    Ok(client)
}

/// Starts a daemon that only shows what exists. It listens where the one before did, if that was
/// killed: whoever ends one says so, and then nothing is noted.
async fn start_again(project: &Project, client: &Client) -> Result<(), Failure> {
    let place = state::place(&project.root);
    let before = Listens::read(&place);
    let mut arguments = vec!["--held".to_owned()];
    arguments.extend(before.iter().flat_map(Listens::arguments));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    start(project, client, &arguments).await?;
    let Some(before) = before else { return Ok(()) };
    let said = match Listens::read(&place) {
        Some(now) => {
            format!("the daemon was killed; one that listens on {} is there again", now.url)
        }
        None => format!(
            "the daemon was killed, and the one that is there now does not listen on {}: see \
             `stafette state` for its log",
            before.url
        ),
    };
    Output::new(false).say(said);
    Ok(())
}

/// Says that a state lies in the project, where none is read, or at the place of a path that the
/// project does not have any more.
pub(crate) async fn tell_older(project: &Project) {
    let older = state::older::find(&project.root).await.map(|older| older.line());
    let moved = moved(project).await.map(|moved| moved.line());
    older.into_iter().chain(moved).for_each(|line| Output::new(false).say(line));
}

/// The state that the project had at another path, as long as it has no runs where it is now.
pub(crate) async fn moved(project: &Project) -> Option<Moved> {
    let moved = state::moved::find(&project.root)?;
    matches!(store::has_runs(&project.store()).await, Ok(false)).then_some(moved)
}

/// Starts a daemon, and returns once it answers.
pub(crate) async fn start(
    project: &Project,
    client: &Client,
    arguments: &[&str],
) -> Result<(), Failure> {
    // A daemon that is stopping still holds resources that the next one needs.
    wait_until_down(project, client).await?;
    let child = spawn(project, arguments)?;
    wait_until_up(project, client, child).await
}

/// Ends a daemon that only shows what exists: whoever works in the foreground needs its place. One
/// that works is left alone. Returns true if it has ended one.
pub(crate) async fn end_held(project: &Project) -> Result<bool, Failure> {
    let client = Client::new(&project.socket()?);
    if !client.is_up().await? {
        return Ok(false);
    }
    let health: Value = client.get("/healthz").await?;
    if health["held"] != true {
        return Ok(false);
    }
    let _: Value = client.post("/v1/stop", &json!({})).await?;
    wait_until_gone(project, &client, &health["pid"]).await?;
    Ok(true)
}

/// Connects to the project's daemon, if one runs.
pub(crate) async fn find(project: &Project) -> Result<Client, Failure> {
    let client = Client::new(&project.socket()?);
    match client.is_up().await? {
        true => Ok(client),
        false => Err(Failure::new(Exit::NoDaemon, "No daemon runs for this project")
            .fix("start it with `stafette up`")),
    }
}

/// The failure for a daemon whose process does not begin.
pub(crate) fn not_started(error: &std::io::Error) -> Failure {
    Failure::new(Exit::NoDaemon, "Cannot start the daemon")
        .because(error)
        .fix("raise the limits of this shell (`ulimit -a`), or see `stafette up --foreground`")
}

/// Starts a daemon that outlives this process.
fn spawn(project: &Project, arguments: &[&str]) -> Result<Child, Failure> {
    let state = project.state()?;
    let log = log_file(&state)?;
    let failed = |error: std::io::Error| not_started(&error);
    let errors = log.try_clone().map_err(failed)?;
    let mut command = Command::new(program()?);
    match &project.database {
        Some(url) => command.env(store::VARIABLE, url),
        None => command.env_remove(store::VARIABLE),
    };
    command
        .args(["up", "--foreground", "--json"])
        .args(arguments)
        .arg("--project")
        .arg(&project.root)
        .current_dir(&project.root)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(failed)
}

async fn wait_until_up(
    project: &Project,
    client: &Client,
    mut child: Child,
) -> Result<(), Failure> {
    let since = Instant::now();
    while since.elapsed() < START {
        if client.is_up().await? {
            return Ok(());
        }
        // The one that we started gives up when another one is starting, which holds the lock.
        let gave_up = child.try_wait().is_ok_and(|status| status.is_some());
        if gave_up && ground::lock(project)?.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let log = project.log();
    let text = fs::read_to_string(&log).unwrap_or_default();
    // A daemon that cannot start reports the reason in its last line, in the form for programs.
    let last = text.lines().last().unwrap_or_default();
    if let Some(failure) = Failure::from_json(last) {
        return Err(failure);
    }
    // On a full disk not even the log can be written: then the store shows the reason.
    if let Ok(Home::File(path)) = Home::of(project) {
        store::open_file(&path).map(drop)?;
    }
    Err({
        Failure::new(Exit::NoDaemon, "The daemon does not start")
            .why(last)
            .fix(format!("look at {}, or run `stafette up --foreground`", log.display()))
    })
}

/// Returns once no daemon holds the project any more, or one answers after all.
async fn wait_until_down(project: &Project, client: &Client) -> Result<(), Failure> {
    let since = Instant::now();
    let mut told = false;
    while since.elapsed() < START {
        if ground::lock(project)?.is_some() || client.is_up().await? {
            return Ok(());
        }
        if !told && since.elapsed() > TELL {
            told = true;
            Output::new(false)
                .say(format!("waiting for the daemon (pid {}) to end…", ground::holder(project)));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (pid, root) = (ground::holder(project), project.root.display());
    let find = match pid.as_str() {
        // One of an older release says nothing in the lock.
        "?" => format!("find it with `fuser {root}`, end it"),
        pid => format!("see {}, end it with `kill -KILL {pid}`", project.log().display()),
    };
    Err(Failure::new(Exit::NoDaemon, format!("The daemon (pid {pid}) does not end"))
        .fix(format!("{find}, and try again: nothing that it acknowledged is lost")))
}

/// Returns once the daemon with this process id no longer holds the project. It answers as long as
/// it waits for running work.
pub(crate) async fn wait_until_gone(
    project: &Project,
    client: &Client,
    pid: &Value,
) -> Result<(), Failure> {
    let since = Instant::now();
    while since.elapsed() < START && client.is_up().await? {
        let health: Result<Value, Failure> = client.get("/healthz").await;
        if !health.is_ok_and(|health| health["pid"] == *pid) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    wait_until_down(project, client).await
}

/// The number of files that the daemon may have open, if its user may have that many: connections at
/// its three doors (4,600), and as much again for runs.
const FILES: u64 = 8192;

/// Raises the limit for open files, which is 1,024 in most shells. Programs that agents start have the
/// same limit.
fn allow_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(FILES, |maximum| maximum.min(FILES));
    if limit.current.is_some_and(|current| current < most)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit })
    {
        tracing::debug!(%error, "the limit for open files stays");
    }
}

/// Opens the daemon's log, for appending.
pub(crate) fn log_file(state: &Path) -> Result<File, Failure> {
    let path = log_path(state);
    rotation::open(&path).map_err(|error| state::not_written(&path, &error))
}

fn log_path(state: &Path) -> PathBuf {
    state.join("daemon.log")
}

/// The path of this program, for starting it once more.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        Failure::failed("Cannot find the program file of stafette")
            .because(&error)
            .fix("install it again, and start it from there")
    })
}

/// The settings of a daemon.
#[derive(Clone, Debug, Default)]
pub(crate) struct Daemon {
    pub(crate) door: cli::Door,
    /// The hash of a workflow that is trusted because its caller wrote it.
    pub(crate) trusted: Option<String>,
    /// True if no other process should find it: a run in the foreground.
    pub(crate) private: bool,
    /// True if stopped runs are not continued before the user acts.
    pub(crate) held: bool,
}

/// A daemon that callers can reach.
#[derive(Debug)]
struct Open {
    /// The address of its page, if it has one.
    url: Option<String>,
    ground: Ground,
    tasks: [JoinHandle<()>; 3],
}

impl Daemon {
    /// Runs until it is asked to stop.
    pub(crate) async fn run(
        self,
        project: &Project,
        output: Output,
        ready: impl FnOnce(),
    ) -> Result<(), Failure> {
        tell_older(project).await;
        let state = project.state()?;
        // Held until the process is gone: tasks that outlive this function still close their files.
        let lock = ManuallyDrop::new(ground::take(project).await?);
        let mut ground = Ground::new(project, &state, &lock);
        allow_files();
        let redactor = Redactor::of_environment(std::env::vars());
        log::start(&log_path(&state), redactor.clone());
        clock::arm().map_err(|error| {
            Failure::failed("Cannot start the daemon")
                .because(&error)
                .fix(format!("unset {}", clock::VARIABLE))
        })?;
        let trusted = TrustedWorkflows::open(project, &state, self.trusted.clone());
        let read = trusted.reader();
        let stages = stages(project, &state, &read, redactor.clone())?;
        let opened = store::open(project, true).await?;
        let knowing = KnowledgeGate::new(stages.clone(), read.clone(), trusted);
        let engine = open(project, &state, opened.store.clone(), knowing, redactor).await?;
        scrub::tail(&engine).await;
        start_own(&engine, &read);
        let stop = Arc::new(Notify::new());
        let tokens = tokens(project)?;
        let (observed, watch) = telemetry::observe(&engine, opened, &state).await?;
        let edge =
            Edge::new(engine.clone(), read.clone(), stop.clone(), tokens).observed_by(observed);
        let edge = match &stages {
            Some(stages) => edge.knowing(stages.clone()),
            None => edge,
        };
        coordinate(project, &engine, &state, read.clone())?;
        let read = Arc::new(move || read().map_err(|problem| problem.title));
        let places = (project.root.as_path(), state.as_path());
        let (mut around, edge) =
            BackgroundTasks::begin(&engine, edge, read, watch.alarms(), places, self.private).await;
        if let Some(stages) = &stages {
            around.with(stages, &engine);
        }
        let (socket, for_agents) = (project.own_socket(), project.agents_socket());
        let open = async || {
            let (people, agents) = (listen(&socket)?, listen(&for_agents)?);
            ground.note(&socket);
            ground.note(&for_agents);
            ground.note(&state.join("knowledge.db"));
            let listens = match self.wanted(project)? {
                Some(wanted) => match wanted.open(&edge).await {
                    // It was asked for another daemon: who only looks now is shown what there is.
                    Err(failure) if self.held && self.door.listen.is_some() => {
                        tracing::warn!(%failure.what, %failure.why, "the daemon does not listen");
                        None
                    }
                    opened => Some(opened?),
                },
                None => None,
            };
            // Without the note a second `up` with flags is refused, which says what to do.
            if let Err(error) = Listens::note(listens.as_ref(), &state) {
                tracing::warn!(%error, "where the daemon listens is not noted");
            }
            let url = listens.map(|listens| listens.url);
            let tasks = [
                tokio::spawn(edge.clone().serve(people)),
                tokio::spawn(edge.clone().serve_agents(agents)),
                tokio::spawn(scrub::whole(engine.clone())),
            ];
            Ok(Open { url, ground, tasks })
        };
        let until = async |open: &Open| {
            crash::arm();
            self.announce(&output, open.url.as_deref(), &socket);
            ready();
            tokio::select! {
                () = told_to_stop(&stop) => None,
                lost = open.ground.lost(&**engine.store()) => Some(lost),
            }
        };
        let close = async |open: Open, lost: &Option<Failure>| {
            match lost {
                None => around.end().await,
                // What is at their places now is not theirs to write.
                Some(_) => drop(around),
            }
            open.tasks.iter().for_each(JoinHandle::abort);
            if lost.is_none() {
                // The next one listens where its own flags say.
                let _ = Listens::note(None, &state);
            }
            for own in [&socket, &for_agents].into_iter().filter(|own| open.ground.owns(own)) {
                let _ = fs::remove_file(own);
            }
        };
        let lost = engine.serve(self.held, open, until, close).await?;
        if lost.is_none() {
            watch.end().await;
        }
        engine.store().close().await;
        lost.map_or(Ok(()), Err)
    }

    /// Says where it is reached.
    fn announce(&self, output: &Output, url: Option<&str>, socket: &Path) {
        match (url, output.json && !self.private) {
            (_, true) => {
                output.data(&json!({ "url": url, "pid": std::process::id(), "socket": socket }));
            }
            (Some(url), false) => output.say(format!("ready on {url}")),
            (None, false) if !self.private => output.say(format!("ready on {}", socket.display())),
            _ => {}
        }
    }

    /// The listener that flags or the workflow ask for.
    fn wanted(&self, project: &Project) -> Result<Option<Wanted>, Failure> {
        if self.private {
            return Ok(None);
        }
        // The listener settings of a repository count once its user has allowed them.
        let allowed = project.load().ok().filter(|loaded| {
            let by_caller = self.trusted.as_ref().is_some_and(|hash| *hash == loaded.hash);
            by_caller || trust::is_trusted(project, loaded)
        });
        let said = allowed.map(|loaded| loaded.workflow.server).unwrap_or_default();
        Wanted::of(&self.door, said, &project.root)
    }
}

/// Starts the team's own program, if the workflow has one.
fn start_own(engine: &Engine, read: &Arc<ReadWorkflow>) {
    let Ok(workflow) = read() else { return };
    let rules = workflow.change_rules();
    let Some(own) = workflow.own else { return };
    let engine = engine.clone();
    // Clients do not have to wait until it has settled.
    tokio::spawn(async move {
        engine.stopped().released().await;
        if let Err(why) = engine.start_own(&own, &rules).await {
            tracing::error!(%why, "the team's own program does not run");
        }
    });
}

/// Knowledge and plans, if the workflow wants them kept. They are opened once: runs that want other
/// settings do not begin before another daemon (`knowledge_gate.rs`).
fn stages(
    project: &Project,
    state: &Path,
    read: &Arc<ReadWorkflow>,
    redactor: Redactor,
) -> Result<Option<Stages>, Failure> {
    let Ok(Some(knowledge)) = read().map(|workflow| workflow.knowledge) else { return Ok(None) };
    let secret = |name: &str| std::env::var(name).ok();
    let root = project.root.as_path();
    let settings = StagesSettings { knowledge, root, state, secret: &secret, redactor };
    Stages::open(settings).map(Some).map_err(|fault| {
        Failure::failed("Cannot open the knowledge store")
            .because(&fault)
            .fix("correct [knowledge] in stafette.toml, or move the file away")
    })
}

/// Maintains the coordination folder, if the workflow wants one.
fn coordinate(
    project: &Project,
    engine: &Engine,
    state: &Path,
    read: Arc<ReadWorkflow>,
) -> Result<(), Failure> {
    let Ok(Some(wanted)) = read().map(|workflow| workflow.coordination) else { return Ok(()) };
    let folder = project.root.join(&wanted.folder);
    let memory = state.join("coordination/state.json");
    let since = state::check(&project.root)?.unwrap_or(u64::MAX);
    let read = Arc::new(move || read().map_err(|problem| problem.title));
    match Coordination::open(engine.clone(), read, &folder, memory, wanted.keep, since) {
        Ok(coordination) => {
            let engine = engine.clone();
            drop(tokio::spawn(async move {
                engine.stopped().released().await;
                coordination.live().await;
            }));
        }
        Err(error) => tracing::error!(%error, "the coordination folder cannot be used"),
    }
    Ok(())
}

/// The tokens of the project.
pub(crate) fn tokens(project: &Project) -> Result<Tokens, Failure> {
    let path = project.state()?.join("tokens.json");
    Tokens::open(&path).map_err(|error| {
        Failure::failed("Cannot read the tokens")
            .because(&error)
            .fix(format!("repair or delete {}, then create new tokens", path.display()))
    })
}

fn problem(failure: &Failure) -> Problem {
    let Failure { what, why, fix, .. } = failure;
    Problem::new(409, "usage_workflow", what.clone()).because(why.clone()).fix(fix.clone())
}

async fn open(
    project: &Project,
    state: &Path,
    store: Arc<dyn Store>,
    knowing: KnowledgeGate,
    redactor: Redactor,
) -> Result<Engine, Failure> {
    let settings = Settings {
        project: project.root.clone(),
        state: state.to_owned(),
        scratch: state.join("turns"),
        program: program()?,
        socket: project.agents_socket(),
        closed: vec![project.own_socket()],
        redactor,
        node: format!("pid {}", std::process::id()),
    };
    let hooks = Arc::new(Hooks::new(project.root.clone()));
    let plugins =
        Plugins { interceptor: Some(hooks), gate: Some(Arc::new(knowing)), ..Plugins::default() };
    let opened = Engine::open(store, settings, plugins).await;
    opened.map_err(|error: EngineError| {
        Failure::failed("Cannot load the runs")
            .because(&error)
            .fix("see `stafette doctor`, which checks the store")
    })
}

/// Opens a socket that only the user can reach.
fn listen(socket: &Path) -> Result<UnixListener, Failure> {
    use std::os::unix::fs::PermissionsExt;
    // This process holds the lock, so an existing socket is that of a dead daemon.
    let _ = fs::remove_file(socket);
    state::make_socket_folder(socket)?;
    let listener = UnixListener::bind(socket).map_err(|error| {
        Failure::failed(format!("Cannot create the socket {}", socket.display()))
            .because(&error)
            .fix("make its folder writable, or set XDG_RUNTIME_DIR to a folder that is")
    })?;
    // The folder is closed to others already; this is the second barrier.
    let _ = fs::set_permissions(socket, fs::Permissions::from_mode(0o600));
    Ok(listener)
}

async fn told_to_stop(stop: &Notify) {
    let Ok(mut signals) = Signals::new() else { return stop.notified().await };
    tokio::select! {
        () = stop.notified() => {}
        () = signals.any() => {}
    }
}
