//! `propose_change`: propose edits of the user's own files, for a person to apply.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::change::{ChangeId, FileEdit, Proposal};
use stafette_core::team::change::told;

use super::{CallContext, Effect, Right, ToolError, Whose};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Edits, each of one file with its whole content afterwards.
    changes: Vec<FileEdit>,
    /// Purpose of the edits, as a sentence; it becomes the commit message.
    reason: String,
    /// Id of the change that this one replaces, such as `c3`. Leave it out in a turn that sent one
    /// back to you: then it is known.
    #[serde(default)]
    revises: Option<String>,
    #[serde(flatten)]
    whose: Whose,
}

/// Confirms that the change was stored.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the change, such as `c3`.
    change: String,
    /// Number of proposals so far, including this one.
    revision: u32,
    /// Aspect that a person must approve before the change can be applied; empty if none.
    needs_yes: String,
}

impl super::Tool for Tool {
    const NAME: &'static str = "propose_change";
    const TITLE: &'static str = "Propose a change";
    const ABOUT: &'static str = "Proposes edits of the user's own files as one set, which a person \
        looks at and applies or sends back; nothing is written before that. Use it when you were \
        asked for a change and do not write the files yourself, and to revise a set that came back \
        with comments. Give every file's whole content: `create`, `modify`, `delete`, or `rename` \
        with `from`. The turn goes on. Returns the set's name and what a person has to allow.\n\
        Example: {\"reason\": \"Output in plain text\", \"changes\": [{\"file\": \"src/greet.py\", \
        \"action\": \"modify\", \"content\": \"print('hello')\\n\"}]}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let handle = context.handle(&arguments.whose).await?;
        let revises = arguments.revises.map(|text| text.parse::<ChangeId>()).transpose();
        let revises = revises.map_err(|error| {
            ToolError::new("not_a_change", error.to_string()).fix("Give it as you were told it.")
        })?;
        let Arguments { changes, reason, .. } = arguments;
        let proposal = Proposal { changes, reason, revises, ..Proposal::default() };
        let change = context.engine.changes().propose(handle.turn, proposal).await?;
        Ok(Output {
            change: change.id.to_string(),
            revision: change.revision,
            needs_yes: told(&change.gates),
        })
    }
}
