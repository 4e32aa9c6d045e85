//! The progress of tasks, from which estimates are learned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Time;
use stafette_knowledge::calendar::proposal::Proposal;
use stafette_knowledge::graph::{Entity, Graph, Node, NodeKey, Task, TaskStatus, Write};
use stafette_knowledge::rights::{Access, Data};

use crate::booking::IN_CALENDAR;
use crate::{Actor, StageError, Stages, clock};

/// A report about a task.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskReport {
    /// The new state; if `None`, it becomes done with `actual_hours` and stays as it is without.
    #[serde(default)]
    pub status: Option<TaskStatus>,
    /// The actual effort, in hours; `None` keeps the recorded value.
    #[serde(default)]
    pub actual_hours: Option<f64>,
    /// The time at which it was done, as RFC 3339; now if `None`.
    #[serde(default)]
    pub done_at: Option<String>,
}

impl Stages {
    /// Records the progress of a task.
    ///
    /// # Errors
    /// If the actor lacks the right, the task does not exist, or the graph is unreachable.
    pub async fn report_task(
        &self,
        actor: &Actor,
        id: &str,
        report: TaskReport,
    ) -> Result<Node, StageError> {
        actor.may(Access::Write, Data::Tasks)?;
        let done_at = match &report.done_at {
            None => clock::now(),
            Some(text) => Time::parse(text)
                .ok_or_else(|| StageError::mistaken(format!("`{text}` is not a moment")))?,
        };
        let key = NodeKey::task(id);
        let found = self.0.graph.node(&key).await?;
        let Some(Node { entity: Entity::Task(task), .. }) = found else {
            return Err(StageError::NoNode { node: key });
        };
        let status = report.status.unwrap_or(match report.actual_hours {
            Some(_) => TaskStatus::Done,
            None => task.status,
        });
        let actual_hours = report.actual_hours.or(task.actual_hours);
        let changed = Task { status, actual_hours, ..task };
        let at = clock::now();
        let writes = vec![Write::Put(Entity::Task(changed.clone()))];
        self.write(actor, at, format!("task:{id}:{}", uuid::Uuid::now_v7()), writes).await?;
        if status == TaskStatus::Done {
            self.ended(&key, done_at).await?;
        }
        let provenance = actor.provenance(at);
        let entity = Entity::Task(changed);
        Ok(Node { entity, made: provenance.clone(), changed: provenance })
    }

    /// Records at the last block of a task when it was really done.
    async fn ended(&self, task: &NodeKey, done_at: Time) -> Result<(), StageError> {
        let own = self.in_calendar().await?.into_iter().filter(|one| one.task == *task);
        if let Some(last) = own.max_by_key(|one| one.end) {
            let note = move |one: &mut Proposal| one.done_at = Some(done_at);
            self.0.proposals.change(&last.id, IN_CALENDAR, note).await?;
        }
        Ok(())
    }
}
