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

use std::pin::Pin;

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

/// What to do where git, or a program that starts it, had to be ended.
const STUCK: &str = "remove the pipe or the device that it names; without one, type what was run by hand to see \
                     what it waits for";

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
    if crate::caller::asks_nobody(&command)
        && let Ok(Some(project)) = context.find_project()
    {
        runtime()?.block_on(crate::caller::ask(&project))?;
    }
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
                    daemon::orphans::adopting(&runtime, async || dispatch(&context, command).await)
                }
                false => runtime.block_on(dispatch(&context, command)),
            };
            // A thread that waits for a file, a pipe or a disk must not keep the process.
            runtime.shutdown_timeout(LAST_THREADS);
            exit
        }
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Exit, Failure>> + 'a>>;

/// Starts a command. Each is boxed, so that the program has one small future for all of them.
fn dispatch(context: &Context, command: Command) -> Running<'_> {
    match command {
        Command::Run(arguments) => Box::pin(run::run(context, arguments)),
        Command::Resume(arguments) => Box::pin(run::resume(context, arguments)),
        Command::Status(arguments) => Box::pin(status::run(context, arguments)),
        Command::Cost(arguments) => Box::pin(async move { cost::run(context, &arguments).await }),
        Command::Handoffs(arguments) => Box::pin(handoffs::run(context, arguments)),
        Command::Mcp => Box::pin(mcp::run(context)),
        Command::Log(arguments) => Box::pin(log::run(context, arguments)),
        Command::Inbox => Box::pin(inbox::run(context)),
        Command::Answer(arguments) => Box::pin(answer::run(context, arguments)),
        Command::Attach(arguments) => Box::pin(attach::run(context, arguments)),
        Command::Send(arguments) => Box::pin(send::run(context, arguments)),
        Command::Restart(arguments) => Box::pin(restart::run(context, arguments)),
        Command::Replay(arguments) => Box::pin(replay::run(context, arguments)),
        Command::Why(arguments) => Box::pin(why::run(context, arguments)),
        Command::Alerts(arguments) => {
            Box::pin(async move { alerts::run(context, &arguments).await })
        }
        Command::Report(arguments) => Box::pin(report::run(context, arguments)),
        Command::Find(arguments) => Box::pin(async move { find::run(context, &arguments).await }),
        Command::Note(arguments) => Box::pin(note::run(context, arguments)),
        Command::Briefing(arguments) => Box::pin(briefing::run(context, arguments)),
        Command::Context(arguments) => Box::pin(context::run(context, arguments)),
        Command::Cancel(arguments) => Box::pin(status::cancel(context, arguments)),
        Command::Pause(arguments) => Box::pin(status::pause(context, arguments)),
        Command::Fork(arguments) => Box::pin(fork::run(context, arguments)),
        Command::Changes(arguments) => Box::pin(changes::run(context, arguments)),
        Command::Diff(arguments) => Box::pin(diff::run(context, arguments)),
        Command::Pr(arguments) => Box::pin(pr::run(context, arguments)),
        Command::Apply(arguments) => Box::pin(changes::apply(context, arguments)),
        Command::SelfUpdate(arguments) => {
            Box::pin(async move { self_update::run(context, &arguments).await })
        }
        Command::Undo(arguments) => Box::pin(changes::undo(context, arguments)),
        Command::Lock(arguments) => Box::pin(lock::run(context, arguments)),
        Command::Unlock(arguments) => Box::pin(lock::unlock(context, arguments)),
        Command::Locks => Box::pin(lock::list(context)),
        Command::Doctor(arguments) => Box::pin(doctor::run(context, arguments)),
        Command::Demo(arguments) => Box::pin(demo::run(context, arguments)),
        Command::Emit(arguments) => Box::pin(emit::run(context, arguments)),
        Command::Mail => Box::pin(mail::run(context)),
        Command::Up(arguments) => Box::pin(up::run(context, arguments)),
        Command::Down => Box::pin(up::down(context)),
        Command::Open(arguments) => Box::pin(async move { open::run(context, &arguments).await }),
        Command::Token(arguments) => Box::pin(token::run(context, arguments)),
        Command::Triggers(arguments) => Box::pin(triggers::run(context, arguments)),
        Command::Notify(arguments) => {
            Box::pin(async move { notify::run(context, &arguments).await })
        }
        Command::Insights(arguments) => Box::pin(knowledge::insights(context, arguments)),
        Command::Params(arguments) => Box::pin(knowledge::params(context, arguments)),
        Command::Calendar(arguments) => Box::pin(knowledge::calendar(context, arguments)),
        Command::Roi(arguments) => Box::pin(knowledge::roi(context, arguments)),
        Command::Threads(arguments) => Box::pin(knowledge::threads(context, arguments)),
        Command::Graph(arguments) => Box::pin(knowledge::graph(context, arguments)),
        Command::Bench(arguments) => Box::pin(bench::run(context, arguments)),
        Command::Top => Box::pin(top::run(context)),
        Command::State { action } => Box::pin(state::run(context, action)),
        Command::Prune(arguments) => Box::pin(prune::run(context, arguments)),
        // The commands that need no runtime have been handled already.
        _ => Box::pin(async { Ok(Exit::Ok) }),
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

/// All runs that have not ended, the newest first.
pub(crate) async fn unfinished(client: &crate::client::Client) -> Result<Vec<RunView>, Failure> {
    const PAGE: usize = 1000;
    let mut runs: Vec<RunView> = Vec::new();
    loop {
        let after = runs.last().map(|last| format!("&after={}", last.run)).unwrap_or_default();
        let path = format!("/v1/runs?status=unfinished&limit={PAGE}{after}");
        let page: Vec<RunView> = client.get(&path).await?;
        let is_last = page.len() < PAGE;
        runs.extend(page);
        if is_last {
            return Ok(runs);
        }
    }
}

/// The number of runs that go on only once the user acts.
async fn stopped(client: &crate::client::Client) -> Result<u64, Failure> {
    let standing: serde_json::Value = client.get("/v1/standing").await?;
    Ok(standing["stopped"].as_u64().unwrap_or_default())
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
    match stopped(&client).await? {
        0 => {}
        1 => context.output.say(format!("1 run is stopped: {one}")),
        stopped => context.output.say(format!("{stopped} runs are stopped: {more}")),
    }
    if let Some(damaged) = health["damaged_runs"].as_u64().filter(|damaged| *damaged > 0) {
        let runs = crate::output::counted(damaged, "run");
        context.output.say(format!("{runs} with damaged events: see `stafette doctor`"));
    }
    Ok(client)
}
