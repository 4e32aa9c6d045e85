//! `briefing`: describe the current turn.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Party, Priority, TurnOrder};

use super::{CallContext, Effect, Right, ToolError, Whose, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    #[serde(flatten)]
    whose: Whose,
}

/// A turn and the material to work with.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Briefing {
    /// Id of the run.
    run: String,
    /// Id of the handoff that is worked on, such as `h3`.
    handoff: String,
    /// Id of the turn: pass it with every call that you make in the turn.
    turn: String,
    /// `traceId` of a handoff response about the turn: one with another is refused.
    trace_id: String,
    /// Your name in this run.
    agent: String,
    /// Original request of the user.
    request: String,
    /// Party that handed the work over.
    from: String,
    /// Reason code of the handoff.
    reason: String,
    /// Urgency of the handoff.
    priority: Priority,
    /// Summary that the giver wants you to read first.
    #[serde(skip_serializing_if = "String::is_empty")]
    summary: String,
    /// Reason of the handoff, as a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    /// Instructions for your work.
    #[serde(skip_serializing_if = "String::is_empty")]
    instructions: String,
    /// Inputs to work with.
    inputs: Fields,
    /// Names of the inputs that a person gave in answer to your question. Any other came from an agent.
    replies: BTreeSet<String>,
    /// Outputs that the giver wants back.
    wanted: Vec<Wanted>,
    /// Answers that arrived since your last turn.
    answers: Vec<Answered>,
    /// Messages to you that came before this turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<String>,
    /// Parties that you may hand on to.
    targets: Vec<String>,
    /// Round of the loop that you are in, from 1.
    round: u32,
    /// Deadline of the turn (RFC 3339).
    finish_by: String,
    /// Number of deliveries of this turn: if it is more than 1, check what is already done.
    deliveries: u32,
}

/// An output that the giver wants back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Wanted {
    /// Name of the output: the key of `outputs` to put it under.
    key: String,
    /// Type that the value should have.
    expected_type: String,
    /// Description of the output.
    description: String,
}

/// An answer to something that you handed on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Answered {
    /// Party that answered.
    by: String,
    /// Outcome: resolved, partial, failed or escalated.
    outcome: String,
    /// Summary in a few sentences.
    summary: String,
    /// Outputs that were provided.
    outputs: Fields,
    /// Reason of the failure, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Briefing {
    /// Creates the briefing of a turn.
    pub(crate) fn of(order: TurnOrder) -> Self {
        let offer = order.offer;
        let wanted = offer.missing.into_iter().map(|input| Wanted {
            key: input.key,
            expected_type: input.expected_type,
            description: input.description,
        });
        let answers = order.answers.into_iter().map(|response| Answered {
            by: response.by.to_string(),
            outcome: word(&response.outcome),
            summary: response.summary,
            outputs: response.outputs,
            failure: response.failure,
        });
        // A turn given by the user repeats the request.
        let own = |text: String| if text == order.request { String::new() } else { text };
        Briefing {
            run: order.key.run.to_string(),
            handoff: order.key.handoff.to_string(),
            turn: short(order.key),
            trace_id: order.trace_id,
            agent: order.agent.to_string(),
            from: offer.from.to_string(),
            reason: offer.reason.as_str().to_owned(),
            priority: offer.priority,
            summary: own(offer.summary),
            detail: own(offer.detail),
            instructions: offer.instructions.unwrap_or_default(),
            inputs: order.inputs,
            replies: order.replies,
            wanted: wanted.collect(),
            answers: answers.collect(),
            messages: order.messages.iter().map(|it| it.told(order.key.run)).collect(),
            targets: order.routes,
            round: order.round,
            finish_by: order.finish_by.rfc3339(),
            deliveries: order.deliveries,
            request: order.request,
        }
    }

    /// Returns the briefing as text for a person or a model.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!("# Turn {} of {}", self.turn, self.agent), String::new()];
        let from = match Party::from(self.from.as_str()) {
            Party::Human => "The user".to_owned(),
            other => other.to_string(),
        };
        lines.push(format!("Request: {}", self.request));
        lines.push(format!("{from} gives you this ({}).", self.reason));
        let said = [&self.detail, &self.summary, &self.instructions];
        lines.extend(said.into_iter().filter(|text| !text.is_empty()).cloned());
        if !self.inputs.is_empty() {
            let inputs = serde_json::to_string_pretty(&self.inputs).unwrap_or_default();
            lines.push(format!("Inputs:\n{inputs}"));
        }
        lines.extend(self.wanted.iter().map(|input| {
            format!("Wanted: {} ({}): {}", input.key, input.expected_type, input.description)
        }));
        lines.extend(self.answers.iter().map(|answer| {
            let outputs = serde_json::to_string(&answer.outputs).unwrap_or_default();
            format!("{} answered ({}): {} {outputs}", answer.by, answer.outcome, answer.summary)
        }));
        lines.extend(self.messages.iter().cloned());
        lines.push(format!("You may hand to: {}.", self.targets.join(", ")));
        lines.push(format!("Round {}; to be done by {}.", self.round, self.finish_by));
        lines.join("\n")
    }
}

/// Returns the serialised name of a value.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

impl super::Tool for Tool {
    const NAME: &'static str = "briefing";
    const TITLE: &'static str = "What is my turn about?";
    const ABOUT: &'static str = "Tells what your current turn is about. Call it first, and again \
        whenever you are unsure what was asked, what you were given, or who you may hand on to. \
        Changes nothing. Returns the user's request, who handed the work to you and why, your \
        inputs, what the giver wants back, answers that came in since your last turn, the allowed \
        targets, and the deadline. If Stafette started you, it needs no arguments; otherwise name \
        the turn that you accepted.\n\
        Example: {}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Briefing;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Briefing, ToolError> {
        let handle = context.handle(&arguments.whose).await?;
        Ok(Briefing::of(context.order(&handle).await?))
    }
}
