//! `briefing`: what the turn is about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Party, Priority, TurnOrder};

use super::Effect;
use crate::ToolError;
use crate::call_context::CallContext;
use crate::turn_handle::{Whose, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    #[serde(flatten)]
    whose: Whose,
}

/// What a turn is about, and what its agent has to work with.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Briefing {
    /// The run.
    run: String,
    /// The handoff that is worked on, such as `h3`.
    handoff: String,
    /// The turn: give it back with everything that you say in it.
    turn: String,
    /// Who you are in this run.
    agent: String,
    /// What the user asked for in the first place.
    request: String,
    /// Who handed it over.
    from: String,
    /// Why it was handed over, in a word.
    reason: String,
    /// How urgent it is.
    priority: Priority,
    /// What the giver wants you to know first.
    #[serde(skip_serializing_if = "String::is_empty")]
    summary: String,
    /// Why it was handed over, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    /// What you are to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    instructions: String,
    /// What there is to work with.
    inputs: Fields,
    /// What the giver wants back.
    wanted: Vec<Wanted>,
    /// What came back since your last turn.
    answers: Vec<Answered>,
    /// Who you may hand on to.
    targets: Vec<String>,
    /// The round of the loop that you are in, from 1.
    round: u32,
    /// When it must be done.
    finish_by: String,
    /// How often it was delivered: when it is more than 1, look at what is already done.
    deliveries: u32,
}

/// Something that the giver wants back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Wanted {
    /// Its name: the key of `outputs` to put it under.
    key: String,
    /// What it should look like.
    expected_type: String,
    /// What it is.
    description: String,
}

/// An answer to something that you handed on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Answered {
    /// Who answered.
    by: String,
    /// How it came out: resolved, partial, failed or escalated.
    outcome: String,
    /// In a few sentences.
    summary: String,
    /// What was provided.
    outputs: Fields,
    /// Why not, when it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Briefing {
    /// The briefing of a turn.
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
        // A turn that the user gave repeats the request.
        let own = |text: String| if text == order.request { String::new() } else { text };
        Briefing {
            run: order.key.run.to_string(),
            handoff: order.key.handoff.to_string(),
            turn: short(order.key),
            agent: order.agent.to_string(),
            from: offer.from.to_string(),
            reason: offer.reason.as_str().to_owned(),
            priority: offer.priority,
            summary: own(offer.summary),
            detail: own(offer.detail),
            instructions: offer.instructions.unwrap_or_default(),
            inputs: order.inputs,
            wanted: wanted.collect(),
            answers: answers.collect(),
            targets: order.routes,
            round: order.round,
            finish_by: order.finish_by.rfc3339(),
            deliveries: order.deliveries,
            request: order.request,
        }
    }

    /// The same for a person or a model to read.
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
        lines.push(format!("You may hand to: {}.", self.targets.join(", ")));
        lines.push(format!("Round {}; to be done by {}.", self.round, self.finish_by));
        lines.join("\n")
    }
}

/// The word of something that is written as one.
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
    type Arguments = Arguments;
    type Output = Briefing;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Briefing, ToolError> {
        let handle = context.handle(&arguments.whose).await?;
        Ok(Briefing::of(context.order(&handle).await?))
    }
}
