//! `vote`: where a member of a council stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::team::council::vote::{Stance, Vote};

use super::Effect;
use crate::ToolError;
use crate::call_context::CallContext;
use crate::turn_handle::{Whose, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Where you stand.
    signal: Stance,
    /// Why, in a sentence or two; who disagrees should say what would change their mind.
    #[serde(default)]
    reason: String,
    /// What you hold to be settled, a line each.
    #[serde(default)]
    key_decisions: Vec<String>,
    /// What the team should take up next, once this is settled.
    #[serde(default)]
    next_topic: Option<String>,
    #[serde(flatten)]
    whose: Whose,
}

/// The vote was taken.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The turn that it was given in.
    turn: String,
    /// What it says.
    signal: Stance,
    /// What to do now.
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
