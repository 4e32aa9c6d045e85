//! What can be typed.

mod changes;
mod cost;
mod doctor;
pub(crate) mod help;
mod knowledge;
mod locks;
mod terminals;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use changes::{Apply, Changes, ChangesCommand, Diff, Pr, SelfUpdate, Undo};
pub(crate) use cost::{Cost, CostBy};
pub(crate) use doctor::{Doctor, TrialCase, TrialPermissions, TrialRunner};
pub(crate) use knowledge::*;
pub(crate) use locks::{Lock, LockAction, LockCheck, LockHook, Unlock};
pub(crate) use terminals::{Attach, Replay, Restart, Send};

/// Let AI agents hand work to each other and to people without losing any of it.
#[derive(Debug, Parser)]
#[command(
    name = "stafette",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    help_template = help::TEMPLATE
)]
pub(crate) struct Cli {
    /// Print JSON instead of text.
    #[arg(long, global = true, env = "STAFETTE_JSON", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) json: bool,
    /// Answer every confirmation with yes.
    #[arg(long, short, global = true, env = "STAFETTE_YES", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) yes: bool,
    /// Project folder [default: the nearest with a stafette.toml].
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "STAFETTE_PROJECT",
        hide_env_values = true
    )]
    pub(crate) project: Option<PathBuf>,
    /// PostgreSQL database for the runs [default: a file in the state folder].
    #[arg(long, global = true, value_name = "URL", env = "STAFETTE_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// Print only results and errors.
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print each request to the daemon, and how long it took.
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a stafette.toml for this project, after showing it.
    Init(Init),
    /// Run the workflow on a request and follow it.
    Run(Run),
    /// Resume a run and follow it.
    Resume(OneRun),
    /// Show all runs, or one of them.
    #[command(visible_alias = "show")]
    Status(Status),
    /// Show costs by run, agent or day.
    Cost(Cost),
    /// List the handoffs of a run.
    Handoffs(OneRun),
    /// Show the events of a run.
    Log(Log),
    /// List the questions waiting for you.
    Inbox,
    /// Answer a question in your inbox.
    Answer(Answer),
    /// Watch all agents, those waiting for you first.
    Top,
    /// Attach to an agent's terminal (Ctrl-Q detaches), or print its screen.
    Attach(Attach),
    /// Send a message to an agent: it gets it at its next step, or with its next turn.
    Send(Send),
    /// Restart the program in an agent's terminal.
    Restart(Restart),
    /// Replay the recording of an agent's terminal, or print it.
    Replay(Replay),
    /// Explain how a handoff, a change or a run came about.
    Why(Why),
    /// List active alerts, or print the alert rules for Prometheus.
    Alerts(Alerts),
    /// Write a report of a run as one HTML page.
    Report(Report),
    /// Search events, handoffs and transcripts.
    Find(Find),
    /// Leave a note for the next generation of the team.
    Note(Note),
    /// Print the briefing of the next generation.
    Briefing(OneRun),
    /// Print the team's state, in the form of data/state/orchestrator-context.json.
    Context(OneRun),
    /// Cancel a run.
    Cancel(Cancel),
    /// Pause a run: no new turns start.
    Pause(OneRun),
    /// Start a new run from an earlier point of another.
    Fork(Fork),
    /// List, approve, reject, propose or comment on changes.
    Changes(Changes),
    /// Show a change line by line.
    Diff(Diff),
    /// Push a change as a branch and open a pull request, with gh or glab.
    Pr(Pr),
    /// Apply a change, or roll it back if it does not validate (exit code 5).
    Apply(Apply),
    /// Undo an applied change.
    Undo(Undo),
    /// Update and restart the team's own program with a change, or roll it back (exit code 5).
    #[command(alias = "renew")]
    SelfUpdate(SelfUpdate),
    /// Lock files against changes by others, optionally while a command runs.
    Lock(Lock),
    /// Release locks.
    Unlock(Unlock),
    /// List locks, their holders and who waits for them.
    Locks,
    /// Check a workflow file, or a protocol document with --gate.
    Check(Check),
    /// Print a JSON Schema.
    Schema(Schema),
    /// List the daemon's operations and who may use them.
    Rights,
    /// Validate a JSON document against its schema.
    Validate(Validate),
    /// Print the control frames of a stream or of a command's output, as JSON lines.
    Frames(Frames),
    /// Show everything that this project's stafette.toml can do, and trust it.
    Trust(Trust),
    /// Check what works here, with a fix for each problem.
    Doctor(Doctor),
    /// Watch four scripted agents plan, build, review and fix a small program.
    Demo(Demo),
    /// Hand over, answer or report from inside an agent's session.
    Emit(Emit),
    /// Serve the Model Context Protocol on standard input and output.
    Mcp,
    /// Start the project's daemon.
    Up(Up),
    /// Stop the project's daemon.
    Down,
    /// Open the page in your browser, by a one-time link.
    Open(Open),
    /// Create, list and revoke API tokens.
    #[command(subcommand)]
    Token(Token),
    /// List triggers, or fire one.
    Triggers(Triggers),
    /// Test your notification channels.
    #[command(subcommand)]
    Notify(Notify),
    /// List insights, look for new ones, or accept one.
    Insights(Insights),
    /// List versions of the estimation parameters, or roll back.
    Params(Params),
    /// Show the calendar; accept, move or drop blocks of time.
    Calendar(Calendar),
    /// Show decisions and their returns.
    Roi(Roi),
    /// List, read or search conversations.
    Threads(Threads),
    /// Show, export or import the graph.
    Graph(Graph),
    /// Measure handoffs and terminals on this machine.
    Bench(Bench),
    /// Show where this project's state is stored, adopt it or set it aside.
    State {
        #[command(subcommand)]
        action: Option<StateAction>,
    },
    /// Remove old finished runs and free their space.
    #[command(alias = "tidy")]
    Prune(Prune),
    /// Show the help of a command; `help all` lists every command.
    Help {
        /// Command to explain, or `all`.
        #[arg(num_args = 0.., value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// Print completions for a shell.
    Completions {
        /// Shell to complete for.
        shell: Shell,
    },
    /// Write the manual pages to a folder.
    Man {
        /// Folder to write to.
        folder: PathBuf,
    },
    /// Show an agent's messages to its model, as a hook of its program.
    #[command(hide = true)]
    Mail,
    /// Play a scripted agent's turn.
    #[command(hide = true)]
    Play {
        /// Script to play.
        script: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Team to start from.
    #[arg(long, value_enum, default_value_t = Template::Pair)]
    pub(crate) template: Template,
    /// Command line of the agent [default: the first known one installed].
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent: Option<String>,
    /// Use small scripts as agents, to try it without any (`pair` and `phases`).
    #[arg(long, conflicts_with = "agent")]
    pub(crate) scripted: bool,
    /// Replace an existing stafette.toml.
    #[arg(long)]
    pub(crate) force: bool,
}

/// What a project can start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Template {
    /// builder → reviewer
    Pair,
    /// planner → builder → reviewer ⇄ fixer
    Feature,
    /// discuss → decisions → execute → mind
    Odei,
    /// research → write → validate
    Phases,
    /// five agents who discuss until they agree
    Council,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What the agents should do, or - to read it from standard input; optional with --from-context.
    #[arg(required_unless_present = "from_context")]
    pub(crate) request: Option<String>,
    /// Limit on the cost, such as 5usd [default: the workflow's budget].
    #[arg(long, env = "STAFETTE_BUDGET", value_name = "AMOUNT", allow_negative_numbers = true)]
    pub(crate) budget: Option<String>,
    /// Limit on the tokens [default: the workflow's budget].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) tokens: Option<u64>,
    /// Input known from the start (VALUE may be JSON).
    #[arg(long = "input", value_name = "KEY=VALUE")]
    pub(crate) inputs: Vec<String>,
    /// Start the run and return immediately.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Keep following while a person has to decide.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Run in this process instead of in the daemon.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Continue from a team's state, such as data/state/orchestrator-context.json.
    #[arg(long, value_name = "FILE")]
    pub(crate) from_context: Option<PathBuf>,
    /// Start further generations automatically.
    #[arg(long)]
    pub(crate) continuous: bool,
    /// Limit on the generations [default: the workflow's number].
    #[arg(long, value_name = "NUMBER", requires = "continuous",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_runs: Option<u32>,
    /// Limit on the cost of all generations together, such as 5usd.
    #[arg(long, value_name = "AMOUNT", requires = "continuous")]
    pub(crate) max_cost: Option<String>,
    /// Number of generations after which to ask a person; 0 never asks.
    #[arg(long, value_name = "NUMBER", requires = "continuous")]
    pub(crate) check_in_every: Option<u32>,
    /// Pause before the next generation, such as 2s.
    #[arg(long, value_name = "TIME", requires = "continuous")]
    pub(crate) pause: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Note {
    /// What the next generation should know.
    pub(crate) text: String,
    /// Run id, or its first or last digits [default: newest run].
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct OneRun {
    /// Run id, or its first or last digits [default: newest run].
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Run id, or its first or last digits [default: all runs].
    pub(crate) run: Option<String>,
    /// Print one line about the project, for a status line; starts nothing.
    #[arg(long, conflicts_with = "run")]
    pub(crate) line: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// Run id, or its first or last digits [default: newest run].
    pub(crate) run: Option<String>,
    /// Handoff to start from, which is given out again, such as h3.
    #[arg(long, value_name = "HANDOFF", conflicts_with = "at")]
    pub(crate) handoff: Option<String>,
    /// Event to start from; `stafette log` numbers them [default: the last one].
    #[arg(long, value_name = "EVENT")]
    pub(crate) at: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Run id, or its first or last digits [default: newest run].
    pub(crate) run: Option<String>,
    /// Keep printing events as they happen.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only events after this one.
    #[arg(long, default_value_t = 0, value_name = "SEQ")]
    pub(crate) after: u64,
    /// Print only events since then: 10m ago, or a time such as 2026-02-03T04:05:06Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Print only events that concern this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Print the coordination protocol's six events, as in logs/events.jsonl.
    #[arg(long, alias = "seed-names")]
    pub(crate) protocol: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// Question to answer: 5, h5 or RUN:h5.
    pub(crate) question: String,
    /// An option, free text, or KEY=VALUE for each input.
    #[arg(required = true, num_args = 1..)]
    pub(crate) answer: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Handoff (h7 or RUN:h7), change (c3) or run [default: newest run].
    pub(crate) what: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Run id, or its first or last digits [default: newest run].
    pub(crate) run: Option<String>,
    /// File to write [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Open it in your browser.
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Find {
    /// Words to find, all of them; the last may be incomplete.
    #[arg(required = true, num_args = 1..)]
    pub(crate) words: Vec<String>,
    /// Limit on the results.
    #[arg(long, default_value_t = 20, value_name = "NUMBER")]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Alerts {
    /// Print the project's rules in this format instead.
    #[arg(long, value_enum)]
    pub(crate) format: Option<RuleFormat>,
}

/// Format of the alert rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RuleFormat {
    /// a file of alerting rules
    Prometheus,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Run id, or its first or last digits [default: newest run].
    pub(crate) run: Option<String>,
    /// Reason, for the record.
    #[arg(long, default_value = "")]
    pub(crate) why: String,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// File to check [default: the project's stafette.toml].
    pub(crate) file: Option<PathBuf>,
    /// Apply the protocol's validation gate too; FILE may be a Markdown document.
    #[arg(long)]
    pub(crate) gate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Name of the schema.
    #[arg(required_unless_present = "list")]
    pub(crate) name: Option<String>,
    /// List the names.
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Document to validate; `-` is standard input.
    pub(crate) file: PathBuf,
    /// Schema to use [default: recognised by the document's shape].
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) schema: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Frames {
    /// Word that marks the frames.
    #[arg(long, default_value = "ODEI")]
    pub(crate) word: String,
    /// Pass the bytes through a terminal of this size first.
    #[arg(long, value_name = "COLSxROWS")]
    pub(crate) screen: Option<String>,
    /// Command to run in a terminal [default: read standard input].
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Only show it, and what changed since you trusted it.
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Print only, and open no browser.
    #[arg(long)]
    pub(crate) headless: bool,
    /// Show it on the page, which stays until you press Enter.
    #[arg(long)]
    pub(crate) open: bool,
    /// Kill the daemon several times in the middle of handoffs.
    #[arg(long)]
    pub(crate) crash: bool,
    /// Number of kills.
    #[arg(long, default_value_t = 5, value_name = "NUMBER", requires = "crash")]
    pub(crate) crashes: u32,
    /// Seed of the places where it is killed.
    #[arg(long, value_name = "NUMBER", requires = "crash")]
    pub(crate) seed: Option<u64>,
    /// Folder to use, empty or not existing [default: a temporary one].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Emit {
    /// Kind: READY, HANDOFF, RESULT, REPORT, CHANGE, SIGNAL, ERROR, or MESSAGE to another agent.
    pub(crate) kind: String,
    /// Stage name or JSON, as in a frame; `-` reads it from standard input.
    pub(crate) payload: Option<String>,
    /// Sign and print it instead of sending it, for output that Stafette reads.
    #[arg(long)]
    pub(crate) print: bool,
}

/// Settings of the TCP listener, which override `[server]` of stafette.toml.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Door {
    /// Serve HTTP on this address too; a non-loopback one needs TLS and a token.
    #[arg(long, env = "STAFETTE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Certificate chain, as a PEM file.
    #[arg(long, env = "STAFETTE_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as a PEM file.
    #[arg(long, env = "STAFETTE_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Accept this host name too, besides those of this machine.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Open {
    /// Print the link and open no browser.
    #[arg(long)]
    pub(crate) print: bool,
    /// Scope of the browser's session.
    #[arg(long, value_enum, default_value_t = Scope::Admin)]
    pub(crate) scope: Scope,
}

/// Scope of a caller; each includes the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Scope {
    /// read everything
    Observe,
    /// assist a person: also start runs, answer, propose, take part as an agent
    Assist,
    /// decide for a person: also approve, apply, cancel, raise budgets
    Act,
    /// stop the daemon, create and revoke tokens
    Admin,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum StateAction {
    /// Adopt the state of an older release in .stafette, or that of a restored folder.
    Adopt,
    /// Set this project's state aside and start without it.
    Forget,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Create a token and print it, once.
    Create {
        /// Name of the token.
        name: String,
        /// Scope of the token.
        #[arg(long, value_enum, required_unless_present = "agent")]
        scope: Option<Scope>,
        /// Agent to act as: the token takes its turns and has its role's rights.
        #[arg(long)]
        agent: Option<String>,
        /// Lifetime, such as 30d [default: no end].
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List tokens.
    List,
    /// Revoke a token.
    Revoke {
        /// Name of the token.
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Triggers {
    #[command(subcommand)]
    pub(crate) command: Option<TriggersCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TriggersCommand {
    /// Start a run of a trigger now.
    Fire {
        /// Name of the trigger.
        name: String,
        /// Payload as a webhook would send it, as JSON.
        #[arg(long, value_name = "JSON")]
        payload: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Notify {
    /// Send a test message to every channel.
    Test,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Run in this terminal until Ctrl-C.
    #[arg(long)]
    pub(crate) foreground: bool,
    #[command(flatten)]
    pub(crate) door: Door,
    /// Trust the workflow with this hash, for the caller that wrote it.
    #[arg(long, hide = true, value_name = "HASH")]
    pub(crate) trusted: Option<String>,
    /// Show runs without continuing them.
    #[arg(long, hide = true)]
    pub(crate) held: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Number of handoffs.
    #[arg(long, default_value_t = 2000)]
    pub(crate) handoffs: u32,
    /// Number of runs in parallel.
    #[arg(long, default_value_t = 32)]
    pub(crate) runs: u32,
    /// Number of idle terminals.
    #[arg(long, default_value_t = 200)]
    pub(crate) idle: u32,
    /// Number of terminals that print without a pause.
    #[arg(long, default_value_t = 20)]
    pub(crate) busy: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Remove runs that ended longer ago than this.
    #[arg(long, default_value = "30d", value_name = "TIME")]
    pub(crate) older_than: String,
    /// Number of latest runs to keep in any case.
    #[arg(long, default_value_t = 20)]
    pub(crate) keep: usize,
}
