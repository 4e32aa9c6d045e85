//! Profiles: the known facts about a program that can be an agent, as data.
//!
//! How it is found and started, how its output is read, how it reports that its quota is used up.
//! Another program needs another file; nothing here knows a vendor.

mod check;
mod dialog;
mod library;
mod mcp;
mod messages;
mod phrase;
mod powers;
mod price;
mod recommendation;
mod reset;
mod sight;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;

use schemars::JsonSchema;
use serde::Deserialize;
use stafette_config::Diagnostic;
use stafette_core::workflow::{Agent, PermissionLevel, PromptVia, Runner};
use stafette_core::{Failure, FailureKind, Millis, Time};

pub use dialog::{Dialog, DialogAnswer, Press};
pub use library::{Broken, Library, on_path};
pub use mcp::{McpServer, McpSetup, config_file};
pub(crate) use mcp::{knows_tools, lay, server, setup};
pub use messages::asks_for_messages;
pub use price::{Price, Rate};
pub use recommendation::Recommendation;
pub(crate) use reset::reset_value;
pub use reset::{Wall, reset};
pub use sight::{Sight, UNSEEN_FIX, sight, unseen};

use crate::Job;
use crate::stream::Rule;

/// The description of a program that can be an agent.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name of the profile, which is also that of its file.
    pub name: String,
    /// The name that people see.
    pub title: String,
    /// A hint on how to install it.
    #[serde(default)]
    pub install: String,
    /// The check for whether it is installed.
    pub detect: Detect,
    /// The mode with one process for each turn; `None` when it has none.
    #[serde(default)]
    pub exec: Option<Exec>,
    /// The mode in a terminal that stays over many turns; `None` when it has none.
    #[serde(default)]
    pub pty: Option<Pty>,
    /// The mode with the Agent Client Protocol over standard input and output; `None` when it has
    /// none.
    #[serde(default)]
    pub acp: Option<Acp>,
    /// The way to give it an MCP server; `None` when there is none.
    #[serde(default)]
    pub mcp: Option<Mcp>,
    /// The way to have it ask for messages at its steps; `None` when it cannot.
    #[serde(default)]
    pub messages: Option<Messages>,
    /// The way to tell it what it may do without asking.
    #[serde(default)]
    pub permissions: Levels,
    /// The environment variables that it sees.
    #[serde(default)]
    pub env: Env,
    /// The needs of the program in a sandbox.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The rules for reading its JSON output.
    #[serde(default)]
    pub stream: Stream,
    /// The files in which it records what a session has used, for what its output does not say;
    /// `None` where there are none.
    #[serde(default)]
    pub session: Option<Record>,
    /// The phrases by which it reports that its quota is used up.
    #[serde(default)]
    pub quota: Quota,
    /// The phrases of errors that no further attempt would help.
    #[serde(default)]
    pub failure: Failures,
    /// The prices of its models, for use when it reports only tokens.
    #[serde(default)]
    pub price: Price,
    /// The way to point it at the model of a trial.
    #[serde(default)]
    pub trial: Trial,
}

/// The check for whether a program is installed.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detect {
    /// The name of the program, looked up on the path.
    pub program: String,
    /// The arguments that make it print its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// The version with which the profile was proven.
    #[serde(default)]
    pub proven: String,
}

/// The mode with one process for each turn.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// The program and its arguments. The word `{resume}` stands for [`Exec::resume`].
    pub command: Vec<String>,
    /// The way the prompt reaches it.
    #[serde(default)]
    pub prompt_via: PromptVia,
    /// The format of its output.
    #[serde(default)]
    pub output: Output,
    /// The arguments that continue the session `{session}`.
    #[serde(default)]
    pub resume: Vec<String>,
    /// The environment variables that are set for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// The format of a command's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Plain text for people.
    #[default]
    Text,
    /// A JSON document on each line.
    JsonLines,
    /// One JSON document in total.
    Json,
}

/// The mode in a terminal that stays over many turns.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pty {
    /// The program and its arguments. The word `{resume}` stands for [`Pty::resume`], or for
    /// [`Pty::begin`] when there is no session yet.
    pub command: Vec<String>,
    /// Arguments that begin a session with the name `{session}`.
    #[serde(default)]
    pub begin: Vec<String>,
    /// The arguments that continue the session `{session}`.
    #[serde(default)]
    pub resume: Vec<String>,
    /// The files in which it records its sessions, when it names them itself.
    #[serde(default)]
    pub sessions: Option<Sessions>,
    /// The environment variables that make it behave in a terminal.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Phrases on its screen that show that it takes input, `*` for any text in between.
    #[serde(default)]
    pub ready: Vec<String>,
    /// True if it takes input only while it asks for pasted text in brackets: before, its screen may
    /// look as if it did.
    #[serde(default)]
    pub brackets: bool,
    /// Phrases on its screen that show that it works.
    #[serde(default)]
    pub busy: Vec<String>,
    /// Phrases on its screen that show that it waits for a person's answer.
    #[serde(default)]
    pub asks: Vec<String>,
    /// Phrases that begin a row of its screen and show an error that no further attempt helps, such as
    /// a key that is refused: its turn ends with that row. They have to begin with the program's own
    /// mark in the first column, where it puts nothing that an agent or a tool has written.
    #[serde(default)]
    pub hopeless: Vec<String>,
    /// True if only the line of the cursor asks: it leaves the questions before on its screen.
    #[serde(default)]
    pub asks_at_cursor: bool,
    /// The questions at its start that need no person in a folder that the user has trusted. After
    /// its first turn they count only with `asks_at_cursor`: elsewhere on its screen an agent can
    /// imitate them.
    #[serde(default)]
    pub dialogs: Vec<Dialog>,
    /// The answers to its questions, where they are no menu.
    #[serde(default)]
    pub answers: Vec<DialogAnswer>,
    /// The signs that it puts in front of its input, one at a time: a text that still stands behind the
    /// last one was not taken.
    #[serde(default)]
    pub composer: String,
    /// The columns and rows of its terminal; `None` for the default.
    #[serde(default)]
    pub size: Option<(u16, u16)>,
    /// The time limit for it to become ready before people are notified, in milliseconds.
    #[serde(default)]
    pub ready_timeout: Option<Millis>,
    /// The time that it must be quiet after a handoff or a result for its turn to end, in
    /// milliseconds.
    #[serde(default)]
    pub quiet: Option<Millis>,
    /// The time that it may show nothing new in a turn before it is interrupted, in milliseconds.
    #[serde(default)]
    pub stall: Option<Millis>,
    /// The maximum number of restarts in a row when it dies.
    #[serde(default)]
    pub restarts: Option<u32>,
    /// The key that interrupts it.
    #[serde(default)]
    pub interrupt: Key,
}

/// The files in which a program records its sessions: each begins with a line that is a JSON
/// document.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// The folders that they may be in, beginning with `$VARIABLE` or `~`.
    pub folders: Vec<String>,
    /// The place of the session id in the document, as a JSON pointer.
    pub id: String,
    /// The place of the working folder in the document, as a JSON pointer.
    pub place: String,
}

/// A key that interrupts a program in a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// The keys Ctrl and C.
    #[default]
    CtrlC,
    /// Escape, where Ctrl-C would end the program.
    Esc,
}

impl Key {
    /// The bytes that the terminal sends for it.
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Key::CtrlC => b"\x03",
            Key::Esc => b"\x1b",
        }
    }
}

impl Pty {
    /// True if its screen shows that it takes input; `None` when the profile has no phrases for
    /// that.
    pub(crate) fn is_ready(&self, screen: &str) -> Option<bool> {
        (!self.ready.is_empty()).then(|| phrase::any(&self.ready, screen))
    }

    /// True if its screen shows that it works.
    pub(crate) fn is_busy(&self, screen: &str) -> bool {
        phrase::any(&self.busy, screen)
    }

    /// The row with its input; `None` if it shows none, or its profile does not know.
    pub(crate) fn input(&self, screen: &[String]) -> Option<String> {
        let is_frame = |c: char| c.is_whitespace() || c == '│' || c == '┃';
        let is_sign = |c: char| self.composer.contains(c);
        let inner = |row: &String| row.trim_matches(is_frame).to_owned();
        screen.iter().rev().map(inner).find(|row| row.starts_with(is_sign))
    }

    /// True if this row of its screen shows an error that no further attempt helps.
    pub(crate) fn is_hopeless(&self, row: &str) -> bool {
        phrase::begins(&self.hopeless, row)
    }

    /// True if its screen shows that it waits for a person's answer.
    pub(crate) fn is_asking(&self, screen: &str) -> bool {
        phrase::any(&self.asks, screen)
    }
}

/// The mode with the Agent Client Protocol over standard input and output.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acp {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// A hint on how to install that program, if it is another one.
    #[serde(default)]
    pub install: String,
    /// True if it is to read and write files itself, because it fails when it leaves that to us.
    #[serde(default)]
    pub own_files: bool,
    /// The parts of its usage that it reports by the protocol.
    #[serde(default)]
    pub reports: Vec<Reported>,
    /// The environment variables that are set for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A part of a program's usage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reported {
    Tokens,
    Cost,
}

/// The way to give a program an MCP server. `{mcp_command}` and `{mcp_arguments}` stand for its
/// program and arguments as JSON, `{mcp_words}` for both in one list, `{mcp_line}` for both as a
/// shell would read them, `{config_file}` for a file with the content [`Mcp::file`].
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// The arguments to add to its command.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The environment variables to set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The content of `{config_file}`.
    #[serde(default)]
    pub file: Option<String>,
}

/// The way to have a program ask for messages at its steps: hooks that run `$STAFETTE_PROGRAM mail`,
/// which reads the hook's event and prints what its model is to read.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// The arguments to add to its command.
    pub arguments: Vec<String>,
}

/// The way to tell a program what it may do without asking, by the agent's `permissions`.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Levels {
    /// Only reading.
    pub ask: Level,
    /// Also changing files.
    pub edits: Level,
    /// Everything.
    pub all: Level,
}

/// The way to tell a program one level.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Level {
    /// The arguments that take the place of the word `{permissions}` in a command.
    pub arguments: Vec<String>,
    /// The environment variables to set.
    pub env: BTreeMap<String, String>,
    /// The actions that it denies at this level with `exec`, without a word about it.
    pub denies: Vec<String>,
    /// The questions in its terminal that need no person at this level, besides those at its start.
    pub dialogs: Vec<Dialog>,
}

impl Level {
    /// Words with its arguments in place of `{permissions}`.
    fn fill(&self, words: &[String]) -> Vec<String> {
        let fill = |word: &String| match word.as_str() {
            "{permissions}" => self.arguments.clone(),
            _ => vec![word.clone()],
        };
        words.iter().flat_map(fill).collect()
    }
}

impl Levels {
    /// The way for this level.
    pub(crate) fn of(&self, level: PermissionLevel) -> &Level {
        match level {
            PermissionLevel::Ask => &self.ask,
            PermissionLevel::Edits => &self.edits,
            PermissionLevel::All => &self.all,
        }
    }
}

/// The environment of a program.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Env {
    /// The daemon's variables that it may see, besides the harmless ones.
    pub pass: Vec<String>,
    /// The variables that are set for it in every mode.
    pub set: BTreeMap<String, String>,
}

/// The needs of a program in a sandbox.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    /// The folders of its own state, which it may change: `~/…`, or `$NAME` for the value of a
    /// variable.
    pub state: Vec<String>,
    /// The permissions with which the program was seen at work inside, in all of its modes.
    pub proven: Vec<PermissionLevel>,
}

/// The rules for reading a program's JSON.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// The totals that cover a whole session.
    pub totals: Totals,
    /// True if its count of input tokens includes those from a cache.
    pub input_includes_cached: bool,
    /// The meaning of each document; all rules that match count.
    pub rules: Vec<Rule>,
}

/// The files in which a program records what a session has used: a JSON document on each line.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The paths of the files of the session `{session}`, or of those whose id begins with the eight
    /// characters `{session:8}`. They begin with `$VARIABLE` or `~`; `*` is any text within a name.
    pub files: Vec<String>,
    /// True if its count of input tokens includes those from a cache.
    #[serde(default)]
    pub input_includes_cached: bool,
    /// The meaning of each document; all rules that match count. Those for usage matter. A total is
    /// that of the session.
    pub rules: Vec<Rule>,
}

/// The totals that continue to count when a session is resumed.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Totals {
    /// True if tokens are those of the whole session, not of the turn.
    pub session_tokens: bool,
    /// True if the cost is that of the whole session, not of the turn.
    pub session_cost: bool,
}

/// The phrases by which a program reports that its quota is used up.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quota {
    /// Phrases, compared without case, `*` for any text in between.
    pub says: Vec<String>,
}

/// The phrases of errors that no further attempt would help.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Failures {
    /// Phrases, compared without case, `*` for any text in between.
    pub fatal: Vec<String>,
    /// Phrases that begin a line in which the program tells its own error beside the text of its model, and then
    /// ends with success. They count in plain text and over ACP, in a turn that has no answer.
    pub told: Vec<String>,
}

/// The way to point a program at the model of a trial, in a home that is new. `{model}` stands for
/// the model's address, `{key}` for a key that it takes.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trial {
    /// True if its model has no tools: the program edits and runs what it writes down.
    pub is_toolless: bool,
    /// The environment variables to set.
    pub env: BTreeMap<String, String>,
    /// The files to write, by their paths in the home.
    pub files: BTreeMap<String, String>,
}

/// A quota is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsedUp {
    /// The time at which the quota is available again, if it is stated.
    pub until: Option<Time>,
}

impl Profile {
    /// Reads a profile and checks it.
    ///
    /// # Errors
    /// All mistakes in it, each with its place.
    pub fn parse(text: &str) -> Result<Profile, Vec<Diagnostic>> {
        let (profile, spans) = stafette_config::document::<Profile>(text)?;
        let mistakes = check::check(&profile, &spans);
        if mistakes.is_empty() { Ok(profile) } else { Err(mistakes) }
    }

    /// The command for a runner, with its placeholders.
    pub fn command(&self, runner: Runner) -> Option<&[String]> {
        match runner {
            Runner::Exec => self.exec.as_ref().map(|mode| mode.command.as_slice()),
            Runner::Pty => self.pty.as_ref().map(|mode| mode.command.as_slice()),
            Runner::Acp => self.acp.as_ref().map(|mode| mode.command.as_slice()),
            Runner::Scripted | Runner::External | Runner::A2a => None,
        }
    }

    /// The variables that are set for it with a runner.
    pub fn variables(&self, runner: Runner) -> impl Iterator<Item = (&String, &String)> {
        let mode = match runner {
            Runner::Exec => self.exec.as_ref().map(|mode| &mode.env),
            Runner::Pty => self.pty.as_ref().map(|mode| &mode.env),
            Runner::Acp => self.acp.as_ref().map(|mode| &mode.env),
            Runner::Scripted | Runner::External | Runner::A2a => None,
        };
        self.env.set.iter().chain(mode.into_iter().flatten())
    }

    /// A hint on how to install the program for a runner.
    pub fn install(&self, runner: Runner) -> &str {
        match &self.acp {
            Some(acp) if runner == Runner::Acp && !acp.install.is_empty() => &acp.install,
            _ => &self.install,
        }
    }

    /// The path of its program, if it is installed.
    pub fn program(&self) -> Option<std::path::PathBuf> {
        on_path(&self.detect.program)
    }

    /// The question on its screen that needs no person at this level.
    pub(crate) fn dialog(&self, level: PermissionLevel, screen: &str) -> Option<&Dialog> {
        let always = self.pty.iter().flat_map(|pty| &pty.dialogs);
        let mut all = always.chain(&self.permissions.of(level).dialogs);
        all.find(|dialog| dialog.is_shown(screen))
    }

    /// Returns the used-up quota if a message reports one, with the time of its reset.
    pub fn used_up(&self, message: &str, wall: &Wall) -> Option<UsedUp> {
        phrase::any(&self.quota.says, message).then(|| UsedUp { until: reset(message, wall) })
    }

    /// True if the program tells its own error in this line of its model's text.
    pub(crate) fn tells_error(&self, line: &str) -> bool {
        phrase::begins(&self.failure.told, line)
    }

    /// True if a message means that no further attempt would help.
    pub fn is_fatal(&self, message: &str) -> bool {
        phrase::any(&self.failure.fatal, message)
    }
}

/// A command in which `{resume}` is replaced by the arguments that continue a session, or by
/// nothing.
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

/// The reason why the profile that an agent names cannot be used with its runner.
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

/// The failure that an error of an agent's program stands for: its profile may know better than its
/// transport.
pub(crate) fn named(job: &Job, kind: FailureKind, message: String) -> Failure {
    let Some(profile) = &job.profile else { return Failure::new(kind, message) };
    match profile.used_up(&message, &Wall::here()) {
        Some(used_up) => Failure::quota(used_up.until, message),
        None if profile.is_fatal(&message) => Failure::new(FailureKind::Fatal, message),
        None => Failure::new(kind, message),
    }
}

/// A path that a profile names with `~` or `$VARIABLE` in front, for a program with this environment;
/// `None` when that is not set.
pub(crate) fn place(
    text: &str,
    environment: &[(OsString, OsString)],
) -> Option<std::path::PathBuf> {
    let (front, rest) = text.split_once('/').unwrap_or((text, ""));
    let variable = match front {
        "~" => "HOME",
        front => match front.strip_prefix('$') {
            Some(name) => name,
            None => return Some(text.into()),
        },
    };
    // The last one counts.
    let (_, front) = environment.iter().rev().find(|(name, _)| name == variable)?;
    if front.is_empty() {
        return None;
    }
    Some(std::path::PathBuf::from(front).join(rest))
}

/// The words that start an agent in a terminal. The placeholder for its session is left to
/// [`Thread`](crate::terminal::Thread) when it can have one.
pub(crate) fn words_in_terminal(job: &Job) -> Vec<String> {
    let resumes = |pty: &Pty| !pty.resume.is_empty();
    if !job.profile.as_ref().and_then(|profile| profile.pty.as_ref()).is_some_and(resumes) {
        return words(job, None);
    }
    let own = job.agent.command.as_slice();
    let profiled = job.profile.as_ref().and_then(|profile| profile.command(Runner::Pty));
    let words = if own.is_empty() { profiled.unwrap_or_default() } else { own };
    let words = permitted(job, words);
    let more = setup(job).into_iter().flat_map(|setup| setup.arguments);
    let hooks = messages::arguments(job, &words);
    words.into_iter().chain(more).chain(hooks).collect()
}

/// Words with the arguments for what the agent of a job may do without asking.
fn permitted(job: &Job, words: &[String]) -> Vec<String> {
    match &job.profile {
        Some(profile) => profile.permissions.of(job.agent.permissions).fill(words),
        None => words.to_vec(),
    }
}

impl Profile {
    /// The words that start this agent without a session; `None` if its runner has none.
    pub fn words_of(&self, agent: &Agent) -> Option<Vec<String>> {
        let words = resumed(self.command(agent.runner)?, &[], None);
        Some(self.permissions.of(agent.permissions).fill(&words))
    }
}

/// The words that start an agent: its own, or those of its profile, continuing a session.
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
    let mut words = resumed(&permitted(job, words), resume.unwrap_or_default(), session);
    let hooks = messages::arguments(job, &words);
    words.extend(setup(job).into_iter().flat_map(|setup| setup.arguments));
    words.extend(hooks);
    words
}
