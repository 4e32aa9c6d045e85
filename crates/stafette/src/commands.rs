//! One file per command.

mod alerts;
mod answer;
mod attach;
mod bench;
mod briefing;
mod changes;
mod check;
mod context;
mod cost;
mod demo;
mod diff;
mod doctor;
mod emit;
mod find;
mod fork;
mod frames;
mod handoffs;
mod here;
mod inbox;
mod init;
mod knowledge;
mod lock;
mod log;
mod mail;
mod mcp;
mod note;
mod notify;
mod open;
mod phases;
mod pr;
mod prune;
mod replay;
mod report;
mod restart;
mod rights;
mod run;
mod schema;
mod self_update;
mod send;
mod shell;
mod state;
mod status;
mod token;
mod top;
mod triggers;
mod trust;
mod up;
mod validate;
mod why;

use serde::Deserialize;
use stafette_core::clean::Clean;
use stafette_core::{Millis, RunId};
use stafette_engine::RunView;
use tokio::runtime::{Builder, Runtime};

use crate::cli::{self, Cli, Command};
use crate::daemon;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::project::{Project, WORKFLOW};

/// The options and state that every command gets.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) yes: bool,
    pub(crate) project: Option<std::path::PathBuf>,
    /// The database for the runs, if the user named one.
    pub(crate) store: Option<String>,
}

impl Context {
    pub(crate) fn project(&self) -> Result<Project, Failure> {
        let here = self.project.clone().map_or_else(std::env::current_dir, Ok);
        self.find_project()?.ok_or_else(|| {
            Failure::usage(format!("There is no {WORKFLOW} here"))
                .why(format!("looked in {} and above", here.unwrap_or_default().display()))
                .fix("create one with `stafette init`, or watch it work with `stafette demo`")
        })
    }

    /// The project, if there is one.
    pub(crate) fn find_project(&self) -> Result<Option<Project>, Failure> {
        let project = Project::find(self.project.as_deref())?;
        Ok(project.map(|project| Project { database: self.store.clone(), ..project }))
    }

    /// Asks for a confirmation; `--yes` gives it, and without a terminal the answer is no.
    pub(crate) fn confirm(&self, question: &str) -> Result<bool, Failure> {
        use std::io::{IsTerminal, Write};
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage("Cannot ask for confirmation without a terminal")
                .why(question)
                .fix("add --yes to confirm it"));
        }
        let _ = write!(std::io::stderr().lock(), "{} [y/N] ", Clean::from(question));
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        Ok(matches!(line.trim(), "y" | "Y" | "yes"))
    }
}

pub(crate) fn run(cli: Cli, output: Output) -> Result<Exit, Failure> {
    let store = cli.store.filter(|url| !url.is_empty());
    let context = Context { output, yes: cli.yes, project: cli.project, store };
    let Some(command) = cli.command else { return runtime()?.block_on(here::run(&context)) };
    crate::caller::check(&command)?;
    match command {
        Command::Init(arguments) => init::run(&context, &arguments),
        Command::Check(arguments) => check::run(&context, &arguments),
        Command::Schema(arguments) => schema::run(&context, &arguments),
        Command::Rights => Ok(rights::run(&context)),
        Command::Validate(arguments) => validate::run(&context, &arguments),
        Command::Frames(arguments) => frames::run(&arguments),
        Command::Trust(arguments) => trust::run(&context, &arguments),
        Command::Help { words } => Ok(cli::help::show(output, &words)),
        Command::Completions { shell } => Ok(shell::completions(shell)),
        Command::Man { folder } => shell::man(&folder),
        command => {
            let runtime = runtime()?;
            let exit = match is_daemon(&command) {
                true => {
                    daemon::orphans::adopting(&runtime, async || dispatch(context, command).await)
                }
                false => runtime.block_on(dispatch(context, command)),
            };
            // A thread that waits for a file, a pipe or a disk must not keep the process.
            runtime.shutdown_timeout(LAST_THREADS);
            exit
        }
    }
}

async fn dispatch(context: Context, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) => run::run(&context, arguments).await,
        Command::Resume(arguments) => run::resume(&context, arguments).await,
        Command::Status(arguments) => status::run(&context, arguments).await,
        Command::Cost(arguments) => cost::run(&context, &arguments).await,
        Command::Handoffs(arguments) => handoffs::run(&context, arguments).await,
        Command::Mcp => mcp::run(&context).await,
        Command::Log(arguments) => log::run(&context, arguments).await,
        Command::Inbox => inbox::run(&context).await,
        Command::Answer(arguments) => answer::run(&context, arguments).await,
        Command::Attach(arguments) => attach::run(&context, arguments).await,
        Command::Send(arguments) => send::run(&context, arguments).await,
        Command::Restart(arguments) => restart::run(&context, arguments).await,
        Command::Replay(arguments) => replay::run(&context, arguments).await,
        Command::Why(arguments) => why::run(&context, arguments).await,
        Command::Alerts(arguments) => alerts::run(&context, &arguments).await,
        Command::Report(arguments) => report::run(&context, arguments).await,
        Command::Find(arguments) => find::run(&context, &arguments).await,
        Command::Note(arguments) => note::run(&context, arguments).await,
        Command::Briefing(arguments) => briefing::run(&context, arguments).await,
        Command::Context(arguments) => context::run(&context, arguments).await,
        Command::Cancel(arguments) => status::cancel(&context, arguments).await,
        Command::Pause(arguments) => status::pause(&context, arguments).await,
        Command::Fork(arguments) => fork::run(&context, arguments).await,
        Command::Changes(arguments) => changes::run(&context, arguments).await,
        Command::Diff(arguments) => diff::run(&context, arguments).await,
        Command::Pr(arguments) => pr::run(&context, arguments).await,
        Command::Apply(arguments) => changes::apply(&context, arguments).await,
        Command::SelfUpdate(arguments) => self_update::run(&context, &arguments).await,
        Command::Undo(arguments) => changes::undo(&context, arguments).await,
        Command::Lock(arguments) => lock::run(&context, arguments).await,
        Command::Unlock(arguments) => lock::unlock(&context, arguments).await,
        Command::Locks => lock::list(&context).await,
        Command::Doctor(arguments) => doctor::run(&context, arguments).await,
        Command::Demo(arguments) => demo::run(&context, arguments).await,
        Command::Emit(arguments) => emit::run(&context, arguments).await,
        Command::Mail => mail::run(&context).await,
        Command::Up(arguments) => up::run(&context, arguments).await,
        Command::Down => up::down(&context).await,
        Command::Open(arguments) => open::run(&context, &arguments).await,
        Command::Token(arguments) => token::run(&context, arguments).await,
        Command::Triggers(arguments) => triggers::run(&context, arguments).await,
        Command::Notify(arguments) => notify::run(&context, &arguments).await,
        Command::Insights(arguments) => knowledge::insights(&context, arguments).await,
        Command::Params(arguments) => knowledge::params(&context, arguments).await,
        Command::Calendar(arguments) => knowledge::calendar(&context, arguments).await,
        Command::Roi(arguments) => knowledge::roi(&context, arguments).await,
        Command::Threads(arguments) => knowledge::threads(&context, arguments).await,
        Command::Graph(arguments) => knowledge::graph(&context, arguments).await,
        Command::Bench(arguments) => bench::run(&context, arguments).await,
        Command::Top => top::run(&context).await,
        Command::State { action } => state::run(&context, action).await,
        Command::Prune(arguments) => prune::run(&context, arguments).await,
        // The commands that need no runtime have been handled already.
        _ => Ok(Exit::Ok),
    }
}

/// True if the command itself becomes a daemon.
fn is_daemon(command: &Command) -> bool {
    match command {
        Command::Up(up) => up.foreground,
        Command::Run(run) => run.foreground,
        _ => false,
    }
}

/// True if the command leaves something behind when it ends before it is done.
pub(crate) fn cleans_up(command: &Command) -> bool {
    match command {
        Command::Demo(_) | Command::Bench(_) => true,
        Command::Lock(lock) => !lock.command.is_empty(),
        command => is_daemon(command),
    }
}

/// How long the end of a command waits for threads that still work.
const LAST_THREADS: std::time::Duration = std::time::Duration::from_secs(5);

fn runtime() -> Result<Runtime, Failure> {
    let threads = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.map_err(|error| {
        Failure::failed("Cannot start threads")
            .because(&error)
            .fix("raise the limit of processes (`ulimit -u`), or end other programs")
    })
}

/// A length of time that a person typed.
pub(crate) fn time(typed: &str) -> Result<Millis, Failure> {
    Millis::parse(typed).map_err(|_| {
        Failure::usage(format!("`{typed}` is not a length of time"))
            .fix("write it as 500ms, 30s, 5m, 2h or 7d")
    })
}

/// The path of a run at the daemon; the newest one when none is named.
pub(crate) fn run_path(run: Option<&str>, rest: &str) -> String {
    format!("/v1/runs/{}{rest}", segment(run.unwrap_or("latest")))
}

/// Encodes text that a person typed as a part of an address.
pub(crate) fn segment(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_' | b':' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// The runs that were stopped, once those that may continue do.
#[derive(Debug, Deserialize)]
pub(crate) struct Continued {
    /// The number of runs that continue.
    pub(crate) runs: usize,
    /// The runs that stay stopped.
    pub(crate) stopped: Vec<StaysStopped>,
}

/// A run that stays stopped, and why.
#[derive(Debug, Deserialize)]
pub(crate) struct StaysStopped {
    pub(crate) run: RunId,
    pub(crate) why: String,
}

/// Lets stopped runs continue, and says which do; nothing about the run that is asked for itself.
pub(crate) async fn continue_runs(
    context: &Context,
    client: &crate::client::Client,
    own: Option<&RunView>,
) -> Result<Continued, Failure> {
    let told: Continued = client.post("/v1/continue", &serde_json::json!({})).await?;
    let stays = |run: &RunId| told.stopped.iter().any(|stopped| stopped.run == *run);
    let own_goes = own.is_some_and(|own| own.stopped && !stays(&own.run));
    match told.runs.saturating_sub(usize::from(own_goes)) {
        0 => {}
        1 => context.output.say("1 stopped run continues"),
        runs => context.output.say(format!("{runs} stopped runs continue")),
    }
    for StaysStopped { run, why } in &told.stopped {
        if own.is_none_or(|own| own.run != *run) {
            context.output.say(format!("the run {} stays stopped: {why}", run.short()));
        }
    }
    Ok(told)
}

/// Connects to the daemon of the present project, and starts it when none runs.
pub(crate) async fn daemon(context: &Context) -> Result<crate::client::Client, Failure> {
    daemon::reach(&context.project()?).await
}

/// The same for a command that looks at the runs. Prints a notice when some wait to be continued.
pub(crate) async fn daemon_of_runs(context: &Context) -> Result<crate::client::Client, Failure> {
    let client = daemon(context).await?;
    let health: serde_json::Value = client.get("/healthz").await?;
    // Those that stay stopped when the others continue are not trusted.
    let (one, more) = match health["held"] == true {
        true => ("`stafette up` continues it", "`stafette up` continues them"),
        false => ("`stafette why` says what to do", "`stafette status` says which"),
    };
    let mut stopped = health["stopped_runs"].as_u64().unwrap_or(0);
    if stopped > 0 {
        // Those that only wait for an answer are not held up by that.
        let runs: Vec<RunView> = client.get("/v1/runs").await?;
        let waits = |run: &&RunView| run.stopped && run.waiting_on.as_deref() == Some("human");
        stopped = stopped.saturating_sub(runs.iter().filter(waits).count() as u64);
    }
    match stopped {
        0 => {}
        1 => context.output.say(format!("1 run is stopped: {one}")),
        stopped => context.output.say(format!("{stopped} runs are stopped: {more}")),
    }
    if let Some(damaged) = health["damaged_runs"].as_u64().filter(|damaged| *damaged > 0) {
        let runs = crate::output::count(usize::try_from(damaged).unwrap_or(usize::MAX), "run");
        context.output.say(format!("{runs} with damaged events: see `stafette doctor`"));
    }
    Ok(client)
}
