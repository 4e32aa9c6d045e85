//! `odei.neo4j.goals.list.v1`: list the user's goals.

use schemars::JsonSchema;
use serde::Serialize;
use stafette_knowledge::graph::GoalView;

use super::{CallContext, Effect, Right, ToolError, Whose};

/// Maximum number of goals.
const MOST: usize = 100;

pub(super) struct Tool;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Goals, each with the newest decisions that serve it, as far as you may see them.
    goals: Vec<GoalView>,
}

impl super::Tool for Tool {
    const NAME: &'static str = "odei.neo4j.goals.list.v1";
    const TITLE: &'static str = "List the goals";
    const ABOUT: &'static str = "Lists what the user wants to reach. Use it before you score how \
        well a proposal serves the goals, and before you name goals of an option: only these ids \
        are goals. Returns each goal with its horizon and target.\n\
        Example: {}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Whose;
    type Output = Output;

    async fn call(context: CallContext, whose: Whose) -> Result<Output, ToolError> {
        let (stages, actor, _) = context.knower(&whose).await?;
        Ok(Output { goals: stages.goals(&actor, MOST).await? })
    }
}
