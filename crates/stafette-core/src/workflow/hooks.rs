//! Commands that are told what happens, and may say no.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentName, Millis};

/// A workflow has no more hooks.
pub const MAX_HOOKS: usize = 64;

/// The moments before something happens, when a hook can still say no.
pub const BEFORE: [&str; 2] = ["before_run", "before_turn"];

/// Names from the coordination protocol, each with the events that it means.
pub const PROTOCOL: [(&str, &[&str]); 6] = [
    ("agent_started", &["turn_ordered"]),
    ("agent_completed", &["turn_finished"]),
    ("handoff_created", &["handoff_admitted"]),
    ("handoff_accepted", &["receipt_given", "turn_taken"]),
    ("error_occurred", &["turn_failed", "alert_raised"]),
    ("escalation_triggered", &["handoff_admitted"]),
];

/// A command that gets JSON on standard input when something happens. It ends with 0 to go on and
/// with 2 to say no; what it then says on standard error is the reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Hook {
    /// When: `before_run`, `before_turn`, `question`, or the name of an event.
    pub on: String,
    /// The program and its arguments, started in the project's folder.
    pub command: Vec<String>,
    /// How long it may take.
    #[serde(default = "ten_seconds")]
    pub timeout: Millis,
    /// Only what concerns these agents; everyone otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentName>,
    /// What it means when the command breaks or takes too long.
    #[serde(default)]
    pub on_error: OnError,
    /// The environment variables that it may see, besides the harmless ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// What a hook that breaks means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// An alert, and the work goes on.
    #[default]
    Continue,
    /// As if it had said no.
    Block,
}

fn ten_seconds() -> Millis {
    Millis::seconds(10)
}

impl Hook {
    /// Whether it is asked before something happens.
    #[must_use]
    pub fn is_before(&self) -> bool {
        BEFORE.contains(&self.on.as_str())
    }

    /// Whether it wants to hear of an event of this name; `question` says that a person is asked.
    #[must_use]
    pub fn hears(&self, event: &str, question: bool) -> bool {
        let means = |(name, events): &(&str, &[&str])| *name == self.on && events.contains(&event);
        match self.on.as_str() {
            "question" | "escalation_triggered" => question,
            on => on == event || PROTOCOL.iter().any(means),
        }
    }

    /// Whether it concerns itself with what `agent` does.
    #[must_use]
    pub fn concerns(&self, agent: Option<&str>) -> bool {
        self.agents.is_empty()
            || agent.is_some_and(|agent| self.agents.iter().any(|name| name.as_str() == agent))
    }
}
