//! What is learned: patterns found in all that happened, and what people make of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Party, Recorded, RunId};
use stafette_engine::Engine;
use stafette_knowledge::calendar::proposal::Stand;
use stafette_knowledge::graph::{
    Batch, Entity, Graph, InsightNode, Label, Node, NodeKey, PAGE, Relation, Write,
};
use stafette_knowledge::mind::parameters::{Ledger, Parameters, Version};
use stafette_knowledge::mind::{Change, Detector, Insight, Limits, Observation, detect, observe};
use stafette_knowledge::rights::{Access, Data};
use stafette_knowledge::roi::{Scored, Weights};

use crate::follower::parse;
use crate::stages::{read, value};
use crate::{Actor, Fault, Stages, clock};

/// An insight with what has become of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InsightView {
    /// The insight as the graph has it.
    #[serde(flatten)]
    pub node: Node,
    /// What it would change if it is accepted.
    pub change: Option<Change>,
    /// By which version of the parameters it is in force.
    pub in_force: Option<u32>,
}

/// What the runs show, each read once: one that is over says the same for ever.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    runs: tokio::sync::Mutex<BTreeMap<RunId, (u64, Vec<Observation>)>>,
    /// Wakes whoever looks for patterns beside the runs.
    pub(crate) news: tokio::sync::Notify,
}

/// What had to be read for a look: nothing that was read before and is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// Runs.
    pub runs: usize,
    /// Their events.
    pub events: usize,
    /// Tasks and decisions of the graph.
    pub nodes: usize,
    /// Blocks of time.
    pub blocks: usize,
}

/// What came of a look at all that happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reflection {
    /// How much was looked at.
    pub observations: usize,
    /// How much had to be read for it.
    pub read: Reading,
    /// What holds, the surest first.
    pub insights: Vec<NodeKey>,
}

impl Stages {
    /// Looks for patterns in all that happened, and keeps those that hold.
    ///
    /// # Errors
    /// When they may not, or the runs or the graph cannot be read.
    pub async fn reflect(&self, actor: &Actor, engine: &Engine) -> Result<Reflection, Fault> {
        actor.may(Access::Write, Data::Insights)?;
        self.look_back(engine).await
    }

    /// The same when a run has ended.
    pub(crate) async fn look_back(&self, engine: &Engine) -> Result<Reflection, Fault> {
        let ledger = self.ledger().await?;
        let mut read = Reading::default();
        let parameters = &ledger.current().parameters;
        let observations = self.observations(engine, parameters, &mut read).await?;
        let mind = &self.0.settings.mind;
        let limits = Limits {
            samples: mind.samples,
            share_samples: mind.share_samples,
            outlier_samples: mind.outlier_samples,
            ..Limits::default()
        };
        let mut kept = Vec::new();
        for insight in detect(&observations, &limits) {
            kept.push(self.keep(&ledger, &insight).await?);
        }
        Ok(Reflection { observations: observations.len(), read, insights: kept })
    }

    async fn keep(&self, ledger: &Ledger, insight: &Insight) -> Result<NodeKey, Fault> {
        let key = free_name(ledger, insight);
        let finding = match value(insight) {
            serde_json::Value::Object(fields) => fields,
            _ => Fields::new(),
        };
        let entity = Entity::Insight(InsightNode {
            id: key.id.clone(),
            pattern: insight.pattern.clone(),
            confidence: insight.confidence.clamp(0.0, 1.0),
            evidence: format!("{} observations", insight.samples),
            topic: format!("{} {}", word(insight.detector), insight.subject),
            finding,
        });
        let mut writes = vec![Write::Put(entity)];
        for evidence in &insight.evidence {
            // What was mirrored elsewhere, or long ago, cannot be linked.
            if self.0.graph.node(evidence).await?.is_some() {
                let (from, to) = (key.clone(), evidence.clone());
                writes.push(Write::Link { from, relation: Relation::LearnedFrom, to });
            }
        }
        let mind = Actor { party: Party::from("mind"), run: None, handoff: None };
        let at = clock::now();
        let batch = Batch { key: String::new(), provenance: mind.provenance(at), writes };
        let name = format!("insight:{}:{}", key.id, batch.digest());
        self.write(&mind, at, name, batch.writes).await?;
        Ok(key)
    }

    /// What the newest runs show. Only those are read that have gone on since they were last.
    async fn shown_by_runs(
        &self,
        engine: &Engine,
        read: &mut Reading,
    ) -> Result<Vec<Observation>, Fault> {
        let mut known = self.0.memory.runs.lock().await;
        let runs = engine.runs(self.0.settings.mind.runs).await?;
        let mut kept = BTreeMap::new();
        for view in &runs {
            let shown = match known.remove(&view.run) {
                Some((seq, shown)) if seq == view.seq => shown,
                _ => {
                    let events = engine.events(view.run, 0).await?;
                    read.runs += 1;
                    read.events += events.len();
                    let events: Vec<Recorded> = events.iter().filter_map(parse).collect();
                    observe(view.run, &events)
                }
            };
            kept.insert(view.run, (view.seq, shown));
        }
        *known = kept;
        let shown = runs.iter().filter_map(|view| known.get(&view.run));
        Ok(shown.flat_map(|(_, shown)| shown.iter().cloned()).collect())
    }

    /// All that can be learned from, in the light of what is in force: of each kind the newest, so
    /// that a look takes no longer because the history is long.
    async fn observations(
        &self,
        engine: &Engine,
        parameters: &Parameters,
        read: &mut Reading,
    ) -> Result<Vec<Observation>, Fault> {
        let mut found = self.shown_by_runs(engine, read).await?;
        for node in self.0.graph.newest(Label::Task, PAGE).await? {
            read.nodes += 1;
            let evidence = node.key();
            if let Entity::Task(task) = node.entity
                && let (Some(kind), Some(actual)) = (task.kind, task.actual_hours)
            {
                // What the estimate would be by now: what was learned is not learned twice.
                let factor = parameters.estimates.get(&kind).copied().unwrap_or(1.0);
                let estimated = task.estimated_hours.unwrap_or(task.effort_hours) * factor;
                found.push(Observation::Task { kind, estimated, actual, evidence });
            }
        }
        for node in self.0.graph.newest(Label::Decision, PAGE).await? {
            read.nodes += 1;
            let evidence = node.key();
            if let Entity::Decision(decision) = node.entity
                && let Some(actual) = decision.actual_return
            {
                let expected = expected(&decision.breakdown, &parameters.weights);
                let expected = expected.unwrap_or(decision.roi);
                found.push(Observation::Return { expected, actual, evidence });
            }
        }
        for one in self.0.proposals.last().await? {
            read.blocks += 1;
            let ended = one.done_at.or((one.state == Stand::Moved).then_some(one.end));
            if let (Some(kind), Some(ended)) = (one.kind, ended) {
                let hours = (ended.0 - one.planned_end.0) as f64 / 3_600_000.0;
                found.push(Observation::Slip { kind, hours, evidence: one.task });
            }
        }
        Ok(found)
    }

    /// Insights that have all words of a topic, the surest first.
    ///
    /// # Errors
    /// When they may not look, or the graph is away.
    pub async fn insights(
        &self,
        actor: &Actor,
        topic: &str,
        limit: usize,
    ) -> Result<Vec<InsightView>, Fault> {
        actor.may(Access::Read, Data::Insights)?;
        let ledger = self.ledger().await?;
        let nodes = self.0.graph.insights(topic, limit).await?;
        Ok(nodes.into_iter().map(|node| view(&ledger, node)).collect())
    }

    /// Has an insight change what the stages reckon with.
    ///
    /// # Errors
    /// When an agent asks, there is none, it changes nothing, or it is in force.
    pub async fn accept_insight(&self, actor: &Actor, id: &str) -> Result<Version, Fault> {
        actor.is_person("accept an insight")?;
        let node = self.node(actor, &NodeKey::insight(id)).await?;
        let key = node.key();
        let Some(change) = change_of(&node) else {
            return Err(Fault::mistaken(format!("{key} changes nothing: it is good to know")));
        };
        let (at, by) = (clock::now(), actor.party.clone());
        let accept = move |ledger: &mut Ledger| ledger.accept(key, change, at, by).cloned();
        Ok(self.0.versions.change(self.first_version(), accept).await?.0)
    }

    /// Takes up an earlier version of the parameters again.
    ///
    /// # Errors
    /// When an agent asks, or there is no such version.
    pub async fn roll_back(&self, actor: &Actor, to: u32) -> Result<Version, Fault> {
        actor.is_person("go back to an earlier version")?;
        let (at, by) = (clock::now(), actor.party.clone());
        let back = move |ledger: &mut Ledger| ledger.roll_back(to, at, by).cloned();
        Ok(self.0.versions.change(self.first_version(), back).await?.0)
    }

    /// All versions of what the stages reckon with, the oldest first; the last one is in force.
    ///
    /// # Errors
    /// When they may not look, or the file cannot be read.
    pub async fn parameters(&self, actor: &Actor) -> Result<Vec<Version>, Fault> {
        actor.may(Access::Read, Data::Parameters)?;
        Ok(self.ledger().await?.into())
    }
}

fn view(ledger: &Ledger, node: Node) -> InsightView {
    let in_force = ledger.in_force(&node.key());
    InsightView { change: change_of(&node), in_force, node }
}

fn change_of(node: &Node) -> Option<Change> {
    match &node.entity {
        Entity::Insight(insight) => read(&insight.finding, "change").ok().flatten(),
        _ => None,
    }
}

/// What a decision would be expected to return by these weights.
fn expected(breakdown: &Fields, weights: &Weights) -> Option<f64> {
    let scored: Scored = serde_json::from_value(breakdown.clone().into()).ok()?;
    Some(scored.parts.iter().map(|part| part.amount * weights.of(part.term)).sum())
}

fn word(detector: Detector) -> String {
    value(&detector).as_str().unwrap_or_default().to_owned()
}

/// A name for an insight: the same pattern has the same one, until it is in force and a new pattern
/// of its kind shows.
fn free_name(ledger: &Ledger, insight: &Insight) -> NodeKey {
    let plain = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let subject: String = insight.subject.chars().map(plain).take(100).collect();
    let mut words = subject.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>();
    let detector = word(insight.detector).replace('_', "-");
    words.insert(0, &detector);
    let name = words.join("-");
    let names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}-{n}")));
    let mut keys = names.map(|name| NodeKey::insight(&name));
    // There are fewer versions than numbers.
    keys.find(|key| ledger.in_force(key).is_none()).unwrap_or_else(|| NodeKey::insight(&name))
}
