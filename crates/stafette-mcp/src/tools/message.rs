//! `message`: send a message to another agent of the run.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Party;

use super::{CallContext, Effect, LONGEST_WAIT, Right, ToolError, Whose};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The agent that the message is for: one that you hand work to, or that hands work to you.
    to: String,
    /// The message, at most 8 KiB; name a file for more.
    text: String,
    /// Maximum number of seconds to wait until the agent was given it, up to 600; 0 if left out.
    #[serde(default)]
    within_seconds: u64,
    #[serde(flatten)]
    whose: Whose,
}

/// Confirms that the message was stored.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the message, such as `m3`.
    message: String,
    /// `queued`, `delivered`, or `unread` if the run has ended before.
    status: &'static str,
    /// When the agent gets it, or was given it.
    receipt: String,
}

impl super::Tool for Tool {
    const NAME: &'static str = "message";
    const TITLE: &'static str = "Send a message to another agent";
    const ABOUT: &'static str = "Sends a message to another agent of this run while both of you go \
        on working. It gets the message at its next step, or with its next turn, and reads that it \
        comes from you. Use it for what the other one should know now; work is passed on with \
        `handoff`, and people are asked with `escalate`. Returns when the agent gets it; with \
        `within_seconds` it waits until the agent was given it.\n\
        Example: {\"to\": \"reviewer\", \"text\": \"login.rs is final, the tests still change\"}";
    const EFFECT: Effect = Effect::Adds;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let handle = context.handle(&arguments.whose).await?;
        // Only an agent at work speaks.
        context.order(&handle).await?;
        let (run, from) = (handle.turn.run, Party::from(&handle.agent));
        let messages = context.engine.messages();
        let sent = messages.send(run, &arguments.to, from, String::new(), arguments.text).await?;
        let within = Duration::from_secs(arguments.within_seconds.min(LONGEST_WAIT));
        let sent = match within.is_zero() {
            true => sent,
            false => {
                let what = format!("{} to get {}", sent.to, sent.id);
                let settled = messages.settled(run, sent.id, within);
                context.reporting(&what, within, settled).await?
            }
        };
        Ok(Output { message: sent.id.to_string(), status: sent.status, receipt: sent.receipt })
    }
}
