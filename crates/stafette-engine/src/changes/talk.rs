//! What is said about a set reaches the agent that proposed it: in its run, in the generation that
//! goes on from that, or in a run of its own.

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

/// Who gets to hear what was said about a set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Heard {
    /// Nobody: it is kept with the set, which no agent made, or which the project has.
    Nobody,
    /// The agent that proposed it, in a run that goes on.
    Agent {
        /// Which run.
        run: RunId,
    },
    /// The generation that begins next.
    NextGeneration {
        /// The run that it follows.
        after: RunId,
    },
    /// The agent that proposed it, in a run that was begun for that.
    Revision {
        /// Which run.
        run: RunId,
    },
}

impl Engine {
    /// Somebody says something about a set. The agent that proposed it gets to hear it: when its run
    /// is over, in the generation that goes on from it, or in a run that is begun by `workflow`.
    ///
    /// # Errors
    /// When the set does not touch that place, and when nobody is left who could hear it.
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

    /// Has an agent hear what was said about its set.
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
                // It has just ended.
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

    /// Begins a run in which an agent revises its set.
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
        // The agent alone is asked, and its word is the end of it.
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
        // The set is the run's before anybody can propose it again, and has what the run begins with.
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

    /// A crash came before the run began that a set was given to: the set is nobody's then.
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
