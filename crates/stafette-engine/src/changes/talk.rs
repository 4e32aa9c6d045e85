//! Comments on a set reach the agent that proposed it: in its run, in the generation that continues
//! from that, or in a new run.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use stafette_core::change::{Author, Change, ChangeId, Comment};
use stafette_core::run::create::RunCreated;
use stafette_core::{
    AgentName, Fields, HandoffId, Ignored, Input, Party, Reply, RunId, TeamInput, Workflow,
};
use stafette_workspace::Changes;
use uuid::Uuid;

use crate::{Engine, EngineError};

/// The receiver of a comment on a set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Heard {
    /// No agent: the comment stays with the set, which no agent made, or which is applied already.
    Nobody,
    /// The agent that proposed it, in a run that continues.
    Agent {
        /// The run in which the agent receives it.
        run: RunId,
    },
    /// The generation that begins next.
    NextGeneration {
        /// The run that this generation follows.
        after: RunId,
    },
    /// The agent that proposed it, in a run that was started for this purpose.
    Revision {
        /// The run that was started.
        run: RunId,
    },
}

impl Engine {
    /// Adds a comment to a set. The agent that proposed the set receives it: when its run has
    /// ended, in the generation that continues from it, or in a run that is started with
    /// `workflow`.
    ///
    /// # Errors
    /// When the set does not touch that place, and when no agent is left that could receive the
    /// comment.
    pub async fn comment_change(
        &self,
        id: ChangeId,
        by: String,
        place: Option<(String, Option<u32>)>,
        text: String,
        workflow: Option<Workflow>,
    ) -> Result<(Change, Heard), EngineError> {
        let (by, text) = (self.redacted(by), self.redacted(text));
        let name = by.clone();
        let look = async move |changes: Changes| {
            Ok((changes.get(id)?, changes.remark(id, &name, place, &text)?))
        };
        let (change, comment) = self.changes(look).await?;
        let heard = match (change.author.run, &change.author.agent) {
            (None, _) => Heard::Nobody,
            (Some(run), Some(agent)) if !change.status.is_in() => {
                self.hear(run, agent, change.clone(), &comment, workflow, by).await?
            }
            (Some(_), _) => {
                self.record_of(&change, spoken(id, &comment)).await?;
                Heard::Nobody
            }
        };
        let change = self.changes(async move |changes| changes.comment(id, comment).await).await?;
        Ok((change, heard))
    }

    /// Sends a comment on a set to its agent.
    async fn hear(
        &self,
        run: RunId,
        agent: &AgentName,
        mut change: Change,
        comment: &Comment,
        workflow: Option<Workflow>,
        by: String,
    ) -> Result<Heard, EngineError> {
        let id = change.id;
        let mut last = self.last_of(run).await?;
        let state = loop {
            let state = self.state(last).await?;
            let can_hear = last == run || state.workflow.agents.contains_key(agent);
            if state.status().is_final() || !can_hear {
                break state;
            }
            if change.author.run != Some(last) {
                let give = async move |changes: Changes| changes.give_to(id, last, None).await;
                change = self.changes(give).await?;
            }
            self.introduce(&change).await?;
            match self.send(last, spoken(id, comment)).await {
                Ok(Reply::Ignored(Ignored::NoListener)) => return Ok(Heard::Nobody),
                Ok(_) => return Ok(Heard::Agent { run: last }),
                // The run has ended in the meantime.
                Err(EngineError::Over { .. }) if self.state(last).await?.status().is_final() => {
                    last = self.last_of(last).await?;
                }
                Err(error) => return Err(error),
            }
        };
        let over = state.team.lineage.as_ref().and_then(|lineage| lineage.handed_over.as_ref());
        if over.is_some_and(|over| over.next.is_some()) {
            self.record_of(&change, spoken(id, comment)).await?;
            let after = self.note(last, format!("About {id}: {}", comment.told()), by).await?;
            return Ok(Heard::NextGeneration { after });
        }
        self.revise(agent, &change, comment, workflow, by).await
    }

    /// Starts a run in which an agent revises its set.
    async fn revise(
        &self,
        agent: &AgentName,
        change: &Change,
        comment: &Comment,
        workflow: Option<Workflow>,
        by: String,
    ) -> Result<Heard, EngineError> {
        let id = change.id;
        let nobody = |why: String| EngineError::NobodyHears { change: id, why };
        let mut workflow = workflow
            .ok_or_else(|| nobody("its run is over, and the workflow is not trusted".to_owned()))?;
        if !workflow.agents.contains_key(agent) {
            return Err(nobody(format!("its run is over, and there is no agent {agent} any more")));
        }
        // Only this agent is asked, and its result ends the run.
        workflow.workflow.entry = Party::from(agent);
        (workflow.phases, workflow.council, workflow.generations) = (Vec::new(), None, None);
        let request = format!(
            "Revise {id} as is said about it and propose it again: the new set replaces it as a \
             whole. If it is right as it is, say so in your result.\n{}",
            comment.told()
        );
        let inputs = Fields::from_iter([
            ("change".to_owned(), json!(id)),
            ("comments".to_owned(), json!([comment])),
        ]);
        let run = RunId(Uuid::now_v7());
        let created = RunCreated::new(run, Arc::new(workflow), request, by);
        let created = RunCreated { inputs, ..created };
        // The set belongs to the run before anyone can propose it again, and has what the run
        // starts with.
        let (entry, word) = (Some(HandoffId(1)), comment.clone());
        let give = async move |changes: Changes| {
            changes.give_to(id, run, entry).await?;
            changes.comment(id, word).await
        };
        self.changes(give).await?;
        if let Err(error) = self.begin(created).await {
            if let Author { run: Some(before), handoff, .. } = change.author {
                let give = async move |changes: Changes| changes.give_to(id, before, handoff).await;
                self.changes(give).await?;
            }
            return Err(error);
        }
        Ok(Heard::Revision { run })
    }

    /// A crash came before the start of the run that a set was assigned to: the set then belongs to
    /// no run.
    pub(super) async fn disown(&self, change: &Change) {
        let (id, Some(run)) = (change.id, change.author.run) else { return };
        if !matches!(self.store().run(run).await, Ok(None)) {
            return;
        }
        let given = self.changes(async move |changes| changes.disown(id).await).await;
        match given {
            Ok(_) => tracing::warn!(%id, %run, "its run never began"),
            Err(error) => tracing::warn!(%id, %run, %error, "its run never began"),
        }
    }
}

fn spoken(change: ChangeId, comment: &Comment) -> Input {
    Input::Team(TeamInput::CommentChange { change, comment: comment.clone() })
}
