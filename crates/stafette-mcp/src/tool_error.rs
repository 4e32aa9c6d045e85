//! Errors for a model to read: what happened, and what to do next.

use serde_json::{Value, json};
use stafette_core::Party;
use stafette_core::run::propose::Refusal;
use stafette_engine::EngineError;
use stafette_stages::StageError;

const TRY_ANOTHER_WAY: &str = "Read what it says, and try it another way.";

/// Error of a tool call.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolError {
    /// Stable code for programs.
    pub code: String,
    /// Description of the error, as a sentence.
    pub what: String,
    /// Suggested next step.
    pub fix: String,
    /// Additional fields of the JSON form.
    pub details: Box<Value>,
}

/// An error that does not say yet what to do next: no tool may return it as it is.
#[must_use]
#[derive(Debug)]
pub struct Unfixed {
    code: String,
    what: String,
}

impl Unfixed {
    /// Adds the next step.
    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> ToolError {
        let Unfixed { code, what } = self;
        ToolError { code, what, fix: fix.into(), details: Box::default() }
    }
}

impl ToolError {
    /// Begins an error, which needs a next step to be one.
    #[expect(clippy::new_ret_no_self, reason = "an error without a next step is none")]
    pub fn new(code: &str, what: impl Into<String>) -> Unfixed {
        Unfixed { code: code.to_owned(), what: what.into() }
    }

    fn with(self, details: Value) -> Self {
        ToolError { details: Box::new(details), ..self }
    }

    /// Returns the text for a model.
    pub fn text(&self) -> String {
        format!("{} ({}). {}", self.what.trim_end_matches('.'), self.code, self.fix)
    }

    /// Returns the JSON for a program.
    pub fn json(&self) -> Value {
        let mut value = json!({ "code": self.code, "title": self.what, "fix": self.fix });
        if let (Value::Object(fields), Value::Object(details)) = (&mut value, &*self.details) {
            fields.extend(details.clone());
        }
        value
    }

    /// A refused proposal, with all parties that `targets` allows.
    pub(crate) fn refused(refusal: &Refusal, targets: &[Party]) -> Self {
        let names: Vec<&str> = targets.iter().map(Party::as_str).collect();
        let list = names.join(", ");
        let fix = match refusal {
            Refusal::TooLarge { .. } => {
                "Hand along less: put what is large into files and name them.".to_owned()
            }
            Refusal::TooMany { .. } | Refusal::ItemLimit { .. } | Refusal::RunLimit { .. } => {
                "Do what is left yourself and call `complete`, or ask a person with `escalate`."
                    .to_owned()
            }
            Refusal::Repeated { .. } | Refusal::Cycle { .. } => format!(
                "Do not send the work back. You may hand to: {list}. Or finish it with \
                 `complete`, or ask a person with `escalate`."
            ),
            Refusal::LoopExhausted { .. } | Refusal::NoProgress { .. } => {
                "Finish with `complete`, or ask a person with `escalate`.".to_owned()
            }
            Refusal::UnknownTarget { .. } | Refusal::Denied { .. } | Refusal::NoRoute { .. } => {
                format!("You may hand to: {list}. Call `handoff` again with one of them.")
            }
            Refusal::Objected { .. } | Refusal::Silent { .. } => {
                "Correct what it says and call `handoff` again, or ask a person with `escalate`."
                    .to_owned()
            }
            Refusal::MissingEvidence { missing, .. } => format!(
                "Call `handoff` again with {} in `outputs`.",
                missing.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        let details = json!({ "refusal": refusal, "targets": names });
        let (_, code) = EngineError::Refused { refusal: refusal.clone() }.code();
        ToolError::new(code, refusal.to_string()).fix(fix).with(details)
    }
}

impl From<EngineError> for ToolError {
    fn from(error: EngineError) -> Self {
        let fix = match &error {
            EngineError::NoRun { .. } => "Call `status` to see the runs there are.",
            EngineError::NoHandoff { .. } => "Call `status` with the run to see its handoffs.",
            EngineError::NoMessage { .. } => "It is in the run's log.",
            EngineError::NotSent { .. } => {
                "Send it to an agent that you hand work to or get work from."
            }
            EngineError::Ambiguous { .. } => "Give the run's whole id.",
            EngineError::Over { .. } => "Nothing is left to do in it.",
            EngineError::NotYours => {
                "Only the agent's own processes may speak for it, and only while its turn lasts."
            }
            EngineError::NoTurn { .. } => {
                "Stop here: you are called again when there is work for you."
            }
            EngineError::Mistaken { .. } => "Correct the arguments and call again.",
            EngineError::Refused { refusal } => return ToolError::refused(refusal, &[]),
            EngineError::Taken { .. } => "Leave it to them and call `wait` for other work.",
            EngineError::NoRoom { .. } => {
                "Go on with other work: a person applies or rejects some of them first."
            }
            EngineError::Late { .. } => {
                "Someone else has the work now, and what you gave is kept as evidence. Stop \
                 working on it; call `wait` for what is next."
            }
            EngineError::EndedBefore { .. } => "Stop working on it; call `wait` for what is next.",
            EngineError::NotTaken { .. } => "Take it with `accept` first: until then anyone may.",
            EngineError::NothingOut { .. } => "Call `wait` to see what is offered.",
            EngineError::StartedHere { .. } => {
                "Stafette starts that agent itself; take the turns of agents with the runner \
                 `external`, which `wait` finds."
            }
            EngineError::Stopping => "The daemon is on its way out; try again later.",
            EngineError::Store { .. } => "Nothing was taken; try again later.",
            EngineError::Damaged { .. }
            | EngineError::Read { .. }
            | EngineError::Restore { .. } => "The person who runs Stafette finds more in its log.",
            EngineError::Change { .. } => "Correct the edits and propose the whole set again.",
            EngineError::Lock { .. } => {
                "Work on something else first and try again; what a person holds, only a person \
                 gives away."
            }
            // No tool causes any other error.
            _ => TRY_ANOTHER_WAY,
        };
        let (_, code) = error.code();
        let mut what = error.to_string();
        let mut next = std::error::Error::source(&error);
        while let Some(cause) = next {
            what = format!("{what}: {cause}");
            next = cause.source();
        }
        ToolError::new(code, what).fix(fix)
    }
}

impl From<StageError> for ToolError {
    fn from(fault: StageError) -> Self {
        let fault = match fault {
            StageError::Engine { source } => return source.into(),
            fault => fault,
        };
        let (_, code) = fault.code();
        let fix = match code {
            "not_granted" | "needs_person" => "Leave it to those who may, or ask a person.",
            "MCP_CONNECTION_FAILED" => {
                "The server behind it is away. What was written waits; reading works later."
            }
            _ => TRY_ANOTHER_WAY,
        };
        ToolError::new(code, fault.to_string()).fix(fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_02_a_refusal_names_everyone_who_is_possible() {
        let (from, to) = (Party::from("builder"), Party::from("boss"));
        let possible = vec![Party::from("reviewer"), Party::Human];
        let refusal = Refusal::NoRoute { from, to, possible: possible.clone() };
        let trouble = ToolError::refused(&refusal, &possible);
        assert!(trouble.text().contains("You may hand to: reviewer, human."), "{trouble:?}");
        assert_eq!(trouble.json()["refusal"]["rule"], "no_route");
        assert_eq!(trouble.json()["targets"], json!(["reviewer", "human"]));
    }
}
