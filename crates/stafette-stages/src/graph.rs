//! Access to the graph, with a check of rights.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::workflow::knowledge::GraphHome;
use stafette_core::{Fields, Party};
use stafette_knowledge::constitution::Constitution;
use stafette_knowledge::graph::{
    Batch, Condition, Cursor, Decision, Entity, Exchanged, GoalView, Graph, Label, Node, NodeKey,
    PAGE, Picture, Record, SetAside, Size, Write,
};
use stafette_knowledge::rights::{Access, Data};

use crate::{Actor, StageError, Stages, clock};

/// The time limit for something that is about to be stored.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// The pause between two checks for it.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// The health of the knowledge base.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// The backend that stores the graph.
    pub graph: GraphHome,
    /// The address of the graph server; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The state of the graph connection; `code` is `MCP_CONNECTION_FAILED` while it is
    /// unreachable.
    pub condition: Condition,
    /// The place where events are stored; `None` without a calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
    /// The user's time zone: days and hours of the calendar are local times in it.
    pub timezone: String,
    /// The reason why the calendar cannot be used at the moment; `None` if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar_trouble: Option<String>,
    /// The position up to which all events of all runs have been processed.
    pub position: u64,
}

impl Stages {
    /// Returns the health of the knowledge base.
    pub async fn health(&self) -> Result<Health, StageError> {
        let settings = &self.0.settings;
        let calendar = settings.calendar.as_ref();
        Ok(Health {
            graph: settings.graph,
            server: settings.neo4j.as_ref().map(|neo4j| neo4j.uri.clone()),
            condition: self.0.graph.condition().await?,
            calendar: calendar.and_then(|home| home.url.clone().or(home.folder.clone())),
            timezone: settings.week.timezone.clone(),
            calendar_trouble: self
                .0
                .diary
                .as_ref()
                .and_then(crate::planner::CalendarCache::trouble),
            position: self.0.cursors.get(crate::follower::CURSOR).await?.unwrap_or(0),
        })
    }

    /// Returns the warnings of blocks that lost their time or order, if the actor may read the
    /// calendar.
    pub async fn waits(&self, actor: &Actor) -> Result<Vec<String>, StageError> {
        if !granted(&actor.party, Access::Read, Data::Calendar) {
            return Ok(Vec::new());
        }
        let (now, until) = self.ahead();
        let ahead = self.0.proposals.between(now, until).await?.into_iter();
        let standing = ahead.filter(|block| block.state.holds_time());
        Ok(standing.filter_map(|block| block.trouble).collect())
    }

    /// Returns the batches that the graph refused when their turn came: only for people, because
    /// they can contain any data.
    pub async fn set_aside(&self, actor: &Actor) -> Result<Vec<SetAside>, StageError> {
        match actor.party {
            Party::Human => Ok(self.0.graph.set_aside().await?),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the principles that every recommendation has to answer, if there are any.
    ///
    /// # Errors
    /// If the actor lacks the right, or the document is invalid.
    pub fn constitution(&self, actor: &Actor) -> Result<Option<Constitution>, StageError> {
        actor.may(Access::Read, Data::Goals)?;
        crate::gate::recommendation::constitution(self).map_err(StageError::mistaken)
    }

    /// Returns one node.
    ///
    /// # Errors
    /// If the actor lacks the right, or the node does not exist.
    pub async fn node(&self, actor: &Actor, key: &NodeKey) -> Result<Node, StageError> {
        actor.may(Access::Read, key.label.into())?;
        let found = self.0.graph.node(key).await?;
        found.ok_or_else(|| StageError::NoNode { node: key.clone() })
    }

    /// Returns the nodes within `reach` links of a node that the actor may read.
    ///
    /// # Errors
    /// If the actor lacks the right, or the graph is unreachable.
    pub async fn around(
        &self,
        actor: &Actor,
        key: &NodeKey,
        reach: u8,
        limit: usize,
    ) -> Result<Picture, StageError> {
        self.node(actor, key).await?;
        let mut picture = self.0.graph.around(key, reach, limit).await?;
        let seen = |key: &NodeKey| granted(&actor.party, Access::Read, key.label.into());
        picture.nodes.retain(|node| seen(&node.key()));
        picture.links.retain(|link| seen(&link.from) && seen(&link.to));
        Ok(picture)
    }

    /// Returns decisions without tasks, oldest first.
    ///
    /// # Errors
    /// If the actor lacks the right, or the graph is unreachable.
    pub async fn pending_decisions(
        &self,
        actor: &Actor,
        limit: usize,
    ) -> Result<Vec<Node>, StageError> {
        actor.may(Access::Read, Data::Decisions)?;
        Ok(self.0.graph.pending_decisions(limit).await?)
    }

    /// Returns the tasks of a decision, oldest first; none if the actor may read only the decision.
    ///
    /// # Errors
    /// If the actor lacks the right, or the graph is unreachable.
    pub async fn tasks_of(
        &self,
        actor: &Actor,
        decision: &str,
        limit: usize,
    ) -> Result<Vec<Node>, StageError> {
        actor.may(Access::Read, Data::Decisions)?;
        match granted(&actor.party, Access::Read, Data::Tasks) {
            true => Ok(self.0.graph.tasks_of(decision, limit).await?),
            false => Ok(Vec::new()),
        }
    }

    /// Returns goals, each with the newest decisions that serve it.
    ///
    /// # Errors
    /// If the actor lacks the right, or the graph is unreachable.
    pub async fn goals(&self, actor: &Actor, limit: usize) -> Result<Vec<GoalView>, StageError> {
        actor.may(Access::Read, Data::Goals)?;
        self.known_goals().await?;
        let mut goals = self.0.graph.goals(limit, 10).await?;
        if !granted(&actor.party, Access::Read, Data::Decisions) {
            goals.iter_mut().for_each(|goal| goal.decisions.clear());
        }
        Ok(goals)
    }

    /// Returns the paths from an insight to its evidence.
    ///
    /// # Errors
    /// If the actor lacks the right, the insight does not exist, or the graph is unreachable.
    pub async fn evidence_of(
        &self,
        actor: &Actor,
        insight: &str,
        limit: usize,
    ) -> Result<Vec<Vec<NodeKey>>, StageError> {
        self.node(actor, &NodeKey::insight(insight)).await?;
        Ok(self.0.graph.evidence_of(insight, limit).await?)
    }

    /// Returns the number of nodes and links.
    ///
    /// # Errors
    /// If the graph is unreachable.
    pub async fn size(&self) -> Result<Size, StageError> {
        Ok(self.0.graph.size().await?)
    }

    /// Returns nodes of a label by id, those after `after`.
    ///
    /// # Errors
    /// If the actor lacks the right, or the graph is unreachable.
    pub async fn list(
        &self,
        actor: &Actor,
        label: Label,
        after: &str,
        limit: usize,
    ) -> Result<Vec<Node>, StageError> {
        actor.may(Access::Read, label.into())?;
        let cursor = Cursor::AfterNode(NodeKey::new(label, after));
        let page = self.0.graph.page(&cursor, limit.min(PAGE)).await?;
        // Nodes are sorted by label, so another label is the end.
        let nodes = page.into_iter().map_while(|record| match record {
            Record::Node(node) if node.key().label == label => Some(node),
            _ => None,
        });
        Ok(nodes.collect())
    }

    /// Returns the next page of the whole graph, for a person, and the position after it.
    ///
    /// # Errors
    /// If an agent asks, or the graph is unreachable.
    pub async fn export(
        &self,
        actor: &Actor,
        after: &Cursor,
        limit: usize,
    ) -> Result<(Vec<Record>, Option<Cursor>), StageError> {
        actor.is_person("take out the whole graph")?;
        let page = self.0.graph.page(after, limit).await?;
        let next = after.next(&page);
        Ok((page, next))
    }

    /// Imports records of another graph as they are, over existing ones.
    ///
    /// # Errors
    /// If an agent asks, a record is invalid, or the graph is unreachable.
    pub async fn import(&self, actor: &Actor, records: &[Record]) -> Result<Exchanged, StageError> {
        actor.is_person("put another graph in")?;
        stafette_knowledge::graph::check(records)?;
        let records = self.redacted(records.to_vec())?;
        self.0.graph.restore(&records).await?;
        Ok(Exchanged::of(&records))
    }

    /// Records the actual return of a decision, in money, as a person reports it.
    ///
    /// # Errors
    /// If an agent asks, or the decision does not exist.
    pub async fn came_of(
        &self,
        actor: &Actor,
        decision: &str,
        actual: f64,
    ) -> Result<Node, StageError> {
        actor.is_person("say what came of a decision")?;
        let key = NodeKey::decision(decision);
        let Entity::Decision(found) = self.node(actor, &key).await?.entity else {
            return Err(StageError::NoNode { node: key });
        };
        let changed = Decision { actual_return: Some(actual), ..found };
        let at = clock::now();
        let key_of_write = format!("outcome:{decision}:{}", at.0);
        let writes = vec![Write::Put(Entity::Decision(changed))];
        self.write(actor, at, key_of_write, writes).await?;
        self.node(actor, &key).await
    }

    /// Records the reasons for a decision, in the words of the agent that prepared it. The follower
    /// stores the decision itself; until then this waits for a moment.
    ///
    /// # Errors
    /// If the actor lacks the right, or the decision does not exist.
    pub async fn give_reasons(
        &self,
        actor: &Actor,
        id: &str,
        reasoning: String,
    ) -> Result<(), StageError> {
        actor.may(Access::Write, Data::Decisions)?;
        let key = NodeKey::decision(id);
        let since = std::time::Instant::now();
        let found = loop {
            match self.0.graph.node(&key).await? {
                Some(Node { entity: Entity::Decision(found), .. }) => break found,
                _ if since.elapsed() > PATIENCE => return Err(StageError::NoNode { node: key }),
                _ => tokio::time::sleep(PAUSE).await,
            }
        };
        let writes = vec![Write::Put(Entity::Decision(Decision { reasoning, ..found }))];
        let digest =
            Batch { key: String::new(), provenance: actor.provenance(clock::now()), writes };
        let name = format!("reasons:{id}:{}", digest.digest());
        self.write(actor, clock::now(), name, digest.writes).await
    }

    /// Stores an insight of an agent; it changes no parameters.
    ///
    /// # Errors
    /// If the actor lacks the right.
    pub async fn create_insight(
        &self,
        actor: &Actor,
        id: String,
        (pattern, evidence, topic): (String, String, String),
        confidence: f64,
        learned_from: Vec<NodeKey>,
    ) -> Result<NodeKey, StageError> {
        let finding = Fields::new();
        let entity = Entity::Insight(stafette_knowledge::graph::InsightNode {
            id,
            pattern,
            confidence,
            evidence,
            topic,
            finding,
        });
        let key = entity.key();
        let links = learned_from.into_iter().map(|to| Write::Link {
            from: key.clone(),
            relation: stafette_knowledge::graph::Relation::LearnedFrom,
            to,
        });
        let writes = std::iter::once(Write::Put(entity.clone())).chain(links).collect();
        self.write(actor, clock::now(), format!("insight:{}", key.id), writes).await?;
        Ok(key)
    }
}

/// True if a party is an agent with this right. Does not log: used to decide what is offered.
pub(crate) fn granted(party: &Party, access: Access, data: Data) -> bool {
    stafette_knowledge::rights::check(party, access, data).is_ok()
}
