//! `history_read`: the messages of a thread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::history::{Message, Thread};

use super::{CallContext, Effect, Right, ToolError, Whose};

/// Maximum number of messages per call.
const PAGE: usize = 100;

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Id of the thread, from a handoff or a search.
    thread_id: String,
    /// Number of the last message that you have read.
    #[serde(default)]
    after: u64,
    #[serde(flatten)]
    whose: Whose,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The thread itself.
    thread: Thread,
    /// Messages in order, at most 100.
    messages: Vec<Message>,
}

impl super::Tool for Tool {
    const NAME: &'static str = "history_read";
    const TITLE: &'static str = "Read a thread";
    const ABOUT: &'static str = "Reads a thread of the project's history. Use it when a handoff \
        names a `thread_id`, or a search found something. Returns the thread and its messages in \
        order; call it again with the last `seq` as `after` to read on.\n\
        Example: {\"thread_id\": \"0198f2c4-7a1b-7c3d-8e5f-0123456789ab.discuss\", \"after\": 0}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (stages, actor, _) = context.knower(&arguments.whose).await?;
        let (id, after) = (&arguments.thread_id, arguments.after);
        let (thread, messages) = stages.thread(&actor, id, after, PAGE).await?;
        Ok(Output { thread, messages })
    }
}
