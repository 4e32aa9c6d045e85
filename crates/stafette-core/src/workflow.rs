//! A workflow: who is there, who may hand to whom, and within which limits.

pub mod alerts;
mod budget;
pub mod changes;
pub mod check;
mod coordination;
pub mod council;
pub mod file;
pub mod gate;
pub mod generations;
pub mod hooks;
pub mod knowledge;
pub mod locks;
pub mod notify;
pub mod own;
pub mod phases;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod triggers;
pub mod weights;

use std::collections::BTreeMap;

pub use budget::{AgentBudget, Budget};
pub use coordination::Coordination;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentName, Fields, Millis, Party, Usage};

/// Everything that `stafette.toml` says.
//
// What a file says beyond that is a mistake, which `file` and the schema find. What a stored run has
// beyond that was a setting once, and is passed over: so no type in here has serde refuse it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Workflow {
    /// The workflow itself.
    pub workflow: Header,
    /// The agents by name.
    pub agents: BTreeMap<AgentName, Agent>,
    /// Who may hand to whom. `human` and `orchestrator` are always allowed.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Who must not, and why: said instead of a plain refusal.
    #[serde(default)]
    pub deny: Vec<Denied>,
    /// Cycles that are meant.
    #[serde(default)]
    pub loops: Vec<Loop>,
    /// The phases of every run, in their order; without any, the work goes where routes lead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<phases::PhaseStep>,
    /// Counts and clocks.
    #[serde(default)]
    pub limits: Limits,
    /// What happens when a turn breaks.
    #[serde(default)]
    pub retries: Retries,
    /// What a run may spend.
    #[serde(default)]
    pub budget: Budget,
    /// Who provides the inputs of a source; `external` and `market` go to the agent `research`
    /// when there is one, everything else to the orchestrator.
    #[serde(default)]
    pub sources: BTreeMap<String, Party>,
    /// What happens when a handoff cannot be done.
    #[serde(default)]
    pub recovery: Recovery,
    /// Handoffs and state as files; without this there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordination: Option<Coordination>,
    /// Where the daemon can be reached besides its socket.
    #[serde(default, skip_serializing_if = "server::Server::is_silent")]
    pub server: server::Server,
    /// Where the runs are kept; without this, in a file of the project.
    #[serde(default, skip_serializing_if = "store::Store::is_silent")]
    pub store: store::Store,
    /// How locks are given.
    #[serde(default)]
    pub locks: locks::LockRules,
    /// How changes get into the project.
    #[serde(default, skip_serializing_if = "changes::ChangeRules::is_silent")]
    pub changes: changes::ChangeRules,
    /// The team's own program, when it may change that.
    #[serde(default, rename = "self", skip_serializing_if = "Option::is_none")]
    pub own: Option<own::Own>,
    /// The texts of the profiles that are files, by name: put in when the workflow is read, so that
    /// what was trusted is what runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, String>,
    /// Commands that are told what happens, and may say no.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<hooks::Hook>,
    /// What begins runs by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<triggers::Trigger>,
    /// Whom to tell that something happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<notify::Notify>,
    /// When people should look.
    #[serde(default, skip_serializing_if = "alerts::AlertRules::is_silent")]
    pub alerts: alerts::AlertRules,
    /// Where traces go.
    #[serde(default, skip_serializing_if = "telemetry::Telemetry::is_silent")]
    pub telemetry: telemetry::Telemetry,
    /// What is known and planned; without this, nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<knowledge::Knowledge>,
    /// Who decides together; without this there is no council.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub council: Option<council::CouncilRules>,
    /// How the team hands over to its next self; without this a run stands for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generations: Option<generations::GenerationRules>,
}

/// The workflow itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Who gets the user's request: an agent, or the council.
    pub entry: Party,
    /// The version of the handoff schema that it speaks.
    #[serde(default = "schema_version")]
    pub schema_version: String,
    /// The word in control frames.
    #[serde(default = "frame_word")]
    pub frame_word: String,
    /// Whether a bare frame in an agent's output may move work by itself.
    #[serde(default)]
    pub trust_bare_frames: bool,
    /// Whether each agent works in a git worktree of its own instead of the project itself. What
    /// comes of a run is then left on the branch `stafette/result/RUN`.
    #[serde(default)]
    pub worktrees: bool,
}

fn schema_version() -> String {
    "1.0.0".into()
}

fn frame_word() -> String {
    "ODEI".into()
}

/// A role and what runs it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Agent {
    /// What it is for, in a sentence.
    #[serde(default)]
    pub role: String,
    /// What it is told at the start of every turn.
    #[serde(default)]
    pub prompt: String,
    /// What carries out its turns.
    pub runner: Runner,
    /// Which program runs it, by the name of its profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The program and its arguments, for `exec`; instead of the profile's when both are there.
    #[serde(default)]
    pub command: Vec<String>,
    /// The script, for `scripted`, relative to the workflow's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Where the remote agent is, for `a2a`: the address that its agent card is found under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable with the remote agent's bearer token, for `a2a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<String>,
    /// How the prompt reaches the command.
    #[serde(default)]
    pub prompt_via: PromptVia,
    /// How the result is read.
    #[serde(default)]
    pub result: ResultFormat,
    /// The environment variables that it may see, besides the harmless ones.
    #[serde(default)]
    pub env: Vec<String>,
    /// Time for it to say that it takes input, for `pty`; instead of its profile's and of the limits'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_timeout: Option<Millis>,
    /// Time without any output in a turn, after which it is interrupted and no longer counts as
    /// alive, for `exec` and `pty`; instead of its profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Millis>,
    /// What its processes may touch.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The inputs that it cannot do without.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// What a turn is expected to use, until its own history tells. Without it the first turn of an
    /// agent that nobody has seen at work has the run's budget to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Usage")]
    pub estimate: Option<Usage>,
    /// What it may spend in a run.
    #[serde(default, skip_serializing_if = "AgentBudget::is_silent")]
    pub budget: AgentBudget,
    /// Whether it is given Stafette's tools by the Model Context Protocol, where its profile or its
    /// runner says how.
    #[serde(default = "yes")]
    pub mcp: bool,
}

fn yes() -> bool {
    true
}

/// A way to carry out a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// A command for each turn.
    Exec,
    /// A small script, for tests and demonstrations.
    Scripted,
    /// A command in a terminal of its own.
    Pty,
    /// A command that speaks the Agent Client Protocol.
    Acp,
    /// Nobody here: someone comes by a door of ours and takes its turns.
    External,
    /// A remote agent that speaks the Agent2Agent protocol.
    A2a,
}

/// Whether an agent's processes are in a sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// They may do whatever their user may.
    #[default]
    Off,
    /// As much as the system can enforce; people are told what it cannot.
    Auto,
    /// All of it, or the agent does not start.
    Strict,
}

/// How a command gets its prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptVia {
    /// On standard input.
    #[default]
    Stdin,
    /// As the last argument, or in place of `{prompt}`.
    Argument,
}

/// How a command's result is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultFormat {
    /// Control frames anywhere in its output.
    #[default]
    Frames,
    /// One JSON document of any dialect on standard output.
    Json,
}

/// An input that an agent declares.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Need {
    /// Its name.
    pub key: String,
    /// Where it comes from: `external`, `market`, `user`, `decision`, or a word of `[sources]`.
    pub source: String,
    /// What it should look like.
    #[serde(default = "string_type", rename = "type")]
    pub expected_type: String,
    /// What it is.
    #[serde(default)]
    pub description: String,
}

fn string_type() -> String {
    "string".into()
}

/// An allowed path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Route {
    /// Who may give.
    pub from: Party,
    /// Who may take.
    pub to: Party,
    /// The typical reason.
    #[serde(default)]
    pub reason: String,
    /// What must be handed along.
    #[serde(default)]
    pub requires: Vec<String>,
    /// Who else could do it when the taker cannot.
    #[serde(default)]
    pub alternatives: Vec<Party>,
}

/// A forbidden path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Denied {
    /// Who must not give.
    pub from: Party,
    /// Who must not take.
    pub to: Party,
    /// Why.
    pub why: String,
}

/// A cycle that is meant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Loop {
    /// Its name.
    pub name: String,
    /// Who is in it.
    pub between: Vec<AgentName>,
    /// How often the first of them may see the work.
    #[serde(default = "three")]
    pub max_rounds: u32,
}

fn three() -> u32 {
    3
}

/// Counts and clocks. The defaults are the handoff contract's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Limits {
    /// Handoffs for one work item.
    pub handoffs_per_item: u32,
    /// Handoffs in one run.
    pub handoffs_per_run: u32,
    /// Turns of one handoff, retries and resumptions included, before a person is asked.
    pub turns_per_handoff: u32,
    /// How often an agent may propose what is refused before a person is asked.
    pub refusals: u32,
    /// Wait before the same path is used again.
    pub cooldown: Millis,
    /// Time to accept a turn.
    pub accept_timeout: Millis,
    /// Time for an agent in a terminal to say that it takes input, before people are told.
    pub ready_timeout: Millis,
    /// Time between two signs of life.
    pub lease: Millis,
    /// Time to finish a turn.
    pub finish_timeout: Millis,
    /// Time for a person to answer.
    pub answer_timeout: Millis,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            handoffs_per_item: 3,
            handoffs_per_run: 10,
            turns_per_handoff: 20,
            refusals: 2,
            cooldown: Millis::seconds(5),
            accept_timeout: Millis::seconds(30),
            ready_timeout: Millis::seconds(5),
            lease: Millis::minutes(2),
            finish_timeout: Millis::hours(2),
            answer_timeout: Millis::hours(7 * 24),
        }
    }
}

/// What happens when a turn breaks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Retries {
    /// Attempts in all.
    pub max: u32,
    /// The first wait; each later one is twice as long.
    pub backoff: Millis,
    /// The longest wait.
    pub max_backoff: Millis,
    /// The part of a wait that varies, from 0 to 1.
    pub jitter: f64,
}

impl Default for Retries {
    fn default() -> Self {
        Retries {
            max: 3,
            backoff: Millis::seconds(1),
            max_backoff: Millis::minutes(1),
            jitter: 0.2,
        }
    }
}

/// What happens when a handoff cannot be done.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Recovery {
    /// Inputs without which nothing goes on.
    pub critical: Vec<String>,
    /// The first rule that fits decides; without one, the contract's ladder.
    pub rules: Vec<RecoveryRule>,
}

/// One way out, and when to take it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecoveryRule {
    /// For handoffs to this one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Party>,
    /// For this outcome only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<RecoveryCause>,
    /// What to do.
    pub action: Strategy,
    /// Whom to try instead, for `retry_different_target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Party>,
    /// What to go on with, for `fallback_default`.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub default: Fields,
}

/// What went wrong with a handoff.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryCause {
    /// It was not done.
    Failed,
    /// It was done in part.
    Partial,
    /// It was not done in time.
    Expired,
}

/// A recovery strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Give it to someone else.
    RetryDifferentTarget,
    /// Go on with what there is.
    ProceedPartial,
    /// Ask a person.
    Escalate,
    /// Go on without it.
    SkipAndContinue,
    /// Go on with a value that the workflow gives.
    FallbackDefault,
}

impl Workflow {
    /// The agent of that name.
    #[must_use]
    pub fn agent(&self, party: &Party) -> Option<(&AgentName, &Agent)> {
        match party {
            Party::Agent(name) => self.agents.get_key_value(&**name),
            Party::Orchestrator | Party::Human => None,
        }
    }

    /// The allowed path between two parties.
    #[must_use]
    pub fn route(&self, from: &Party, to: &Party) -> Option<&Route> {
        self.routes.iter().find(|route| route.from == *from && route.to == *to)
    }

    /// Everyone that `from` may hand to, the reserved parties last.
    #[must_use]
    pub fn targets(&self, from: &Party) -> Vec<Party> {
        let mut targets: Vec<Party> = Vec::new();
        for route in self.routes.iter().filter(|route| route.from == *from) {
            if !targets.contains(&route.to) {
                targets.push(route.to.clone());
            }
        }
        let council = self.council.as_ref().map(|_| council::party());
        for reserved in council.into_iter().chain([Party::Orchestrator, Party::Human]) {
            if !targets.contains(&reserved) {
                targets.push(reserved);
            }
        }
        targets
    }

    /// Who provides the inputs of `source`.
    #[must_use]
    pub fn provider(&self, source: &str) -> Party {
        if let Some(party) = self.sources.get(source) {
            return party.clone();
        }
        match source {
            "external" | "market" if self.agents.contains_key("research") => {
                Party::from("research")
            }
            _ => Party::Orchestrator,
        }
    }
}
