//! `odei.apple.calendar.read.v1`: read the calendar.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Time;
use stafette_stages::WeekView;

use super::{CallContext, Effect, Right, ToolError, Whose};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Start of the period, such as 2026-03-02T00:00:00Z.
    from: String,
    /// End of the period, in the same format.
    to: String,
    #[serde(flatten)]
    whose: Whose,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Entries of the calendar, and blocks proposed for it.
    week: WeekView,
}

impl super::Tool for Tool {
    const NAME: &'static str = "odei.apple.calendar.read.v1";
    const TITLE: &'static str = "Read the calendar";
    const ABOUT: &'static str = "Reads what takes place between two moments, and the blocks that \
        were proposed for tasks. Use it to judge how much work there is already. To propose \
        blocks, hand `tasks` to `human`: free time is found for you. Returns events and proposals \
        by their beginning.\n\
        Example: {\"from\": \"2026-03-02T00:00:00Z\", \"to\": \"2026-03-09T00:00:00Z\"}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (stages, actor, _) = context.knower(&arguments.whose).await?;
        let moment = |text: &str| {
            Time::parse(text).ok_or_else(|| {
                ToolError::new("mistaken", format!("`{text}` is not a moment"))
                    .fix("Write it like 2026-03-02T00:00:00Z.")
            })
        };
        let (from, to) = (moment(&arguments.from)?, moment(&arguments.to)?);
        Ok(Output { week: stages.between(&actor, from, to).await? })
    }
}
