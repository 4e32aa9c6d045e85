//! `unlock`: release a lock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::lock::{LockId, NotALock};

use super::{CallContext, Effect, Right, ToolError, Whose};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Id of the lock, as `lock` returned it, such as `l3`.
    lock: String,
    #[serde(flatten)]
    whose: Whose,
}

/// Confirms that the lock was released.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the released lock.
    unlocked: String,
}

impl super::Tool for Tool {
    const NAME: &'static str = "unlock";
    const TITLE: &'static str = "Unlock files";
    const ABOUT: &'static str = "Gives back a lock that you took with `lock`, so that whoever is \
        next in line gets it. Call it as soon as your changes are written: others may be waiting. \
        Returns the name of the lock; an error says when it was no longer yours, and then what you \
        wrote since may not count.\n\
        Example: {\"lock\": \"l3\"}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (holder, _) = context.holder(&arguments.whose).await?;
        let id: LockId = arguments.lock.parse().map_err(|error: NotALock| {
            ToolError::new("not_a_lock", error.to_string()).fix("Give it as `lock` named it.")
        })?;
        context.engine.locks().release(id, holder).await?;
        Ok(Output { unlocked: id.to_string() })
    }
}
