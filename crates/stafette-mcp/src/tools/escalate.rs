//! `escalate`: ask a person.

use schemars::JsonSchema;
use serde::Deserialize;
use stafette_core::{Kind, Millis, Offer, Party, Priority, Question, Reason};

use super::{CallContext, Effect, Right, ToolError, Whose, handoff};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The question: one sentence that can be answered without reading anything else.
    question: String,
    /// Answers to choose from, the best first; free text is always possible.
    #[serde(default)]
    options: Vec<String>,
    /// Context that a person needs to answer: what you tried, what depends on it.
    #[serde(default)]
    context: String,
    /// True to wait for the answer. With `false` the work continues and the question is a note.
    #[serde(default = "yes")]
    blocking: bool,
    /// Answer to use if nobody answers in time.
    #[serde(default)]
    default: Option<String>,
    /// Number of seconds to wait before `default` is used.
    #[serde(default)]
    within_seconds: Option<u64>,
    /// Urgency of the question.
    #[serde(default)]
    priority: Priority,
    #[serde(flatten)]
    whose: Whose,
}

fn yes() -> bool {
    true
}

impl super::Tool for Tool {
    const NAME: &'static str = "escalate";
    const TITLE: &'static str = "Ask a person";
    const ABOUT: &'static str = "Asks a person. Use it when a decision is not yours to make, when \
        only the user can know something, or when you are stuck after trying: never guess what a \
        person has to decide. Ask one thing, and offer options where you can. The question reaches \
        the person's inbox when your turn ends; you are called again with the answer. Returns what \
        to do next.\n\
        Example: {\"question\": \"Should login use sessions or JWT?\", \"options\": [\"JWT\", \
        \"sessions\"], \"context\": \"The mobile app needs tokens\"}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = handoff::Output;

    async fn call(
        context: CallContext,
        arguments: Arguments,
    ) -> Result<handoff::Output, ToolError> {
        let handle = context.handle(&arguments.whose).await?;
        let kind = if arguments.blocking { Kind::Delegate } else { Kind::Transfer };
        let reason = Reason::RequiresHumanDecision;
        let within = arguments.within_seconds.map(Millis::seconds);
        let question = Question {
            reason: reason.as_str().to_owned(),
            details: arguments.question.clone(),
            options: arguments.options,
            context: arguments.context.clone(),
            blocking: arguments.blocking,
            within,
            default: arguments.default,
            ..Question::default()
        };
        let from = Party::from(&handle.agent);
        let offer = Offer {
            detail: arguments.question,
            summary: arguments.context,
            priority: arguments.priority,
            question: Some(question),
            ..Offer::new(from, Party::Human, kind, reason)
        };
        context.propose(&handle, offer).await?;
        Ok(handoff::Output::new(&handle, Party::Human, kind))
    }
}
