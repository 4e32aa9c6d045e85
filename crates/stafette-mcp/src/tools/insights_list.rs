//! `odei.neo4j.insights.list.v1`: list insights.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_stages::InsightView;

use super::{CallContext, Effect, Right, ToolError, Whose};

/// Maximum number of insights.
const MOST: usize = 50;

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Words that an insight must contain; empty for all insights.
    #[serde(default)]
    topic: String,
    #[serde(flatten)]
    whose: Whose,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Insights, the most certain first.
    insights: Vec<InsightView>,
}

impl super::Tool for Tool {
    const NAME: &'static str = "odei.neo4j.insights.list.v1";
    const TITLE: &'static str = "List what was learned";
    const ABOUT: &'static str = "Lists patterns that were learned from earlier runs. Use it before \
        you estimate or compare: what is in force is reckoned with anyway, the rest is for you to \
        weigh. Returns the surest first, each with its confidence and what it would change.\n\
        Example: {\"topic\": \"estimate code\"}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (stages, actor, _) = context.knower(&arguments.whose).await?;
        Ok(Output { insights: stages.insights(&actor, &arguments.topic, MOST).await? })
    }
}
