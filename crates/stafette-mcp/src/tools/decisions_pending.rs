//! `odei.neo4j.decisions.pending.v1`: decisions that wait to be carried out.

use schemars::JsonSchema;
use serde::Serialize;
use stafette_knowledge::graph::Node;

use super::{CallContext, Effect, Right, ToolError, Whose};

/// Maximum number of decisions.
const MOST: usize = 50;

pub(super) struct Tool;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Decisions, the oldest first.
    decisions: Vec<Node>,
}

impl super::Tool for Tool {
    const NAME: &'static str = "odei.neo4j.decisions.pending.v1";
    const TITLE: &'static str = "List pending decisions";
    const ABOUT: &'static str = "Lists decisions that were approved and that nobody has split into \
        tasks yet. Use it at the start of the execute stage. Returns the oldest first, each with \
        its return and the reasons for it.\n\
        Example: {}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Whose;
    type Output = Output;

    async fn call(context: CallContext, whose: Whose) -> Result<Output, ToolError> {
        let (stages, actor, _) = context.knower(&whose).await?;
        Ok(Output { decisions: stages.pending_decisions(&actor, MOST).await? })
    }
}
