//! `inbox`: list the open questions to people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Handoff;

use super::{CallContext, Effect, Right, ToolError};

/// Maximum number of questions in the list.
const QUESTIONS: usize = 50;

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {}

/// The open questions, the oldest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Questions that wait for an answer.
    questions: Vec<QuestionBrief>,
}

/// A question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct QuestionBrief {
    /// Id for `answer`.
    question: String,
    /// Party that asks.
    from: String,
    /// Text of the question.
    text: String,
    /// Answers to choose from; any text if empty.
    options: Vec<String>,
    /// True if only a person may answer: the question decides about money, agents or changes.
    for_a_person: bool,
}

impl super::Tool for Tool {
    const NAME: &'static str = "inbox";
    const TITLE: &'static str = "List the open questions";
    const ABOUT: &'static str = "Lists the questions that agents and the system ask people. Use it \
        when you speak for a person who wants to know what waits for them. Answer with `answer`; \
        tell the person about those that are for a person. Returns the open questions, the \
        oldest first.\n\
        Example: {}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::Read;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, Arguments {}: Arguments) -> Result<Output, ToolError> {
        let rows = context.engine.log().questions().await?;
        let brief = |row: &stafette_engine::HandoffRow| {
            let handoff = Handoff::from_json(&row.body).ok()?;
            let question = handoff.offer.question?;
            Some(QuestionBrief {
                question: format!("{}:{}", row.run, row.id),
                from: handoff.offer.from.to_string(),
                for_a_person: Right::to_answer(&question) == Right::Decide,
                text: question.details,
                options: question.options,
            })
        };
        Ok(Output { questions: rows.iter().take(QUESTIONS).filter_map(brief).collect() })
    }
}
