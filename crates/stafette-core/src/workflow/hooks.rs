//! Commands that receive events, and may refuse.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentName, Millis};

/// The maximum number of hooks in a workflow.
pub const MAX_HOOKS: usize = 64;

/// The points before an action at which a hook can still refuse it.
pub const BEFORE: [&str; 2] = ["before_run", "before_turn"];

/// Names from the coordination protocol, each with the events that it stands for.
pub const PROTOCOL: [(&str, &[&str]); 6] = [
    ("agent_started", &["turn_ordered"]),
    ("agent_completed", &["turn_finished"]),
    ("handoff_created", &["handoff_admitted"]),
    ("handoff_accepted", &["receipt_given", "turn_taken"]),
    ("error_occurred", &["turn_failed", "alert_raised"]),
    ("escalation_triggered", &["handoff_admitted"]),
];

/// A command that receives JSON on standard input for an event. It exits with 0 to continue and
/// with 2 to refuse; its standard error is then the reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Hook {
    /// The event: `before_run`, `before_turn`, `question`, or the name of a stored event.
    pub on: String,
    /// The program and its arguments, started in the project's folder.
    pub command: Vec<String>,
    /// The time limit for the command.
    #[serde(default = "ten_seconds")]
    pub timeout: Millis,
    /// The agents whose events it receives; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentName>,
    /// The action to take if the command fails or times out.
    #[serde(default)]
    pub on_error: OnError,
    /// The environment variables that it may see, besides harmless ones such as `PATH` and `HOME`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// The action to take if a hook fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Raise an alert and continue.
    #[default]
    Continue,
    /// Treat it as a refusal.
    Block,
}

fn ten_seconds() -> Millis {
    Millis::seconds(10)
}

impl Hook {
    /// True if it is called before an action.
    pub fn is_before(&self) -> bool {
        BEFORE.contains(&self.on.as_str())
    }

    /// True if it receives events of this name; `question` is true if a person is asked.
    pub fn hears(&self, event: &str, question: bool) -> bool {
        let means = |(name, events): &(&str, &[&str])| *name == self.on && events.contains(&event);
        match self.on.as_str() {
            "question" | "escalation_triggered" => question,
            on => on == event || PROTOCOL.iter().any(means),
        }
    }

    /// True if it receives events of `agent`.
    pub fn concerns(&self, agent: Option<&str>) -> bool {
        self.agents.is_empty()
            || agent.is_some_and(|agent| self.agents.iter().any(|name| name.as_str() == agent))
    }
}
