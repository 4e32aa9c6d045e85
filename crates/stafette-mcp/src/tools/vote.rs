//! `vote`: cast the vote of a council member.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::team::council::vote::{Stance, Vote};

use super::{CallContext, Effect, Right, ToolError, Whose, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Your position: `building` while you still work on it, `agree`, `disagree` or `abstain`.
    signal: Stance,
    /// Reason, in a sentence or two; if you disagree, say what would change your mind.
    #[serde(default)]
    reason: String,
    /// Decisions that you consider settled, one line each.
    #[serde(default)]
    key_decisions: Vec<String>,
    /// Topic that the team should take up next, once this is settled.
    #[serde(default)]
    next_topic: Option<String>,
    #[serde(flatten)]
    whose: Whose,
}

/// Confirms that the vote was accepted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the turn in which it was cast.
    turn: String,
    /// Position that was recorded.
    signal: Stance,
    /// Recommended next step.
    next: String,
}

impl super::Tool for Tool {
    const NAME: &'static str = "vote";
    const TITLE: &'static str = "Say where you stand";
    const ABOUT: &'static str = "Says where you stand when a council hears you: `agree`, \
        `disagree`, `building` (you are still working on it) or `abstain`, with your reason and \
        what you hold to be settled. Call it once in your turn, before `complete`; your last word \
        counts. It is refused when your turn is not one of a council. Returns what to do next.\n\
        Example: {\"signal\": \"agree\", \"reason\": \"The limit keeps it bounded\", \
        \"key_decisions\": [\"Cache at most 50,000 tokens\"]}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let Arguments { signal, reason, key_decisions, next_topic, whose } = arguments;
        let handle = context.handle(&whose).await?;
        context.vote(&handle, Vote { signal, reason, key_decisions, next_topic }).await?;
        let next = "Call `complete` with what you say to the others, in a few sentences.";
        Ok(Output { turn: short(handle.turn), signal, next: next.to_owned() })
    }
}
