//! What can be typed.

mod changes;
mod cost;
mod knowledge;
mod locks;
mod terminals;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use changes::{Apply, Changes, ChangesCommand, Diff, Renew, Undo};
pub(crate) use cost::{Cost, CostBy};
pub(crate) use knowledge::*;
pub(crate) use locks::{Lock, LockAction, LockCheck, LockHook, Unlock};
pub(crate) use terminals::{Attach, Replay, Restart, Send};

/// Agents pass work to each other, and to people, without losing it.
///
/// Exit codes: 0 ok, 1 failed, 2 usage, 3 needs a person, 4 budget, 5 rolled back, 6 lock,
/// 7 no daemon.
#[derive(Debug, Parser)]
#[command(name = "stafette", version, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Print JSON for programs instead of text for people.
    #[arg(long, global = true, env = "STAFETTE_JSON", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) json: bool,
    /// Answer every question with yes.
    #[arg(long, short, global = true, env = "STAFETTE_YES", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) yes: bool,
    /// The project's folder; otherwise the nearest one above with a stafette.toml.
    #[arg(long, global = true, value_name = "DIR", env = "STAFETTE_PROJECT")]
    pub(crate) project: Option<PathBuf>,
    /// The PostgreSQL database to keep the runs in (postgres://…) instead of a file of the project.
    #[arg(long, global = true, value_name = "URL", env = "STAFETTE_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a stafette.toml for this project, after showing it.
    Init(Init),
    /// Run the workflow on a request and follow it.
    Run(Run),
    /// Go on with a run: after a pause, a restart or an answer.
    Resume(OneRun),
    /// Show the runs, or one of them.
    #[command(visible_alias = "show")]
    Status(OneRun),
    /// Add up what was spent.
    Cost(Cost),
    /// List the handoffs of a run.
    Handoffs(OneRun),
    /// Show the events of a run.
    Log(Log),
    /// List what is yours to decide.
    Inbox,
    /// Answer a question of the inbox.
    Answer(Answer),
    /// Watch all agents, those who need you first; as JSON without a terminal.
    Top,
    /// Look into an agent's terminal; Ctrl-q leaves. As text without a terminal of one's own.
    Attach(Attach),
    /// Send a message to an agent: it gets it at its next step, or with its next turn.
    Send(Send),
    /// Start the program in an agent's terminal again.
    Restart(Restart),
    /// Watch what an agent's terminal showed, or print it.
    Replay(Replay),
    /// Explain how a handoff came about, or a run.
    Why(Why),
    /// List the alerts, or print them as rules for Prometheus.
    Alerts(Alerts),
    /// Write a run as one page that can be mailed.
    Report(Report),
    /// Find words in events, handoffs and transcripts.
    Find(Find),
    /// Leave a note for the next generation of the team.
    Note(Note),
    /// Print what the next generation reads first.
    Briefing(OneRun),
    /// Print where the team stands, as data/state/orchestrator-context.json has it.
    Context(OneRun),
    /// Call a run off.
    Cancel(Cancel),
    /// Let a run give out nothing new.
    Pause(OneRun),
    /// Go another way from a moment of a run's past, as a new run.
    Fork(Fork),
    /// List the changes that were proposed, or say yes to one.
    Changes(Changes),
    /// Show a change line by line; the newest that waits otherwise.
    Diff(Diff),
    /// Apply a change: validated whole, or taken back (exit code 5).
    Apply(Apply),
    /// Take a change out of the project again.
    Undo(Undo),
    /// Give the team's own program the code of a change and restart it, or bring it back (exit code 5).
    Renew(Renew),
    /// Lock files, so that nobody else changes them; with a command, for as long as it runs.
    Lock(Lock),
    /// Give locks back.
    Unlock(Unlock),
    /// List who has locked what, and who waits for it.
    Locks,
    /// Check a workflow file, or a protocol document with --gate.
    Check(Check),
    /// Print a JSON Schema.
    Schema(Schema),
    /// List who may use which operation of the daemon.
    Rights,
    /// Check a JSON document against its schema.
    Validate(Validate),
    /// Print the control frames in a stream, or in what a command prints, as JSON lines.
    Frames(Frames),
    /// Show everything that this project's stafette.toml can do, and allow it.
    Trust(Trust),
    /// Say what works here and what does not, each with its fix.
    Doctor,
    /// Watch a team of scripted agents build, review and fix in a little repository.
    Demo(Demo),
    /// Hand on, answer or report from inside an agent's session.
    Emit(Emit),
    /// Speak the Model Context Protocol on standard input and output.
    Mcp,
    /// Start the project's daemon.
    Up(Up),
    /// Stop the project's daemon.
    Down,
    /// Open the page in the browser, by a link that works once.
    Open(Open),
    /// Give tokens to programs that come by HTTP, and take them back.
    #[command(subcommand)]
    Token(Token),
    /// List what begins runs by itself, or pull it by hand.
    Triggers(Triggers),
    /// See whether news reaches you.
    #[command(subcommand)]
    Notify(Notify),
    /// List what was learned, look for more, or have it count.
    Insights(Insights),
    /// List what estimates and returns are reckoned with, by version, or go back.
    Params(Params),
    /// Show what takes place and which blocks of time wait for you.
    Calendar(Calendar),
    /// Show decisions and what they return.
    Roi(Roi),
    /// List the talk that is kept, read it or search it.
    Threads(Threads),
    /// Say how much the graph holds, or take it to another home.
    Graph(Graph),
    /// Measure handoffs a second, with the reference beside them.
    Bench(Bench),
    /// Show where this project's state is kept, or say what becomes of it.
    State {
        #[command(subcommand)]
        action: Option<StateAction>,
    },
    /// Tidy the store: drop old finished runs and give room back.
    Tidy(Tidy),
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Write the manual pages into a folder.
    Man {
        /// Where to.
        folder: PathBuf,
    },
    /// Show an agent's messages to its model, as a hook of its program.
    #[command(hide = true)]
    Mail,
    /// Play a scripted agent's turn.
    #[command(hide = true)]
    Play {
        /// The script.
        script: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// What to start from.
    #[arg(long, value_enum, default_value_t = Template::Pair)]
    pub(crate) template: Template,
    /// The agent's command line, instead of what is found here.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent: Option<String>,
    /// Let small scripts play the agents, to see it work without any; for `pair` and `phases`.
    #[arg(long, conflicts_with = "agent")]
    pub(crate) scripted: bool,
    /// Replace a stafette.toml that is there.
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
    /// What the agents should do; may be left out with --from-context, which says it.
    #[arg(required_unless_present = "from_context")]
    pub(crate) request: Option<String>,
    /// What it may cost, such as 5usd.
    #[arg(long, env = "STAFETTE_BUDGET", value_name = "AMOUNT")]
    pub(crate) budget: Option<String>,
    /// How many tokens it may use.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) tokens: Option<u64>,
    /// Something that is known from the start, as KEY=VALUE (VALUE may be JSON).
    #[arg(long = "input", value_name = "KEY=VALUE")]
    pub(crate) inputs: Vec<String>,
    /// Do not wait for the end.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Keep waiting while a person has to decide.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Run in this process instead of the daemon.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Go on from where a team stands, as data/state/orchestrator-context.json has it.
    #[arg(long, value_name = "FILE")]
    pub(crate) from_context: Option<PathBuf>,
    /// Have further generations follow by themselves.
    #[arg(long)]
    pub(crate) continuous: bool,
    /// At most so many generations; the workflow's number otherwise.
    #[arg(long, value_name = "NUMBER", requires = "continuous",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_runs: Option<u32>,
    /// What all generations may cost together, such as 5usd.
    #[arg(long, value_name = "AMOUNT", requires = "continuous")]
    pub(crate) max_cost: Option<String>,
    /// Ask a person after every so many generations; 0 is never.
    #[arg(long, value_name = "NUMBER", requires = "continuous")]
    pub(crate) check_in_every: Option<u32>,
    /// The wait before the next generation, such as 2s.
    #[arg(long, value_name = "TIME", requires = "continuous")]
    pub(crate) pause: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Note {
    /// What the next generation should know.
    pub(crate) text: String,
    /// The run: its id or some of its digits; the newest one otherwise.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct OneRun {
    /// The run: its id or some of its digits; the newest one otherwise.
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The run: its id or some of its digits; the newest one otherwise.
    pub(crate) run: Option<String>,
    /// From the handoff on that is given out anew, such as h3.
    #[arg(long, value_name = "HANDOFF", conflicts_with = "at")]
    pub(crate) handoff: Option<String>,
    /// From this event on; `stafette log` numbers them. From now on otherwise.
    #[arg(long, value_name = "EVENT")]
    pub(crate) at: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// The run: its id or some of its digits; the newest one otherwise.
    pub(crate) run: Option<String>,
    /// Stay and show what happens.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only what comes after this event.
    #[arg(long, default_value_t = 0, value_name = "SEQ")]
    pub(crate) after: u64,
    /// Only what happened since then: 10m ago, or a moment such as 2026-02-03T04:05:06Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only what this agent has to do with.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Print the six events of the coordination protocol, as in logs/events.jsonl of the state.
    #[arg(long)]
    pub(crate) seed_names: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The question: 5, h5 or RUN:h5.
    pub(crate) question: String,
    /// The answer: an option, words, or KEY=VALUE for each input.
    #[arg(required = true, num_args = 1..)]
    pub(crate) answer: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The handoff, such as h7 or RUN:h7, a change such as c3, or a run; the newest run otherwise.
    pub(crate) what: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run: its id or some of its digits; the newest one otherwise.
    pub(crate) run: Option<String>,
    /// Where to; standard output otherwise.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Show it in the browser.
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Find {
    /// Words that all must be there; the last may be unfinished.
    #[arg(required = true, num_args = 1..)]
    pub(crate) words: Vec<String>,
    /// At most so many.
    #[arg(long, default_value_t = 20, value_name = "NUMBER")]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Alerts {
    /// Print the project's rules in this form instead.
    #[arg(long, value_enum)]
    pub(crate) format: Option<RuleFormat>,
}

/// Who reads the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RuleFormat {
    /// a file of alerting rules
    Prometheus,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run: its id or some of its digits; the newest one otherwise.
    pub(crate) run: Option<String>,
    /// Why, for the record.
    #[arg(long, default_value = "")]
    pub(crate) why: String,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The file; the project's stafette.toml otherwise.
    pub(crate) file: Option<PathBuf>,
    /// Apply the protocol's validation gate too; FILE may be a Markdown document.
    #[arg(long)]
    pub(crate) gate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Which schema.
    #[arg(required_unless_present = "list")]
    pub(crate) name: Option<String>,
    /// List the names.
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The document; `-` is standard input.
    pub(crate) file: PathBuf,
    /// The schema; otherwise recognised by the document's shape.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) schema: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Frames {
    /// The word in the frames.
    #[arg(long, default_value = "ODEI")]
    pub(crate) word: String,
    /// Let the bytes go through a terminal of this size first.
    #[arg(long, value_name = "COLSxROWS")]
    pub(crate) screen: Option<String>,
    /// A command to run in a terminal; standard input otherwise.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Only show it, and what changed since it was allowed.
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Do not open anything; only print.
    #[arg(long)]
    pub(crate) headless: bool,
    /// Watch it on the page, which stays until you press Enter.
    #[arg(long)]
    pub(crate) open: bool,
    /// Kill the daemon several times in the middle of a handoff.
    #[arg(long)]
    pub(crate) crash: bool,
    /// How often to kill it.
    #[arg(long, default_value_t = 5, value_name = "NUMBER", requires = "crash")]
    pub(crate) crashes: u32,
    /// Where the crashes fall: the same number gives the same places.
    #[arg(long, value_name = "NUMBER", requires = "crash")]
    pub(crate) seed: Option<u64>,
    /// The folder to use; it must be empty or not exist.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Emit {
    /// READY, HANDOFF, RESULT, REPORT, CHANGE, SIGNAL, ERROR, or MESSAGE to another agent.
    pub(crate) kind: String,
    /// A stage's name or JSON, as in a frame; `-` reads it from standard input.
    pub(crate) payload: Option<String>,
    /// Sign and print it instead of sending it, for an output that Stafette reads.
    #[arg(long)]
    pub(crate) print: bool,
}

/// A door on TCP; each counts more than what stafette.toml says in `[server]`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Door {
    /// Serve HTTP here too; beyond this machine it takes TLS and a token.
    #[arg(long, env = "STAFETTE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// The chain of certificates, as a PEM file.
    #[arg(long, env = "STAFETTE_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key to it, as a PEM file.
    #[arg(long, env = "STAFETTE_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A name by which it may be called, besides those of this machine.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Open {
    /// Only print the link.
    #[arg(long)]
    pub(crate) print: bool,
    /// What the browser may do.
    #[arg(long, value_enum, default_value_t = Scope::Admin)]
    pub(crate) scope: Scope,
}

/// How much somebody may do; each includes the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Scope {
    /// read everything
    Observe,
    /// assist a person: also start runs, answer, propose, take part as an agent
    Assist,
    /// decide for a person: also approve, apply, cancel, raise budgets
    Act,
    /// stop the daemon, give and take back tokens
    Admin,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum StateAction {
    /// Take over the state of an older release from .stafette, or keep the state of a folder that
    /// was restored.
    Adopt,
    /// Put this project's state aside, and begin anew.
    Forget,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token; it is shown this once.
    Create {
        /// Its name.
        name: String,
        /// What it allows.
        #[arg(long, value_enum, required_unless_present = "agent")]
        scope: Option<Scope>,
        /// The agent that it is for: it takes that agent's turns and has its role's rights.
        #[arg(long)]
        agent: Option<String>,
        /// How long it lasts, such as 30d; for ever otherwise.
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List the tokens.
    List,
    /// Take a token back.
    Revoke {
        /// Its name.
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
    /// Begin a run of a trigger now.
    Fire {
        /// The trigger.
        name: String,
        /// What a webhook would have brought, as JSON.
        #[arg(long, value_name = "JSON")]
        payload: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Notify {
    /// Send a test message by every channel.
    Test,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Stay in this terminal.
    #[arg(long)]
    pub(crate) foreground: bool,
    #[command(flatten)]
    pub(crate) door: Door,
    /// Trust the workflow with this hash, for those who wrote it themselves.
    #[arg(long, hide = true, value_name = "HASH")]
    pub(crate) trusted: Option<String>,
    /// Show runs, and continue none of them before somebody acts.
    #[arg(long, hide = true)]
    pub(crate) held: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// How many handoffs.
    #[arg(long, default_value_t = 2000)]
    pub(crate) handoffs: u32,
    /// How many runs at once.
    #[arg(long, default_value_t = 32)]
    pub(crate) runs: u32,
    /// How many terminals sit there.
    #[arg(long, default_value_t = 200)]
    pub(crate) idle: u32,
    /// How many terminals print without a pause.
    #[arg(long, default_value_t = 20)]
    pub(crate) busy: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Tidy {
    /// Drop runs that ended longer ago than this, such as 30d.
    #[arg(long, default_value = "30d", value_name = "TIME")]
    pub(crate) older_than: String,
    /// But keep at least so many of the latest.
    #[arg(long, default_value_t = 20)]
    pub(crate) keep: usize,
}
