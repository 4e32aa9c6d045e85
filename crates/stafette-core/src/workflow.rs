//! A workflow: its agents, the routes between them, and their limits.

pub mod alerts;
mod budget;
pub mod changes;
mod coordination;
pub mod council;
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

pub use budget::{AgentBudget, Budget, Estimate};
pub use coordination::Coordination;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentName, Fields, Millis, Party, is_default};

/// The complete content of `stafette.toml`.
//
// An unknown key in a file is a mistake, which `file` and the schema report. An unknown key in a
// stored run is a setting of an older release, and is ignored: so no type in here makes serde
// refuse it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Workflow {
    /// The general settings of the workflow.
    pub workflow: Header,
    /// The agents by name.
    pub agents: BTreeMap<AgentName, Agent>,
    /// The allowed handoffs between parties. `human` and `orchestrator` are always allowed as
    /// targets.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// The forbidden handoffs, each with a reason that replaces the plain refusal.
    #[serde(default)]
    pub deny: Vec<Denied>,
    /// The cycles that are allowed.
    #[serde(default)]
    pub loops: Vec<Loop>,
    /// The phases of every run, in order; without any, the work follows the routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<phases::PhaseStep>,
    /// The limits on counts and times.
    #[serde(default)]
    pub limits: Limits,
    /// The rules for retrying a failed turn.
    #[serde(default)]
    pub retries: Retries,
    /// The amounts that a run may spend.
    #[serde(default)]
    pub budget: Budget,
    /// The provider of the inputs of each source; `external` and `market` go to the agent
    /// `research` if there is one, everything else to the orchestrator.
    #[serde(default)]
    pub sources: BTreeMap<String, Party>,
    /// The rules for a handoff that cannot be done.
    #[serde(default)]
    pub recovery: Recovery,
    /// The folder that mirrors handoffs and state as files; not mirrored if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordination: Option<Coordination>,
    /// The TCP listener of the daemon, besides its socket.
    #[serde(default, skip_serializing_if = "is_default")]
    pub server: server::Server,
    /// The storage of the runs; a file in the project's state folder if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub store: store::Store,
    /// The rules for locks.
    #[serde(default)]
    pub locks: locks::LockRules,
    /// The rules for applying changes to the project.
    #[serde(default, skip_serializing_if = "is_default")]
    pub changes: changes::ChangeRules,
    /// The team's own program, if the team may change it.
    #[serde(default, rename = "self", skip_serializing_if = "Option::is_none")]
    pub own: Option<own::Own>,
    /// The texts of the profiles that are files, by name: included when the workflow is read, so
    /// that exactly the trusted text runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, String>,
    /// Commands that receive events and may refuse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<hooks::Hook>,
    /// The triggers that start runs automatically.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<triggers::Trigger>,
    /// The notifications for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<notify::Notify>,
    /// The conditions for alerts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub alerts: alerts::AlertRules,
    /// The export of traces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub telemetry: telemetry::Telemetry,
    /// The knowledge features; all off if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<knowledge::Knowledge>,
    /// The council; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub council: Option<council::CouncilRules>,
    /// The rules for handing over to the next generation; each run stands alone if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generations: Option<generations::GenerationRules>,
}

/// The general settings of a workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Header {
    /// The name of the workflow.
    pub name: String,
    /// The party that gets the user's request: an agent, or the council.
    pub entry: Party,
    /// The version of the handoff schema that the workflow uses.
    #[serde(default = "schema_version")]
    pub schema_version: String,
    /// The word in control frames.
    #[serde(default = "frame_word")]
    pub frame_word: String,
    /// True if an unsigned frame in an agent's output may move work without confirmation.
    #[serde(default)]
    pub trust_bare_frames: bool,
    /// True if each agent works in its own git worktree instead of the project itself. The result
    /// of a run is then left on the branch `stafette/result/RUN`.
    #[serde(default)]
    pub worktrees: bool,
}

fn schema_version() -> String {
    "1.0.0".into()
}

fn frame_word() -> String {
    "ODEI".into()
}

/// An agent: its role and its runner.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Agent {
    /// The purpose of the agent, in a sentence.
    #[serde(default)]
    pub role: String,
    /// The instructions at the start of every turn.
    #[serde(default)]
    pub prompt: String,
    /// The way in which its turns are carried out.
    pub runner: Runner,
    /// The profile of the program that runs it, such as `claude` or `codex`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The program and its arguments, for `exec`, `pty` and `acp`; overrides the profile's.
    #[serde(default)]
    pub command: Vec<String>,
    /// The script, for `scripted`, relative to the workflow file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The address of the remote agent, for `a2a`, where its agent card is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable with the remote agent's bearer token, for `a2a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<String>,
    /// The way in which the command receives its prompt.
    #[serde(default)]
    pub prompt_via: PromptVia,
    /// The format in which the command returns its result.
    #[serde(default)]
    pub result: ResultFormat,
    /// The environment variables that it may see, besides harmless ones such as `PATH` and `HOME`.
    #[serde(default)]
    pub env: Vec<String>,
    /// The time limit for becoming ready for input, for `pty`; overrides the profile's and the
    /// limits'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_timeout: Option<Millis>,
    /// The time after which a program that hangs is interrupted and, if it stays silent, ended: it
    /// printed nothing, sent nothing and did not compute. The turn has failed and may be tried
    /// again. Overrides the profile's; 10 minutes when neither says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Millis>,
    /// The sandbox of its processes.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The actions that it may take without asking; `edits` if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub permissions: PermissionLevel,
    /// The inputs that it requires.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// The expected usage of a turn, until the agent has a history. Without an estimate, the first
    /// turn of an agent without a history reserves the entire budget of the run, if its runner can
    /// tell what it costs; of one that cannot, such as a command without a profile, no turn reserves
    /// anything. Where nobody can tell what a turn has used, it counts as the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Estimate")]
    pub estimate: Option<Estimate>,
    /// The amounts that it may spend in a run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budget: AgentBudget,
    /// True if the agent gets Stafette's tools through the Model Context Protocol, where its
    /// profile or its runner supports it.
    #[serde(default = "yes")]
    pub mcp: bool,
}

fn yes() -> bool {
    true
}

/// The way in which turns are carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// A command for each turn.
    Exec,
    /// A small script, for tests and demonstrations.
    Scripted,
    /// A command in its own terminal.
    Pty,
    /// A command that uses the Agent Client Protocol.
    Acp,
    /// Not started here: an external agent connects and claims the turns.
    External,
    /// A remote agent that uses the Agent2Agent protocol.
    A2a,
}

/// The sandbox of an agent's processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// No sandbox: the processes have all rights of their user.
    #[default]
    Off,
    /// As much as the system can enforce; the gaps are reported.
    Auto,
    /// Complete, or the agent does not start.
    Strict,
}

/// The actions that an agent may take without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionLevel {
    /// Only reading.
    Ask,
    /// Also changing files.
    #[default]
    Edits,
    /// Everything, commands included. Only in a sandbox that the system enforces as a whole.
    All,
}

/// The way in which a command receives its prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptVia {
    /// Through its standard input.
    #[default]
    Stdin,
    /// As the last argument, or in place of `{prompt}`.
    Argument,
}

/// The format of a command's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultFormat {
    /// Control frames anywhere in its output.
    #[default]
    Frames,
    /// One JSON document of any dialect on standard output.
    Json,
    /// Exit status 0 says that the work is done, and the last lines of the output are its summary: for
    /// commands that know nothing of handoffs.
    Exit,
}

/// An input that an agent requires.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Need {
    /// The name of the input.
    pub key: String,
    /// The origin: `external`, `market`, `user`, `decision`, or a key of `[sources]`.
    pub source: String,
    /// The expected type of the value, such as `string`, `number` or `string[]`.
    #[serde(default = "string_type", rename = "type")]
    pub expected_type: String,
    /// A description for the provider.
    #[serde(default)]
    pub description: String,
}

fn string_type() -> String {
    "string".into()
}

/// A handoff that the workflow allows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Route {
    /// The party that may hand over.
    pub from: Party,
    /// The party that may take the work.
    pub to: Party,
    /// The typical reason for the handoff.
    #[serde(default)]
    pub reason: String,
    /// The names of the evidence that must be included.
    #[serde(default)]
    pub requires: Vec<String>,
    /// The parties to try if the taker cannot do it, in order.
    #[serde(default)]
    pub alternatives: Vec<Party>,
}

/// A handoff that the workflow forbids.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Denied {
    /// The party that must not hand over.
    pub from: Party,
    /// The party that must not take the work.
    pub to: Party,
    /// The reason, shown to the agent.
    pub why: String,
}

/// A cycle that is allowed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Loop {
    /// The name of the loop.
    pub name: String,
    /// The agents in the loop.
    pub between: Vec<AgentName>,
    /// The maximum number of rounds. A round begins whenever the work reaches the agent that had it
    /// first; in the last round that agent cannot hand it on within the loop.
    #[serde(default = "three")]
    pub max_rounds: u32,
}

fn three() -> u32 {
    3
}

/// The limits on counts and times. The defaults are the handoff contract's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Limits {
    /// The maximum number of handoffs per work item.
    pub handoffs_per_item: u32,
    /// The maximum number of handoffs per run.
    pub handoffs_per_run: u32,
    /// The maximum number of turns per handoff, including retries and resumptions, before a person
    /// is asked.
    pub turns_per_handoff: u32,
    /// The maximum number of refused proposals of an agent before a person is asked.
    pub refusals: u32,
    /// The time before the same path can be used again.
    pub cooldown: Millis,
    /// The time to accept a turn.
    pub accept_timeout: Millis,
    /// The time for an agent in a terminal to become ready for input, before people are alerted.
    pub ready_timeout: Millis,
    /// The maximum time between two signs of life. An external agent sends its own, by `report`.
    /// A program that Stafette runs is reported alive every 5 seconds, so a shorter lease ends
    /// one that works silently; `stall` is what ends one that hangs.
    pub lease: Millis,
    /// The time to finish a turn.
    pub finish_timeout: Millis,
    /// The time for a person to answer, if the question has no deadline of its own. Then its
    /// default is taken; without one, the run fails.
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

/// The rules for retrying a failed turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Retries {
    /// The maximum number of attempts, including the first.
    pub max: u32,
    /// The first delay; each later one is twice as long.
    pub backoff: Millis,
    /// The maximum delay between two attempts.
    pub max_backoff: Millis,
    /// The random part of a delay, from 0 to 1.
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

/// The rules for a handoff that cannot be done.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Recovery {
    /// The inputs without which no work continues.
    pub critical: Vec<String>,
    /// The rules; the first match applies. Without one, partial work counts as it is; other work
    /// goes to the `alternatives` of its route, and then to a person.
    pub rules: Vec<RecoveryRule>,
}

/// A recovery strategy and its conditions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecoveryRule {
    /// Matches only handoffs to this party; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Party>,
    /// Matches only this cause; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<RecoveryCause>,
    /// The strategy to apply.
    pub action: Strategy,
    /// The party to try instead, for `retry_different_target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Party>,
    /// The values to continue with, for `fallback_default`.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub default: Fields,
}

/// The cause for recovering a handoff.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryCause {
    /// The work was not done.
    Failed,
    /// The work was done in part.
    Partial,
    /// The work was not done in time.
    Expired,
}

/// A strategy for a handoff that cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Gives the work to another party.
    RetryDifferentTarget,
    /// Continues with the partial result.
    ProceedPartial,
    /// Asks a person for a decision.
    Escalate,
    /// Continues without the result.
    SkipAndContinue,
    /// Continues with values from the workflow.
    FallbackDefault,
}

impl Workflow {
    /// Returns the agent of that name.
    pub fn agent(&self, party: &Party) -> Option<(&AgentName, &Agent)> {
        match party {
            Party::Agent(name) => self.agents.get_key_value(&**name),
            Party::Orchestrator | Party::Human => None,
        }
    }

    /// Returns the route between two parties.
    pub fn route(&self, from: &Party, to: &Party) -> Option<&Route> {
        self.routes.iter().find(|route| route.from == *from && route.to == *to)
    }

    /// Returns all parties that `from` may hand to, the reserved ones last.
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

    /// Returns the provider of the inputs of `source`.
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

#[cfg(test)]
pub(crate) mod file {
    use stafette_config::Diagnostic;

    /// Parses a workflow file, for the tests.
    pub(crate) fn parse(text: &str) -> Result<super::Workflow, Vec<Diagnostic>> {
        stafette_config::document(text).map(|(workflow, _)| workflow)
    }
}
