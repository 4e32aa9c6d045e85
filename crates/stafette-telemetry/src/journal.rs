//! The event log with the coordination protocol's six event names, one JSON object per line.

mod file;

use serde_json::{Value, json};
use stafette_core::{Party, RunId, Time};

use crate::book::{About, Fact};

pub use file::Journal;

/// Returns the log lines of a fact. `position` is the event's number over all runs.
pub fn lines(position: u64, run: RunId, at: Time, fact: &Fact) -> Vec<Value> {
    let line = |event: &str, agent: &str, mut context: Value| {
        if let Some(fields) = context.as_object_mut() {
            fields.insert("run".into(), run.to_string().into());
            fields.insert("position".into(), position.into());
        }
        json!({ "event": event, "agent": agent, "timestamp": at.rfc3339(), "context": context })
    };
    match fact {
        Fact::Made(about) => {
            let mut context = about.context();
            context["to"] = about.to.to_string().into();
            context["reason"] = about.reason.clone().into();
            let from = about.from.to_string();
            let mut lines = vec![line("handoff_created", &from, context.clone())];
            if about.to == Party::Human {
                context["details"] = about.summary.clone().into();
                lines.push(line("escalation_triggered", &from, context));
            }
            lines
        }
        Fact::Accepted(about) => {
            vec![line("handoff_accepted", about.to.as_str(), about.context())]
        }
        Fact::TurnBegan(about, turn) => {
            let mut context = about.context();
            context["turn"] = turn.to_string().into();
            vec![line("agent_started", about.to.as_str(), context)]
        }
        Fact::TurnEnded { about, turn, usage, failure, cancelled, began } => {
            let mut context = about.context();
            context["turn"] = turn.to_string().into();
            context["took_ms"] = at.since(*began).0.into();
            context["tokens"] = usage.tokens.into();
            match (failure, cancelled) {
                (Some(failure), _) => {
                    context["error"] = failure.message.clone().into();
                    vec![line("error_occurred", about.to.as_str(), context)]
                }
                (None, true) => Vec::new(),
                (None, false) => vec![line("agent_completed", about.to.as_str(), context)],
            }
        }
        Fact::Refused { about, why, rule, .. } => {
            let mut context = about.context();
            context["to"] = about.to.to_string().into();
            context["rule"] = rule.clone().into();
            context["error"] = why.clone().into();
            vec![line("error_occurred", about.from.as_str(), context)]
        }
        Fact::Alerted { code, message } => {
            vec![line("error_occurred", "", json!({ "code": code, "error": message }))]
        }
        _ => Vec::new(),
    }
}

impl About {
    fn context(&self) -> Value {
        let mut context = json!({ "workflow": *self.workflow, "handoff": self.id.to_string() });
        if let Some(spec) = &self.spec {
            context["spec"] = spec.clone().into();
        }
        context
    }
}
