//! Comments on a set reach the agent that proposed it: in its run, in the generation that continues
//! from that, or in a new run. A run that has ended records the comment and forwards it, which is an
//! order of that run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stafette_core::change::{Change, ChangeId, Comment};
use stafette_core::run::create::RunCreated;
use stafette_core::team::change::{Forward, Heard, revision_request};
use stafette_core::team::generation::{NOTE, Note};
use stafette_core::team::order::{OrderKey, begun_id};
use stafette_core::{
    AgentName, Fields, HandoffId, Ignored, Input, Reply, Run, RunId, TeamInput, Workflow,
};
use stafette_workspace::{ChangeError, Changes};

use super::ChangeSets;
use crate::orders::begins_next;
use crate::{EngineError, crash};

/// The time that a caller waits for its comment to be forwarded: hooks are asked before a run begins.
const FORWARDED: Duration = Duration::from_secs(60);

/// Where a comment goes when its run has ended.
enum Receiver {
    /// The run that has the set by now, or that continues the work.
    Run(RunId),
    /// The notes for the generation after a run.
    NextGeneration(RunId),
    /// A run that begins with it, of this workflow.
    Revision(Box<Workflow>),
}

impl ChangeSets<'_> {
    /// Adds a comment to a set. The agent that proposed the set receives it: when its run has
    /// ended, in the generation that continues from it, or in a run of the project's workflow that
    /// is started for this purpose.
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
    ) -> Result<(Change, Heard), EngineError> {
        let (by, text) = (self.engine.redacted(by), self.engine.redacted(text));
        let look = async move |changes: Changes| {
            Ok((changes.get(id)?, changes.remark(id, &by, place, &text)?))
        };
        let (change, comment) = self.with(look).await?;
        let Some(run) = self.run_of_set(&change).await? else {
            // It belongs to no run, so it is kept in its record alone.
            let write = async move |changes: Changes| changes.comment(id, comment).await;
            return Ok((self.with(write).await?, Heard::default()));
        };
        let is_over = self.engine.state(run).await?.status().is_final();
        if let Some(agent) = change.author.agent.as_ref().filter(|_| !change.status.is_in())
            && is_over
        {
            // What nobody would hear is not recorded.
            self.receiver(run, &change, agent).await.map_err(|error| match error {
                EngineError::Objected { why } => EngineError::NobodyHears { change: id, why },
                error => error,
            })?;
        }
        crash::point();
        let heard = match self.engine.record(run, spoken(id, &comment)).await? {
            Reply::Recorded => Heard::Agent { run },
            Reply::Ordered { seq } => self.forwarded(run, id, seq).await?,
            Reply::Ignored(Ignored::NoListener) => Heard::default(),
            _ => return Err(ChangeError::Busy.into()),
        };
        self.written(run, id).await;
        Ok((self.get(id).await?, heard))
    }

    /// Waits until a run has forwarded a comment, and returns who has received it.
    async fn forwarded(self, run: RunId, id: ChangeId, seq: u64) -> Result<Heard, EngineError> {
        let heard = |run: &Run| run.team.changes.get(&id)?.forwarded_to(seq).cloned();
        self.engine.shows(run, |run| heard(run).is_some(), FORWARDED).await;
        match heard(&*self.engine.state(run).await?) {
            Some(Heard::Nobody { why }) => Err(EngineError::NobodyHears { change: id, why }),
            Some(heard) => Ok(heard),
            None => Ok(Heard::Later { run }),
        }
    }

    /// Forwards a comment that was made after the end of a run, and has the run record to whom.
    pub(crate) async fn forward(
        self,
        run: RunId,
        id: ChangeId,
        forward: &Forward,
    ) -> Result<(), EngineError> {
        let heard = match self.deliver(run, id, forward).await {
            Ok(heard) => heard,
            Err(EngineError::NobodyHears { why, .. }) => Heard::Nobody { why },
            Err(
                error @ (EngineError::Blocked { .. }
                | EngineError::Refused { .. }
                | EngineError::Change { source: ChangeError::NoChange { .. } }),
            ) => Heard::Nobody { why: error.to_string() },
            Err(error) => return Err(error),
        };
        let order = OrderKey::Forward { change: id, comment: forward.seq };
        self.engine.order_ended(run, order, Some(heard), None).await
    }

    /// Has the comment reach its agent. Repeated after a crash, it finds what was begun.
    async fn deliver(
        self,
        run: RunId,
        id: ChangeId,
        forward: &Forward,
    ) -> Result<Heard, EngineError> {
        let (engine, Forward { seq, at, comment }) = (self.engine, forward);
        let nobody = |why: &str| EngineError::NobodyHears { change: id, why: why.to_owned() };
        let change = self.get(id).await?;
        let revision = begun_id(run, &format!("stafette:revision:{id}:{seq}"), *at);
        if engine.store().run(revision).await?.is_some() {
            return self.revised_in(run, &change, revision).await;
        }
        if change.status.is_in() {
            return Err(nobody("it is applied already"));
        }
        let agent = change.author.agent.as_ref();
        let agent = agent.ok_or_else(|| nobody("no agent has proposed it"))?;
        // No generation begins between finding the last one and leaving it the note.
        let turn = engine.once.generation().await;
        let text: String = format!("About {id}: {}", comment.told()).chars().take(NOTE).collect();
        let last = engine.generations().last(run).await?;
        let lineage = engine.state(last).await?.team.lineage.clone();
        let is_it =
            |note: &Note| note.at >= *at && note.by == comment.by && note.text == text.trim();
        if lineage.is_some_and(|lineage| lineage.notes.iter().any(is_it)) {
            return Ok(Heard::NextGeneration { after: last });
        }
        match self.receiver(run, &change, agent).await? {
            Receiver::NextGeneration(after) => {
                let by = comment.by.clone();
                engine.record(after, Input::Team(TeamInput::Note { text, by })).await?;
                Ok(Heard::NextGeneration { after })
            }
            Receiver::Run(heir) => {
                drop(turn);
                self.pass_on(change, heir, comment).await
            }
            Receiver::Revision(workflow) => {
                drop(turn);
                let begins = revises(revision, id, agent, comment, *workflow);
                crash::point();
                engine.start(begins).await?;
                crash::point();
                self.revised_in(run, &change, revision).await
            }
        }
    }

    /// Gives a set to the run that continues the work, with a comment on it.
    async fn pass_on(
        self,
        mut change: Change,
        heir: RunId,
        comment: &Comment,
    ) -> Result<Heard, EngineError> {
        let id = change.id;
        let nobody = |why: String| EngineError::NobodyHears { change: id, why };
        if change.run() != Some(heir) {
            let give = async move |changes: Changes| changes.give_to(id, heir, None).await;
            change = self.with(give).await?;
        }
        if self.run_of_set(&change).await?.is_none() {
            return Err(nobody(format!("run {heir} has too many open sets")));
        }
        crash::point();
        match self.engine.record(heir, spoken(id, comment)).await? {
            Reply::Recorded | Reply::Ordered { .. } => Ok(Heard::Agent { run: heir }),
            Reply::Ignored(Ignored::NoListener) => {
                Err(nobody(format!("nobody in run {heir} revises it")))
            }
            _ => Err(ChangeError::Busy.into()),
        }
    }

    /// Gives a set to the run that revises it: what is said from now on goes there, too.
    async fn revised_in(
        self,
        of: RunId,
        change: &Change,
        run: RunId,
    ) -> Result<Heard, EngineError> {
        let (id, entry) = (change.id, Some(HandoffId(1)));
        if change.run() == Some(of) {
            self.with(async move |changes: Changes| changes.give_to(id, run, entry).await).await?;
        }
        Ok(Heard::Revision { run })
    }

    /// Finds out where a comment on a set goes whose run has ended.
    async fn receiver(
        self,
        run: RunId,
        change: &Change,
        agent: &AgentName,
    ) -> Result<Receiver, EngineError> {
        let engine = self.engine;
        if let Some(owner) = change.run().filter(|owner| *owner != run) {
            return Ok(Receiver::Run(owner));
        }
        let last = engine.generations().last(run).await?;
        let state = engine.state(last).await?;
        if begins_next(&state) {
            return Ok(Receiver::NextGeneration(last));
        }
        if !state.status().is_final() && state.workflow.agents.contains_key(agent) {
            return Ok(Receiver::Run(last));
        }
        // The last generation has ended, was cancelled, or has no such agent.
        let gate = engine.shared().gate.as_ref();
        let gate = gate.ok_or_else(|| "this daemon knows no workflow".to_owned());
        let begins = gate.and_then(|gate| {
            let workflow = gate.workflow()?;
            gate.begins(&workflow).map(|()| workflow)
        });
        let workflow = begins.map_err(|why| EngineError::Objected {
            why: format!("its run is over, and no other one can begin: {why}"),
        })?;
        if !workflow.agents.contains_key(agent) {
            let why = format!("its run is over, and there is no agent {agent} any more");
            return Err(EngineError::NobodyHears { change: change.id, why });
        }
        Ok(Receiver::Revision(Box::new(workflow)))
    }
}

/// The run in which an agent revises its set.
fn revises(
    run: RunId,
    change: ChangeId,
    agent: &AgentName,
    comment: &Comment,
    workflow: Workflow,
) -> RunCreated {
    let request = revision_request(change, workflow.workflow.worktrees);
    let request = format!("{request}\n{}", comment.told());
    let inputs = Fields::from_iter([
        ("change".to_owned(), json!(change)),
        ("comments".to_owned(), json!([comment])),
    ]);
    let created = RunCreated::new(run, Arc::new(workflow), request, comment.by.clone());
    RunCreated { inputs, entry: Some(agent.clone()), ..created }
}

fn spoken(change: ChangeId, comment: &Comment) -> Input {
    Input::Team(TeamInput::CommentChange { change, comment: comment.clone() })
}
