//! Comments on a set reach the agent that proposed it: in its run, in the generation that continues
//! from that, or in a new run.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use stafette_core::change::{Change, ChangeId, Comment};
use stafette_core::run::create::RunCreated;
use stafette_core::{
    AgentName, Fields, HandoffId, Ignored, Input, Reply, RunId, TeamInput, Workflow,
};
use stafette_workspace::{ChangeError, Changes};

use super::ChangeSets;
use crate::orders::begins_next;
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

impl ChangeSets<'_> {
    /// Adds a comment to a set. The agent that proposed the set receives it: when its run has
    /// ended, in the generation that continues from it, or in a run that is started with
    /// `workflow`.
    ///
    /// # Errors
    /// When the set does not touch that place, and when no agent is left that could receive the
    /// comment.
    pub async fn comment(
        self,
        id: ChangeId,
        by: String,
        place: Option<(String, Option<u32>)>,
        text: String,
        workflow: Option<Workflow>,
    ) -> Result<(Change, Heard), EngineError> {
        let (by, text) = (self.engine.redacted(by), self.engine.redacted(text));
        let name = by.clone();
        let look = async move |changes: Changes| {
            Ok((changes.get(id)?, changes.remark(id, &name, place, &text)?))
        };
        let (change, comment) = self.with(look).await?;
        let Some(run) = self.run_of_set(&change).await? else {
            // It belongs to no run, so it is kept in its record alone.
            let write = async move |changes: Changes| changes.comment(id, comment).await;
            return Ok((self.with(write).await?, Heard::Nobody));
        };
        let heard = match &change.author.agent {
            Some(agent) if !change.status.is_in() => {
                self.hear(run, agent, change.clone(), &comment, workflow, by).await?
            }
            _ => {
                self.engine.record(run, spoken(id, &comment)).await?;
                Heard::Nobody
            }
        };
        let owner = match heard {
            Heard::Agent { run } => run,
            _ => run,
        };
        self.written(owner, id).await;
        Ok((self.get(id).await?, heard))
    }

    /// Sends a comment on a set to its agent.
    async fn hear(
        self,
        run: RunId,
        agent: &AgentName,
        mut change: Change,
        comment: &Comment,
        workflow: Option<Workflow>,
        by: String,
    ) -> Result<Heard, EngineError> {
        let (engine, id) = (self.engine, change.id);
        let mut last = run;
        let state = loop {
            let state = engine.state(last).await?;
            // Looked for after the state: if that says that another one has begun, it is found.
            let newest = engine.generations().last(last).await?;
            if newest != last {
                last = newest;
                continue;
            }
            let can_hear = last == run || state.workflow.agents.contains_key(agent);
            if state.status().is_final() || !can_hear {
                break state;
            }
            if change.author.run != Some(last) {
                let give = async move |changes: Changes| changes.give_to(id, last, None).await;
                change = self.with(give).await?;
            }
            if self.run_of_set(&change).await?.is_none() {
                // The run has no room for the set, so the comment is kept in its record alone.
                let comment = comment.clone();
                self.with(async move |changes| changes.comment(id, comment).await).await?;
                return Ok(Heard::Nobody);
            }
            let sent = engine.send(last, spoken(id, comment)).await;
            match sent {
                Ok(Reply::Recorded) => return Ok(Heard::Agent { run: last }),
                Ok(Reply::Ignored(Ignored::NoListener)) | Err(EngineError::Over { .. }) => {}
                Ok(_) => return Err(ChangeError::Busy.into()),
                Err(error) => return Err(error),
            }
            // Unless the run has ended in the meantime, nobody in it listens.
            if !engine.state(last).await?.status().is_final() {
                return sent.map(|_| Heard::Nobody);
            }
        };
        // It may have been cancelled, or was not allowed to begin.
        if begins_next(&state) {
            engine.record(run, spoken(id, comment)).await?;
            let after = engine
                .generations()
                .note(last, format!("About {id}: {}", comment.told()), by)
                .await?;
            return Ok(Heard::NextGeneration { after });
        }
        self.revise(run, agent, &change, comment, workflow, by).await
    }

    /// Starts a run in which an agent revises its set.
    async fn revise(
        self,
        of: RunId,
        agent: &AgentName,
        change: &Change,
        comment: &Comment,
        workflow: Option<Workflow>,
        by: String,
    ) -> Result<Heard, EngineError> {
        let id = change.id;
        let nobody = |why: String| EngineError::NobodyHears { change: id, why };
        let workflow = workflow
            .ok_or_else(|| nobody("its run is over, and the workflow is not trusted".to_owned()))?;
        if !workflow.agents.contains_key(agent) {
            return Err(nobody(format!("its run is over, and there is no agent {agent} any more")));
        }
        let request = format!(
            "Revise {id} as is said about it and propose it again: the new set replaces it as a \
             whole. If it is right as it is, say so in your result.\n{}",
            comment.told()
        );
        let inputs = Fields::from_iter([
            ("change".to_owned(), json!(id)),
            ("comments".to_owned(), json!([comment])),
        ]);
        let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), request, by);
        let created = RunCreated { inputs, entry: Some(agent.clone()), ..created };
        self.engine.record(of, spoken(id, comment)).await?;
        let run = self.engine.start(created).await?;
        // What is said from now on goes to that run, too.
        let entry = Some(HandoffId(1));
        let give = async move |changes: Changes| changes.give_to(id, run, entry).await;
        self.with(give).await?;
        Ok(Heard::Revision { run })
    }
}

fn spoken(change: ChangeId, comment: &Comment) -> Input {
    Input::Team(TeamInput::CommentChange { change, comment: comment.clone() })
}
