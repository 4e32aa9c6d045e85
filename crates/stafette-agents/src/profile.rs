//! Profiles: what is known about a program that can be an agent, as data.
//!
//! How it is found and started, how its output is read, how it says that its quota is used up. Who
//! wants another one writes a file; nothing here knows a vendor.

mod check;
mod library;
mod mcp;
mod phrase;
mod price;
mod reset;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use stafette_core::workflow::file::{self, Diagnostic};
use stafette_core::workflow::{PromptVia, Runner};
use stafette_core::{Failure, FailureKind, Millis, Time};

pub use library::{Broken, Library, installed, on_path};
pub use mcp::{McpServer, McpSetup};
pub(crate) use mcp::{knows_tools, lay, server, setup};
pub use price::{Price, Rate};
pub(crate) use reset::reset_value;
pub use reset::{Wall, reset};

use crate::Job;
use crate::stream::Rule;

/// What is known about a program that can be an agent.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, which is also that of its file.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// How to get it.
    #[serde(default)]
    pub install: String,
    /// How to find out whether it is there.
    pub detect: Detect,
    /// One process for each turn.
    #[serde(default)]
    pub exec: Option<Exec>,
    /// A terminal over many turns.
    #[serde(default)]
    pub pty: Option<Pty>,
    /// The Agent Client Protocol over standard input and output.
    #[serde(default)]
    pub acp: Option<Acp>,
    /// How it is given an MCP server.
    #[serde(default)]
    pub mcp: Option<Mcp>,
    /// What it sees of the environment.
    #[serde(default)]
    pub env: Env,
    /// What it needs when it is in a sandbox.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// How its JSON is read.
    #[serde(default)]
    pub stream: Stream,
    /// How it says that its quota is used up.
    #[serde(default)]
    pub quota: Quota,
    /// Which of its complaints no further try would help.
    #[serde(default)]
    pub failure: Failures,
    /// What its models cost, for when it reports only tokens.
    #[serde(default)]
    pub price: Price,
}

/// How to find out whether a program is there.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detect {
    /// The program, on the path.
    pub program: String,
    /// Arguments that make it say its version.
    #[serde(default)]
    pub version: Vec<String>,
}

/// One process for each turn.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// The program and its arguments. The word `{resume}` stands for [`Exec::resume`].
    pub command: Vec<String>,
    /// How the prompt reaches it.
    #[serde(default)]
    pub prompt_via: PromptVia,
    /// What it prints.
    #[serde(default)]
    pub output: Output,
    /// Arguments that go on with the session `{session}`.
    #[serde(default)]
    pub resume: Vec<String>,
    /// Variables that are set for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// What a command prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Text for people.
    #[default]
    Text,
    /// A JSON document on each line.
    JsonLines,
    /// One JSON document.
    Json,
}

/// A terminal over many turns.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pty {
    /// The program and its arguments. The word `{resume}` stands for [`Pty::resume`], or for
    /// [`Pty::begin`] when there is no session yet.
    pub command: Vec<String>,
    /// Arguments that begin a session with the name `{session}`.
    #[serde(default)]
    pub begin: Vec<String>,
    /// Arguments that go on with the session `{session}`.
    #[serde(default)]
    pub resume: Vec<String>,
    /// Where it notes its sessions, when it names them itself.
    #[serde(default)]
    pub sessions: Option<Sessions>,
    /// Variables that make it behave in a terminal.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Words on its screen that show that it takes input, `*` for anything in between.
    #[serde(default)]
    pub ready: Vec<String>,
    /// Words on its screen that show that it works.
    #[serde(default)]
    pub busy: Vec<String>,
    /// Words on its screen that show that it waits for a person's word.
    #[serde(default)]
    pub asks: Vec<String>,
    /// How many columns and rows it is given.
    #[serde(default)]
    pub size: Option<(u16, u16)>,
    /// How long it may take to be ready before people are told.
    #[serde(default)]
    pub ready_timeout: Option<Millis>,
    /// How long it must be quiet after a handoff or a result for its turn to be over.
    #[serde(default)]
    pub quiet: Option<Millis>,
    /// How long it may show nothing new in a turn before it is interrupted.
    #[serde(default)]
    pub stall: Option<Millis>,
    /// How often in a row it is started again when it dies.
    #[serde(default)]
    pub restarts: Option<u32>,
    /// The key that interrupts it.
    #[serde(default)]
    pub interrupt: Key,
}

/// Where a program notes its sessions: each in a file whose first line is a JSON document.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// The folders that they may be in, `$VARIABLE` or `~` in front.
    pub folders: Vec<String>,
    /// Where in the document its name is, as a JSON pointer.
    pub id: String,
    /// Where in the document the folder is that it works in.
    pub place: String,
}

/// A key that interrupts a program in a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// Ctrl-C.
    #[default]
    CtrlC,
    /// Escape, where Ctrl-C would end the program.
    Esc,
}

impl Key {
    /// What the terminal sends for it.
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Key::CtrlC => b"\x03",
            Key::Esc => b"\x1b",
        }
    }
}

impl Pty {
    /// Whether its screen shows that it takes input; nothing when nobody knows how that looks.
    pub(crate) fn is_ready(&self, screen: &str) -> Option<bool> {
        (!self.ready.is_empty()).then(|| phrase::any(&self.ready, screen))
    }

    /// Whether its screen shows that it works.
    pub(crate) fn is_busy(&self, screen: &str) -> bool {
        phrase::any(&self.busy, screen)
    }

    /// Whether its screen shows that it waits for a person's word.
    pub(crate) fn is_asking(&self, screen: &str) -> bool {
        phrase::any(&self.asks, screen)
    }
}

/// The Agent Client Protocol over standard input and output.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acp {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables that are set for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// How a program is given an MCP server. `{mcp_command}` and `{mcp_arguments}` stand for its program
/// and arguments as JSON, `{mcp_words}` for both in one list, `{mcp_line}` for both as a shell would
/// read them, `{config_file}` for a
/// file with [`Mcp::file`] in it.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// Arguments to add to its command.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Variables to set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What is written to `{config_file}`.
    #[serde(default)]
    pub file: Option<String>,
}

/// What a program sees of the environment.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Env {
    /// Variables of ours that it may see, besides the harmless ones.
    pub pass: Vec<String>,
    /// Variables that are set for it in every mode.
    pub set: BTreeMap<String, String>,
}

/// What a program needs when it is in a sandbox.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    /// Where it keeps its own state, which it may change: `~/…`, or `$NAME` for what a variable says.
    pub state: Vec<String>,
}

/// How a program's JSON is read.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// What its totals are of.
    pub totals: Totals,
    /// Whether its count of what was read includes what came from a cache.
    pub input_includes_cached: bool,
    /// What each document means; all that fit count.
    pub rules: Vec<Rule>,
}

/// Which totals go on counting when a session is resumed.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Totals {
    /// Tokens are those of the whole session, not of the turn.
    pub session_tokens: bool,
    /// The cost is that of the whole session, not of the turn.
    pub session_cost: bool,
}

/// How a program says that its quota is used up.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quota {
    /// Words that mean it, in any case, `*` for anything in between.
    pub says: Vec<String>,
}

/// Which complaints no further try would help.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Failures {
    /// Words that mean it, in any case, `*` for anything in between.
    pub fatal: Vec<String>,
}

/// A quota is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsedUp {
    /// Until when, where that is said.
    pub until: Option<Time>,
}

impl Profile {
    /// Reads a profile and checks it.
    ///
    /// # Errors
    /// All that is wrong with it, each with its place.
    pub fn parse(text: &str) -> Result<Profile, Vec<Diagnostic>> {
        let (profile, spans) = file::document::<Profile>(text)?;
        let mistakes = check::check(&profile, &spans);
        if mistakes.is_empty() { Ok(profile) } else { Err(mistakes) }
    }

    /// All that is wrong with a profile that was put together, and not read.
    #[must_use]
    pub fn check(&self) -> Vec<Diagnostic> {
        check::check(self, &file::Spans::default())
    }

    /// The command for a way to carry out turns, with its placeholders.
    #[must_use]
    pub fn command(&self, runner: Runner) -> Option<&[String]> {
        match runner {
            Runner::Exec => self.exec.as_ref().map(|mode| mode.command.as_slice()),
            Runner::Pty => self.pty.as_ref().map(|mode| mode.command.as_slice()),
            Runner::Acp => self.acp.as_ref().map(|mode| mode.command.as_slice()),
            Runner::Scripted | Runner::External | Runner::A2a => None,
        }
    }

    /// The variables that are set for it with a way to carry out turns.
    pub fn variables(&self, runner: Runner) -> impl Iterator<Item = (&String, &String)> {
        let mode = match runner {
            Runner::Exec => self.exec.as_ref().map(|mode| &mode.env),
            Runner::Pty => self.pty.as_ref().map(|mode| &mode.env),
            Runner::Acp => self.acp.as_ref().map(|mode| &mode.env),
            Runner::Scripted | Runner::External | Runner::A2a => None,
        };
        self.env.set.iter().chain(mode.into_iter().flatten())
    }

    /// Where its program is, when it is installed.
    #[must_use]
    pub fn program(&self) -> Option<std::path::PathBuf> {
        on_path(&self.detect.program)
    }

    /// Whether a message means that the quota is used up, and until when.
    #[must_use]
    pub fn used_up(&self, message: &str, wall: &Wall) -> Option<UsedUp> {
        phrase::any(&self.quota.says, message).then(|| UsedUp { until: reset(message, wall) })
    }

    /// Whether a message means that no further try would help.
    #[must_use]
    pub fn is_fatal(&self, message: &str) -> bool {
        phrase::any(&self.failure.fatal, message)
    }
}

/// A command in which `{resume}` has become the arguments that go on with a session, or nothing.
#[must_use]
pub fn resumed(command: &[String], resume: &[String], session: Option<&str>) -> Vec<String> {
    let words = command.iter().flat_map(|word| match (word.as_str(), session) {
        ("{resume}", None) => Vec::new(),
        ("{resume}", Some(session)) => {
            resume.iter().map(|word| word.replace("{session}", session)).collect()
        }
        _ => vec![word.clone()],
    });
    words.collect()
}

/// Why the profile that an agent names is of no use to its runner.
pub(crate) fn unusable(job: &Job) -> Option<String> {
    let name = job.agent.profile.as_ref()?;
    let agent = &job.order.agent;
    let mode = match job.agent.runner {
        Runner::Exec => "exec",
        Runner::Pty => "pty",
        Runner::Acp => "acp",
        Runner::Scripted | Runner::External | Runner::A2a => return None,
    };
    match &job.profile {
        None => Some(format!(
            "there is no profile `{name}`: correct the profile of {agent}, or write profiles/{name}.toml"
        )),
        Some(profile)
            if profile.command(job.agent.runner).is_none() && job.agent.command.is_empty() =>
        {
            Some(format!(
                "profile `{name}` has no [{mode}]: give {agent} a command, or another runner"
            ))
        }
        Some(_) => None,
    }
}

/// What a complaint of an agent's program means: its profile may know better than its transport.
pub(crate) fn named(job: &Job, kind: FailureKind, message: String) -> Failure {
    let Some(profile) = &job.profile else { return Failure::new(kind, message) };
    match profile.used_up(&message, &Wall::here()) {
        Some(used_up) => Failure::quota(used_up.until, message),
        None if profile.is_fatal(&message) => Failure::new(FailureKind::Fatal, message),
        None => Failure::new(kind, message),
    }
}

/// A folder that a profile names with `~` or `$VARIABLE` in front; nothing when that is not set.
pub(crate) fn place(text: &str) -> Option<std::path::PathBuf> {
    let (front, rest) = text.split_once('/').unwrap_or((text, ""));
    let variable = match front {
        "~" => "HOME",
        front => match front.strip_prefix('$') {
            Some(name) => name,
            None => return Some(text.into()),
        },
    };
    let front = std::env::var_os(variable).filter(|value| !value.is_empty())?;
    Some(std::path::PathBuf::from(front).join(rest))
}

/// The words that start an agent in a terminal. The place for its session is left to
/// [`Thread`](crate::terminal::Thread) when it can have one.
pub(crate) fn words_in_terminal(job: &Job) -> Vec<String> {
    let resumes = |pty: &Pty| !pty.resume.is_empty();
    if !job.profile.as_ref().and_then(|profile| profile.pty.as_ref()).is_some_and(resumes) {
        return words(job, None);
    }
    let own = job.agent.command.as_slice();
    let profiled = job.profile.as_ref().and_then(|profile| profile.command(Runner::Pty));
    let words = if own.is_empty() { profiled.unwrap_or_default() } else { own };
    let more = setup(job).into_iter().flat_map(|setup| setup.arguments);
    words.iter().cloned().chain(more).collect()
}

/// The words that start an agent: its own, or those of its profile, going on with a session.
pub(crate) fn words(job: &Job, session: Option<&str>) -> Vec<String> {
    let runner = job.agent.runner;
    let own = job.agent.command.as_slice();
    let Some(profile) = &job.profile else { return own.to_vec() };
    let resume = match runner {
        Runner::Exec => profile.exec.as_ref().map(|mode| mode.resume.as_slice()),
        Runner::Pty => profile.pty.as_ref().map(|mode| mode.resume.as_slice()),
        Runner::Acp | Runner::Scripted | Runner::External | Runner::A2a => None,
    };
    let words = if own.is_empty() { profile.command(runner).unwrap_or_default() } else { own };
    let mut words = resumed(words, resume.unwrap_or_default(), session);
    words.extend(setup(job).into_iter().flat_map(|setup| setup.arguments));
    words
}
