//! Scripts: the answers of the model and their conditions.

use std::time::Duration;

use serde_json::Value;

use super::ask::{Ask, Dialect};
use super::toolbox;

/// Rules in order: the first that matches and is not used up answers.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) rules: Vec<Rule>,
}

impl Script {
    /// Makes a script without rules.
    #[must_use]
    pub fn new() -> Self {
        Script::default()
    }

    /// Appends a rule to the script.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// True if a request without tools comes with a prompt whose work needs some: the agent wants a
    /// title or a summary.
    pub(super) fn is_aside(&self, ask: &Ask) -> bool {
        let calls = |rule: &Rule| rule.replies.iter().any(|reply| reply.act.is_call());
        ask.tools.is_empty() && self.rules.iter().any(|rule| rule.fits(ask) && calls(rule))
    }
}

/// A condition with replies, which are the steps of one turn.
///
/// The first reply answers the prompt; each further one answers the result of the tool call before
/// it. After the last one, the last one is repeated.
#[derive(Clone, Debug)]
pub struct Rule {
    prompt: String,
    system: Option<String>,
    dialect: Option<Dialect>,
    pub(super) left: Option<u32>,
    pub(super) replies: Vec<Reply>,
}

impl Rule {
    /// Makes a rule for prompts that contain this text.
    #[must_use]
    pub fn when(prompt: impl Into<String>) -> Self {
        Rule { prompt: prompt.into(), system: None, dialect: None, left: None, replies: Vec::new() }
    }

    /// Matches only if the system prompt contains this text.
    #[must_use]
    pub fn told(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Matches only agents that use this dialect.
    #[must_use]
    pub fn speaking(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Matches only the first prompt.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Matches only the first `count` prompts.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.left = Some(count);
        self
    }

    /// Appends a step to the rule.
    #[must_use]
    pub fn then(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    pub(super) fn fits(&self, ask: &Ask) -> bool {
        ask.prompt.contains(&self.prompt)
            && self.system.as_ref().is_none_or(|system| ask.system.contains(system))
            && self.dialect.is_none_or(|dialect| dialect == ask.dialect)
    }

    /// Returns the answer to a request. Like any model, it leaves out what it has no tool for.
    pub(super) fn reply(&self, ask: &Ask) -> Option<&Reply> {
        let is_possible = |reply: &&Reply| reply.acts().any(|act| toolbox::has(act, ask));
        let mut possible = self.replies.iter().filter(is_possible);
        possible.nth(ask.step).or(self.replies.last())
    }
}

/// One answer of the model.
#[derive(Clone, PartialEq, Debug)]
pub struct Reply {
    pub(super) act: Act,
    pub(super) usage: Usage,
    pub(super) pause: Duration,
    /// The acts instead where the tool is not offered: the first that is possible.
    otherwise: Vec<Act>,
}

/// The action of an answer.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Act {
    Text(String),
    Shell(String),
    Write { path: String, text: String },
    Read { path: String },
    Call { name: String, input: Value },
    Mcp { server: String, tool: String, input: Value },
    Limited { resets_at: u64 },
    Broken { status: u16 },
    Stall,
}

impl Act {
    /// True if it needs a tool.
    fn is_call(&self) -> bool {
        matches!(
            self,
            Act::Shell(_)
                | Act::Read { .. }
                | Act::Write { .. }
                | Act::Call { .. }
                | Act::Mcp { .. }
        )
    }
}

/// The token usage that an answer reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Uncached tokens of the request.
    pub input: u64,
    /// Cached tokens of the request.
    pub cached: u64,
    /// Tokens of the answer.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Usage { input: 100, cached: 50, output: 20 }
    }
}

impl Reply {
    /// Its act, and those that may take its place.
    fn acts(&self) -> impl Iterator<Item = &Act> {
        std::iter::once(&self.act).chain(&self.otherwise)
    }

    fn new(act: Act) -> Self {
        Reply { act, usage: Usage::default(), pause: Duration::ZERO, otherwise: Vec::new() }
    }

    /// Answers with text, streamed a few characters at a time. Ends the turn.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Act::Text(text.into()))
    }

    /// Runs a shell command with the agent's own tool.
    #[must_use]
    pub fn shell(command: impl Into<String>) -> Self {
        Self::new(Act::Shell(command.into()))
    }

    /// Writes a file with the agent's own tool. The path must be absolute; in it, `{folder}` stands
    /// for the folder that a command of the agent printed as `FOLDER=PATH`.
    #[must_use]
    pub fn write(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Act::Write { path: path.into(), text: text.into() })
    }

    /// Calls a tool by the name that the agent offered.
    #[must_use]
    pub fn call(name: impl Into<String>, input: Value) -> Self {
        Self::new(Act::Call { name: name.into(), input })
    }

    /// Calls a tool of an MCP server that the agent was given.
    #[must_use]
    pub fn mcp(server: impl Into<String>, tool: impl Into<String>, input: Value) -> Self {
        Self::new(Act::Mcp { server: server.into(), tool: tool.into(), input })
    }

    /// Says this text instead where the tool is not offered.
    #[must_use]
    pub fn or_text(mut self, text: impl Into<String>) -> Self {
        self.otherwise.push(Act::Text(text.into()));
        self
    }

    /// Runs this shell command with the agent's own tool where the tool is not offered.
    #[must_use]
    pub fn or_shell(mut self, command: impl Into<String>) -> Self {
        self.otherwise.push(Act::Shell(command.into()));
        self
    }

    /// Reads this file with the agent's own tool where the tool is not offered. The path is as for
    /// [`Reply::write`].
    #[must_use]
    pub fn or_read(mut self, path: impl Into<String>) -> Self {
        self.otherwise.push(Act::Read { path: path.into() });
        self
    }

    /// Returns the answer that the offered tools allow.
    pub(super) fn with_tools(mut self, ask: &Ask) -> Self {
        if !toolbox::has(&self.act, ask)
            && let Some(place) = self.otherwise.iter().position(|act| toolbox::has(act, ask))
        {
            self.act = self.otherwise.swap_remove(place);
        }
        self
    }

    /// Replaces `{folder}` in the path of a file.
    pub(super) fn in_folder(mut self, folder: impl Fn() -> String) -> Self {
        if let Act::Write { path, .. } | Act::Read { path } = &mut self.act
            && path.contains("{folder}")
        {
            *path = path.replace("{folder}", &folder());
        }
        self
    }

    /// Refuses with 429: the quota is used up until this time, in seconds since 1970.
    #[must_use]
    pub fn limited(resets_at: u64) -> Self {
        Self::new(Act::Limited { resets_at })
    }

    /// Fails with this HTTP status.
    #[must_use]
    pub fn broken(status: u16) -> Self {
        Self::new(Act::Broken { status })
    }

    /// Begins to answer and then sends nothing, until the agent disconnects or the server ends.
    #[must_use]
    pub fn stall() -> Self {
        Self::new(Act::Stall)
    }

    /// Sets the token usage that the answer reports.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Waits this long between two pieces of a stream.
    #[must_use]
    pub fn slow(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}
