//! `answer`: answer a question of an agent for a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, HandoffId, Input, Reply, RunId};

use super::{CallContext, Effect, Right, ToolError};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Id of the question, from `inbox`.
    question: String,
    /// One of the options, or text in the person's words.
    #[serde(default)]
    text: String,
    /// A value for each missing input, by key.
    #[serde(default)]
    values: Fields,
}

/// Confirms that the answer was accepted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the question.
    answered: String,
}

impl super::Tool for Tool {
    const NAME: &'static str = "answer";
    const TITLE: &'static str = "Answer a question";
    const ABOUT: &'static str = "Answers a question from `inbox` with what the person said. Do not \
        invent an answer. Questions that are for a person are refused. Returns the \
        id of the question.\n\
        Example: {\"question\": \"0198…:h4\", \"text\": \"Use JWT\"}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::Answer;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let Arguments { question, text, values } = arguments;
        let named: Option<(RunId, HandoffId)> = question
            .split_once(':')
            .and_then(|(run, id)| Some((run.parse().ok()?, id.parse().ok()?)));
        let Some((run, handoff)) = named else {
            return Err(ToolError::new("mistaken", "There is no such question")
                .fix("Use an id that `inbox` lists."));
        };
        if text.trim().is_empty() && values.is_empty() {
            return Err(ToolError::new("mistaken", "The answer is empty")
                .fix("Give `text`, or `values` for the missing inputs."));
        }
        let state = context.engine.state(run).await?;
        let asked = state.handoff(handoff).and_then(|asked| asked.offer.question.as_ref());
        let right = asked.map_or(Right::Answer, Right::to_answer);
        context.caller.who.may(right).map_err(|_| {
            ToolError::new("denied", "This question is for a person")
                .fix("Tell the person to answer it with `stafette answer`, or on the page.")
        })?;
        let by = context.caller.name.clone();
        match context.engine.send(run, Input::Answer { handoff, values, text, by }).await? {
            Reply::Answered => Ok(Output { answered: question }),
            Reply::Unfit { complaints } => {
                Err(ToolError::new("unfit_answer", complaints.join("; "))
                    .fix("Answer with one of the options, or with the inputs that are asked for."))
            }
            _ => Err(ToolError::new("already_answered", "The question is not open any more")
                .fix("Look at `inbox`.")),
        }
    }
}
