//! Learning: finds patterns in past work, and applies those that people accept.

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
use crate::{Actor, StageError, Stages, clock};

/// An insight with its state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InsightView {
    /// The insight as stored in the graph.
    #[serde(flatten)]
    pub node: Node,
    /// The change that accepting it makes; `None` if it only informs.
    pub change: Option<Change>,
    /// The version of the parameters by which it is in force; `None` if it is not.
    pub in_force: Option<u32>,
}

/// The observations of each run, cached: those of a run that has ended never change.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    runs: tokio::sync::Mutex<BTreeMap<RunId, (u64, Vec<Observation>)>>,
    /// Wakes the task that looks for patterns beside the runs.
    pub(crate) news: tokio::sync::Notify,
}

/// The amount of data that a reflection had to read; cached data is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// The number of runs.
    pub runs: usize,
    /// The number of their events.
    pub events: usize,
    /// The number of tasks and decisions of the graph.
    pub nodes: usize,
    /// The number of blocks of time.
    pub blocks: usize,
}

/// The result of a reflection on all past work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reflection {
    /// The number of observations that were analysed.
    pub observations: usize,
    /// The amount of data that had to be read for it.
    pub read: Reading,
    /// The insights that hold, the most certain first.
    pub insights: Vec<NodeKey>,
}

impl Stages {
    /// Looks for patterns in all past work, and stores those that hold.
    ///
    /// # Errors
    /// If the actor lacks the right, or the runs or the graph cannot be read.
    pub async fn reflect(&self, actor: &Actor, engine: &Engine) -> Result<Reflection, StageError> {
        actor.may(Access::Write, Data::Insights)?;
        self.look_back(engine).await
    }

    /// Looks for patterns after a run has ended, without an actor.
    pub(crate) async fn look_back(&self, engine: &Engine) -> Result<Reflection, StageError> {
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

    async fn keep(&self, ledger: &Ledger, insight: &Insight) -> Result<NodeKey, StageError> {
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
            // Evidence that was mirrored elsewhere, or long ago, cannot be linked.
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

    /// Returns the observations of the newest runs. Reads only those that have new events.
    async fn shown_by_runs(
        &self,
        engine: &Engine,
        read: &mut Reading,
    ) -> Result<Vec<Observation>, StageError> {
        let mut known = self.0.memory.runs.lock().await;
        let runs = engine.runs(self.0.settings.mind.runs).await?;
        let mut kept = BTreeMap::new();
        for view in &runs {
            let shown = match known.remove(&view.run) {
                Some((seq, shown)) if seq == view.seq => shown,
                _ => {
                    let events = engine.log().events(view.run, 0).await?;
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

    /// Returns all observations under the current parameters: the newest of each kind, so that a
    /// long history does not make a reflection slower.
    async fn observations(
        &self,
        engine: &Engine,
        parameters: &Parameters,
        read: &mut Reading,
    ) -> Result<Vec<Observation>, StageError> {
        let mut found = self.shown_by_runs(engine, read).await?;
        for node in self.0.graph.newest(Label::Task, PAGE).await? {
            read.nodes += 1;
            let evidence = node.key();
            if let Entity::Task(task) = node.entity
                && let (Some(kind), Some(actual)) = (task.kind, task.actual_hours)
            {
                // The estimate as it would be now, so that nothing is learned twice.
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

    /// Returns insights that contain all words of a topic, the most certain first.
    ///
    /// # Errors
    /// If the actor lacks the right, or the graph is unreachable.
    pub async fn insights(
        &self,
        actor: &Actor,
        topic: &str,
        limit: usize,
    ) -> Result<Vec<InsightView>, StageError> {
        actor.may(Access::Read, Data::Insights)?;
        let ledger = self.ledger().await?;
        let nodes = self.0.graph.insights(topic, limit).await?;
        Ok(nodes.into_iter().map(|node| view(&ledger, node)).collect())
    }

    /// Applies the change of an insight to the parameters.
    ///
    /// # Errors
    /// If an agent asks, or the insight does not exist, changes nothing, or is in force.
    pub async fn accept_insight(&self, actor: &Actor, id: &str) -> Result<Version, StageError> {
        actor.is_person("accept an insight")?;
        let node = self.node(actor, &NodeKey::insight(id)).await?;
        let key = node.key();
        let Some(change) = change_of(&node) else {
            return Err(StageError::mistaken(format!("{key} changes nothing: it is good to know")));
        };
        let (at, by) = (clock::now(), actor.party.clone());
        let accept = move |ledger: &mut Ledger| ledger.accept(key, change, at, by).cloned();
        Ok(self.0.versions.change(self.first_version(), accept).await?.0)
    }

    /// Restores an earlier version of the parameters as a new one.
    ///
    /// # Errors
    /// If an agent asks, or there is no such version.
    pub async fn roll_back(&self, actor: &Actor, to: u32) -> Result<Version, StageError> {
        actor.is_person("go back to an earlier version")?;
        let (at, by) = (clock::now(), actor.party.clone());
        let back = move |ledger: &mut Ledger| ledger.roll_back(to, at, by).cloned();
        Ok(self.0.versions.change(self.first_version(), back).await?.0)
    }

    /// Returns all versions of the parameters, oldest first; the last one is in force.
    ///
    /// # Errors
    /// If the actor lacks the right, or the file cannot be read.
    pub async fn parameters(&self, actor: &Actor) -> Result<Vec<Version>, StageError> {
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

/// Returns the expected return of a decision under these weights.
fn expected(breakdown: &Fields, weights: &Weights) -> Option<f64> {
    let scored: Scored = serde_json::from_value(breakdown.clone().into()).ok()?;
    Some(scored.parts.iter().map(|part| part.amount * weights.of(part.term)).sum())
}

fn word(detector: Detector) -> String {
    value(&detector).as_str().unwrap_or_default().to_owned()
}

/// Returns the key of an insight: the same pattern keeps its key, until it is in force and a new
/// pattern of its kind appears.
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
