//! `history_append`: add a message to a thread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_stages::Saying;

use super::{CallContext, Effect, Right, ToolError, Whose};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The thread to add to. Leave it out to open a new one.
    #[serde(default)]
    thread_id: Option<String>,
    /// Title of a new thread.
    #[serde(default)]
    title: Option<String>,
    /// Text of the message.
    body: String,
    #[serde(flatten)]
    whose: Whose,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the thread: the value for `thread_id` of a handoff.
    thread_id: String,
    /// Number of the message in the thread.
    seq: u64,
}

impl super::Tool for Tool {
    const NAME: &'static str = "history_append";
    const TITLE: &'static str = "Say something in a thread";
    const ABOUT: &'static str = "Adds a message to a thread of the project's history, or opens a \
        new thread with it. Use it to keep a discussion that later stages should be able to read. \
        Returns the thread's id, which a recommendation names as `thread_id`.\n\
        Example: {\"title\": \"Move to a four-day week?\", \"body\": \"The proposal saves money \
        only if support stays reachable.\"}";
    const EFFECT: Effect = Effect::Adds;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (stages, actor, _) = context.knower(&arguments.whose).await?;
        let Arguments { thread_id, title, body, .. } = arguments;
        let saying = Saying { thread_id, title, body, id: None };
        let message = stages.say(&actor, saying).await?;
        Ok(Output { thread_id: message.thread_id, seq: message.seq })
    }
}
