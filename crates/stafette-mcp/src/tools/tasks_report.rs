//! `odei.neo4j.tasks.report.v1`: report a finished task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::graph::Node;
use stafette_stages::TaskReport;

use super::{CallContext, Effect, Right, ToolError, Whose};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Id of the task, one of the `task_ids` of the plan.
    task: String,
    /// Actual duration in hours, once it is done.
    #[serde(default)]
    actual_hours: Option<f64>,
    /// Time of completion, such as 2026-03-02T16:30:00Z; now if left out.
    #[serde(default)]
    done_at: Option<String>,
    #[serde(flatten)]
    whose: Whose,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The task after the report.
    task: Node,
}

impl super::Tool for Tool {
    const NAME: &'static str = "odei.neo4j.tasks.report.v1";
    const TITLE: &'static str = "Report a task";
    const ABOUT: &'static str = "Notes that a task is done and how many hours it really took. Use \
        it for every task that ends: later estimates are learned from it. Returns the task as it \
        is now.\n\
        Example: {\"task\": \"0198f2c4-7a1b-7c3d-8e5f-0123456789ab.h7.t1\", \"actual_hours\": 3.5}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (stages, actor, _) = context.knower(&arguments.whose).await?;
        let Arguments { task, actual_hours, done_at, .. } = arguments;
        let report = TaskReport { status: None, actual_hours, done_at };
        Ok(Output { task: stages.report_task(&actor, &task, report).await? })
    }
}
