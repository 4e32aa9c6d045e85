//! One run as the follower knows it, and the meaning of its approvals.

use std::collections::BTreeMap;

use stafette_core::{Event, Fields, HandoffId, Offer, Party, Recorded, RunId, Time};
use stafette_knowledge::calendar::proposal::{Proposal, Stand};
use stafette_knowledge::constitution::Recommendation;
use stafette_knowledge::graph::{
    Batch, Decision, DecisionStatus, Discussion, Entity, Graph, Mirror, Node, NodeKey, Relation,
    Task, TaskStatus, Write,
};
use stafette_knowledge::rights::{Access, Data};

use crate::gate::approval;
use crate::graph::granted;
use crate::planner::PlanView;
use crate::ranking::Ranked;
use crate::stages::{read, value};
use crate::{Actor, StageError, Stages};

/// A run, as far as its events were read.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) run: RunId,
    /// True if its workflow uses the knowledge base.
    pub(super) minds: bool,
    pub(super) request: String,
    mirror: Mirror,
    /// The open offers, each with the handoff that it was made in.
    offers: BTreeMap<HandoffId, (Offer, Option<HandoffId>)>,
    /// The last approved decision.
    decision: Option<Decision>,
}

impl Watch {
    pub(super) fn new(run: RunId) -> Self {
        Watch {
            run,
            minds: false,
            request: String::new(),
            mirror: Mirror::new(run),
            offers: BTreeMap::new(),
            decision: None,
        }
    }

    /// Returns the graph batch for an event.
    pub(super) fn mirror(&mut self, recorded: &Recorded) -> Option<Batch> {
        self.mirror.see(recorded)
    }

    /// Returns the offer of an open handoff.
    pub(super) fn offer(&self, id: HandoffId) -> Option<&Offer> {
        self.offers.get(&id).map(|(offer, _)| offer)
    }

    /// Updates the state with an event.
    pub(super) fn see(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::RunCreated(created) => {
                self.minds = created.workflow.knowledge.is_some();
                self.request.clone_from(&created.request);
            }
            Event::RunForked(forked) => {
                self.minds = forked.state.workflow.knowledge.is_some();
                self.request.clone_from(&forked.state.request);
                for handoff in forked.state.open() {
                    self.offers.insert(handoff.id, (handoff.offer.clone(), handoff.cause));
                }
            }
            Event::HandoffAdmitted(admitted) => {
                self.offers.insert(admitted.id, (admitted.offer.clone(), admitted.cause));
            }
            Event::QuestionAnswered(answered) => {
                if let Some((decision, _)) = self.decided(answered.handoff, &answered.answer.values)
                {
                    self.decision = Some(decision);
                }
            }
            Event::HandoffClosed(closed) => {
                self.offers.remove(&closed.handoff);
            }
            _ => {}
        }
    }

    /// Stores what an event approved.
    pub(super) async fn approved(
        &mut self,
        stages: &Stages,
        recorded: &Recorded,
    ) -> Result<(), StageError> {
        if !self.minds {
            return Ok(());
        }
        match &recorded.event {
            Event::HandoffAdmitted(admitted) => {
                if admitted.offer.outputs.contains_key("recommendation") {
                    self.discussed(stages, recorded.at, admitted.id, &admitted.offer).await?;
                }
                if let Ok(plan) = read::<PlanView>(&admitted.offer.outputs, "plan")
                    && admitted.offer.to == Party::Human
                {
                    let blocks = approval::blocks(self.run, admitted.id, &plan);
                    stages.0.proposals.add(blocks).await?;
                }
                Ok(())
            }
            Event::QuestionAnswered(answered) => {
                let (id, values) = (answered.handoff, &answered.answer.values);
                self.choice(stages, recorded.at, id, values).await?;
                self.time(stages, recorded.at, id, values, &answered.answer.text).await
            }
            Event::TurnFinished(finished) => {
                let id = finished.turn.handoff;
                self.insights(stages, recorded, id, &finished.result.response.outputs).await
            }
            _ => Ok(()),
        }
    }

    fn actor(&self, id: HandoffId) -> Option<Actor> {
        let (offer, cause) = self.offers.get(&id)?;
        Some(Actor::of(offer.from.clone(), self.run, cause.unwrap_or(id)))
    }

    /// Stores the summary of a discussion.
    async fn discussed(
        &self,
        stages: &Stages,
        at: Time,
        id: HandoffId,
        offer: &Offer,
    ) -> Result<(), StageError> {
        let Ok(recommendation) = read::<Recommendation>(&offer.outputs, "recommendation") else {
            return Ok(());
        };
        if !granted(&offer.from, Access::Write, Data::Discussions) {
            return Ok(());
        }
        let thread = read::<String>(&offer.outputs, "thread_id").ok();
        let node = discussion(self.run, thread.as_deref());
        let summary = match offer.summary.is_empty() {
            true => &self.request,
            false => &offer.summary,
        };
        let writes = vec![Write::Put(Entity::Discussion(Discussion {
            id: node.id.clone(),
            topic: summary.chars().take(500).collect(),
            alignment: read(&offer.outputs, "score").unwrap_or(0.0_f64).clamp(0.0, 1.0),
            recommendation,
            thread,
        }))];
        let actor = Actor::of(offer.from.clone(), self.run, id);
        let key = format!("discussion:{}/{id}", self.run);
        stages.write(&actor, at, key.clone(), writes).await?;
        self.produced(stages, at, id, &key, node).await
    }

    /// Links a handoff to its result, in the name of Stafette.
    async fn produced(
        &self,
        stages: &Stages,
        at: Time,
        id: HandoffId,
        key: &str,
        node: NodeKey,
    ) -> Result<(), StageError> {
        let from = NodeKey::handoff(self.run, id);
        let link = Write::Link { from, relation: Relation::Produced, to: node };
        let own = Actor::of(Party::Orchestrator, self.run, id);
        stages.write(&own, at, format!("produced:{key}"), vec![link]).await
    }

    /// Returns the decision that an answer made, with the ranking behind it.
    fn decided(&self, id: HandoffId, values: &Fields) -> Option<(Decision, Ranked)> {
        let offer = self.offer(id)?;
        let ranked: Ranked = read(&offer.outputs, "ranking").ok()?;
        let (decision, option): (String, String) =
            (read(values, "decision_id").ok()?, read(values, "option").ok()?);
        let scored = ranked.ranking.ranked.iter().find(|scored| scored.id == option);
        let given = ranked.options.iter().find(|candidate| candidate.id == option)?;
        let breakdown = match scored.map(value) {
            Some(serde_json::Value::Object(fields)) => fields,
            _ => Fields::new(),
        };
        let reasoning = match offer.summary.is_empty() {
            true => offer.detail.clone(),
            false => offer.summary.clone(),
        };
        let decision = Decision {
            id: decision,
            option: format!("{option}: {}", given.title),
            roi: scored.map_or(0.0, |scored| scored.total),
            reasoning,
            serves_goal_type: None,
            status: DecisionStatus::Pending,
            actual_return: None,
            breakdown,
        };
        Some((decision, ranked))
    }

    async fn choice(
        &self,
        stages: &Stages,
        at: Time,
        id: HandoffId,
        values: &Fields,
    ) -> Result<(), StageError> {
        let (Some((mut decision, ranked)), Some(actor)) =
            (self.decided(id, values), self.actor(id))
        else {
            return Ok(());
        };
        let goals = stages.known_goals().await.unwrap_or_default();
        let served: Vec<String> = read(values, "goals").unwrap_or_default();
        let first = goals.iter().find(|goal| served.contains(&goal.id));
        decision.serves_goal_type = first.map(|goal| goal.horizon.clone());
        let key = NodeKey::decision(&decision.id);
        let mut writes = vec![Write::Put(Entity::Decision(decision))];
        let link = |relation, to| Write::Link { from: key.clone(), relation, to };
        let serves = goals.iter().filter(|goal| served.contains(&goal.id));
        writes.extend(serves.map(|goal| link(Relation::Serves, NodeKey::goal(&goal.id))));
        let outputs = self.offer(id).map(|offer| &offer.outputs);
        let talk = outputs.and_then(|outputs| read::<String>(outputs, "discussion").ok());
        let talk = talk.map(|thread| discussion(self.run, Some(&thread)));
        writes.extend(talk.map(|talk| link(Relation::DecidedIn, talk)));
        stages.write(&actor, at, format!("decision:{}", key.id), writes).await?;
        self.produced(stages, at, id, &format!("decision:{}", key.id), key.clone()).await?;
        // In the name of `mind`, which owns the insights and their links.
        for learned in ranked.learned {
            let (from, to) = (learned.insight.clone(), key.clone());
            let informs = vec![Write::Link { from, relation: Relation::Informs, to }];
            let mind = Actor { party: Party::from("mind"), ..actor.clone() };
            let name = format!("informs:{}:{}", learned.insight.id, key.id);
            stages.write(&mind, at, name, informs).await?;
        }
        Ok(())
    }

    /// Stores the tasks of a plan, and its blocks for the calendar.
    async fn time(
        &self,
        stages: &Stages,
        at: Time,
        id: HandoffId,
        values: &Fields,
        said: &str,
    ) -> Result<(), StageError> {
        let Some(plan) = self.offer(id).and_then(|offer| read(&offer.outputs, "plan").ok()) else {
            return Ok(());
        };
        let plan: PlanView = plan;
        let Some(actor) = self.actor(id) else { return Ok(()) };
        let yes = values.contains_key("task_ids");
        if yes {
            stages.approve(self.run, id).await?;
        } else if said.trim().eq_ignore_ascii_case(crate::gate::DROP) {
            for place in 0..plan.blocks.len() {
                let name = approval::block(self.run, id, place);
                let dropped = |one: &mut Proposal| one.state = Stand::Dropped;
                // A block that a person decided individually stays as decided.
                let _ = stages.0.proposals.change(&name, &[Stand::Proposed], dropped).await;
            }
        }
        if !yes {
            return Ok(());
        }
        let kept = stages.0.proposals.of(self.run, id).await?;
        let writes = self.tasks(id, &plan, &kept);
        stages.write(&actor, at, format!("tasks:{}/{id}", self.run), writes).await?;
        if let Some(decision) = self.decision.clone().filter(|known| known.id == plan.decision) {
            let status = DecisionStatus::Planned;
            // With the reasons that were given since, if the graph can be read.
            let decision = match stages.0.graph.node(&NodeKey::decision(&decision.id)).await {
                Ok(Some(Node { entity: Entity::Decision(newer), .. })) => newer,
                _ => decision,
            };
            let writes = vec![Write::Put(Entity::Decision(Decision { status, ..decision }))];
            let own = Actor::of(Party::Orchestrator, self.run, id);
            stages.write(&own, at, format!("planned:{}/{id}", self.run), writes).await?;
        }
        if let Err(fault) = stages.write_accepted().await {
            tracing::warn!(%fault, "the calendar gets its events later");
        }
        Ok(())
    }

    fn tasks(&self, id: HandoffId, plan: &PlanView, kept: &[Proposal]) -> Vec<Write> {
        let key = |wish: &str| NodeKey::task(&approval::task(self.run, id, wish));
        let mut writes = Vec::new();
        for (wish, estimate) in plan.tasks.iter().zip(&plan.estimates) {
            let event = kept
                .iter()
                .find(|one| one.task == key(&wish.id) && one.state != Stand::Dropped)
                .map(|one| one.entry.clone());
            let status = if event.is_some() { TaskStatus::Scheduled } else { TaskStatus::Open };
            writes.push(Write::Put(Entity::Task(Task {
                id: key(&wish.id).id,
                title: wish.title.clone(),
                effort_hours: estimate.hours,
                priority: wish.priority,
                status,
                kind: wish.kind.clone(),
                estimated_hours: Some(estimate.estimated),
                actual_hours: None,
                event,
            })));
        }
        for wish in &plan.tasks {
            let from = key(&wish.id);
            let to = NodeKey::decision(&plan.decision);
            writes.push(Write::Link { from: from.clone(), relation: Relation::PartOf, to });
            let first = plan.tasks.iter().filter(|other| wish.after.contains(&other.id));
            writes.extend(first.map(|other| Write::Link {
                from: from.clone(),
                relation: Relation::DependsOn,
                to: key(&other.id),
            }));
        }
        writes
    }

    /// Stores the insights that an agent reports.
    async fn insights(
        &self,
        stages: &Stages,
        recorded: &Recorded,
        id: HandoffId,
        outputs: &Fields,
    ) -> Result<(), StageError> {
        let Some((offer, _)) = self.offers.get(&id) else { return Ok(()) };
        let found = outputs.get("insights").and_then(|list| list.as_array());
        let Some(found) = found.filter(|_| granted(&offer.to, Access::Write, Data::Insights))
        else {
            return Ok(());
        };
        let actor = Actor::of(offer.to.clone(), self.run, id);
        for (place, one) in found.iter().take(50).enumerate() {
            let text = |key: &str| match &one[key] {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Null => String::new(),
                other => other.to_string(),
            };
            let pattern = text("pattern");
            let confidence = one["confidence"].as_f64().unwrap_or(0.0).clamp(0.0, 1.0);
            if pattern.is_empty() {
                continue;
            }
            let name = format!("{}.{}.i{}", self.run, recorded.seq, place + 1);
            let said = (pattern, text("evidence"), text("topic"));
            let from = vec![NodeKey::handoff(self.run, id)];
            stages.create_insight(&actor, name, said, confidence, from).await?;
        }
        Ok(())
    }
}

/// Returns the node of a discussion, named after the thread or the run.
fn discussion(run: RunId, thread: Option<&str>) -> NodeKey {
    match thread {
        Some(thread) => NodeKey::discussion(thread),
        None => NodeKey::discussion(&run.to_string()),
    }
}
