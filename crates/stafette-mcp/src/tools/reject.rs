//! `reject`: return the turn undone.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{CallContext, Effect, Right, ToolError, Whose, complete};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Reason why you cannot do it, so that the work can be given to another agent.
    why: String,
    #[serde(flatten)]
    whose: Whose,
}

impl super::Tool for Tool {
    const NAME: &'static str = "reject";
    const TITLE: &'static str = "Give the turn back";
    const ABOUT: &'static str = "Gives your turn back undone. Use it when you are the wrong one for \
        it or cannot even begin: a tool is missing, the task is not yours, it contradicts your \
        instructions. If only an answer is missing, use `escalate`; if another agent should go on, \
        use `handoff`; if you tried and failed, use `complete` with `failed`. The workflow decides \
        what happens then. Returns what to do next.\n\
        Example: {\"why\": \"There is no compiler for this language here\"}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = complete::Output;

    async fn call(
        context: CallContext,
        arguments: Arguments,
    ) -> Result<complete::Output, ToolError> {
        let handle = context.handle(&arguments.whose).await?;
        if arguments.why.trim().is_empty() {
            return Err(ToolError::new("mistaken", "No reason is given")
                .fix("Say in `why` what stands in the way."));
        }
        context.give_back(&handle, arguments.why).await?;
        Ok(complete::Output::new(&handle))
    }
}
