//! The graph in Neo4j, over Bolt.
//!
//! Every node has the label `Stafette` and its key beside its own label and properties, so that one
//! constraint keeps all of them apart; other data in the same database is left alone. Outside input
//! is always a parameter: the text of a query is made of constants.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use stafette_core::Fields;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::graph::walk::{self, Steps, Way};
use crate::graph::{
    Applied, Batch, Cursor, Entity, GoalView, Graph, GraphError, Label, Link, Node, NodeKey, PAGE,
    Picture, Provenance, Record, Relation, Reply, Size, Write, corrupt, words,
};

mod bolt;
mod text;
mod value;

use bolt::{BoltError, Driver, Login, Transaction};
use value::{from_properties, link_from, provenance_properties, to_properties};

/// The time limit of one transaction.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of tries for a transaction that collides with another.
const TRIES: u32 = 6;

/// The address of the graph and the credentials for it.
#[derive(Clone)]
pub struct Neo4jSettings {
    /// The address: `bolt://host:port`, or `bolt+s://` with TLS. `neo4j://` means the same: nothing is
    /// routed through a cluster.
    pub uri: String,
    pub user: String,
    /// The user's password. It is never printed.
    pub password: String,
    /// The name of the database; the server's default if `None`.
    pub database: Option<String>,
}

impl fmt::Debug for Neo4jSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neo4jSettings")
            .field("uri", &self.uri)
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// The graph in a Neo4j database.
pub struct Neo4jGraph {
    driver: Driver,
    uri: String,
    /// Set once constraints and indexes exist.
    prepared: OnceCell<()>,
}

impl fmt::Debug for Neo4jGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neo4jGraph").field("uri", &self.uri).finish_non_exhaustive()
    }
}

/// Translates an error of the server or the connection. Everything that is not clearly the query's
/// fault may pass.
fn trouble(error: BoltError) -> GraphError {
    let why = error.to_string();
    match error {
        BoltError::Refused { code, .. } => {
            let ours = ["Neo.ClientError.Statement", "Neo.ClientError.Schema"];
            match ours.iter().any(|class| code.starts_with(class)) {
                true => GraphError::Failed { why },
                false => GraphError::Away { why },
            }
        }
        BoltError::Address(_) | BoltError::TooLong { .. } => GraphError::Failed { why },
        BoltError::Malformed(_) => corrupt("an answer", why),
        BoltError::Broken(_) | BoltError::Late(_) | BoltError::Strange(_) => {
            GraphError::Away { why }
        }
    }
}

/// True if two transactions collided.
fn collided(error: &GraphError) -> bool {
    matches!(error, GraphError::Away { why } if why.contains("Neo.TransientError.Transaction"))
}

impl Neo4jGraph {
    /// Creates a client for this address without connecting: the first call reports an unreachable
    /// server.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(settings: &Neo4jSettings) -> Result<Self, GraphError> {
        let login = Login {
            user: settings.user.clone(),
            password: settings.password.clone(),
            database: settings.database.clone(),
        };
        let driver = Driver::new(&settings.uri, login).map_err(trouble)?;
        Ok(Neo4jGraph { driver, uri: settings.uri.clone(), prepared: OnceCell::new() })
    }

    /// Removes everything of Stafette's from the database, and nothing else.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn erase(&self) -> Result<(), GraphError> {
        self.ask(text::ERASE, json!({})).await.map(drop)
    }

    /// Creates constraints and indexes, once.
    async fn prepare(&self) -> Result<(), GraphError> {
        let make = || async {
            for statement in text::SCHEMA {
                self.ask(statement, json!({})).await?;
            }
            Ok(())
        };
        self.prepared.get_or_try_init(make).await.copied()
    }

    /// Runs one query in a transaction of its own.
    async fn ask(&self, text: &str, with: Value) -> Result<Vec<Fields>, GraphError> {
        let work = async {
            let mut txn = self.driver.begin().await.map_err(trouble)?;
            let rows = rows(&mut txn, text, with).await?;
            txn.commit().await.map_err(trouble)?;
            Ok(rows)
        };
        within(work).await
    }

    async fn read(&self, text: &str, with: Value) -> Result<Vec<Fields>, GraphError> {
        self.prepare().await?;
        self.ask(text, with).await
    }

    async fn nodes_by(&self, text: &str, with: Value) -> Result<Vec<Node>, GraphError> {
        let rows = self.read(text, with).await?;
        rows.into_iter().map(|mut row| from_properties(row.remove("n"))).collect()
    }

    async fn write(&self, batch: &Batch) -> Result<Applied, GraphError> {
        batch.check()?;
        self.prepare().await?;
        let mut tries = 1;
        loop {
            match within(self.attempt(batch)).await {
                Err(error) if collided(&error) && tries < TRIES => {
                    sleep(Duration::from_millis(10 << tries)).await;
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn attempt(&self, batch: &Batch) -> Result<Applied, GraphError> {
        let mut txn = self.driver.begin().await.map_err(trouble)?;
        let answer = write(&mut txn, batch).await;
        match &answer {
            Ok(Applied::Now) => txn.commit().await.map_err(trouble)?,
            // The first error counts, even if the rollback is cut short.
            _ => drop(txn.roll_back().await),
        }
        answer
    }
}

async fn within<T>(work: impl Future<Output = Result<T, GraphError>>) -> Result<T, GraphError> {
    let late = || GraphError::Away { why: format!("no answer within {} s", PATIENCE.as_secs()) };
    timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(late()))
}

async fn rows(
    txn: &mut Transaction<'_>,
    text: &str,
    with: Value,
) -> Result<Vec<Fields>, GraphError> {
    txn.run(text, &with).await.map_err(trouble)
}

/// Writes a batch in a transaction: checks first for its key, then writes its nodes, then its
/// links.
async fn write(txn: &mut Transaction<'_>, batch: &Batch) -> Result<Applied, GraphError> {
    let (digest, token) = (batch.digest(), Uuid::new_v4().to_string());
    let claim = json!({"key": batch.key, "digest": digest, "token": token});
    let claimed = rows(txn, text::CLAIM, claim).await?;
    let said = |name: &str| claimed.first().and_then(|row| row.get(name)?.as_str());
    if said("token") != Some(&token) {
        return match said("digest") == Some(&digest) {
            true => Ok(Applied::Before),
            false => Err(GraphError::KeyReused { key: batch.key.clone() }),
        };
    }
    let by = &batch.provenance;
    let puts = batch.writes.iter().filter_map(|write| match write {
        Write::Put(entity) => Some((entity, by, by)),
        Write::Link { .. } => None,
    });
    put(txn, puts.collect(), true).await?;
    let links = batch.writes.iter().filter_map(|write| match write {
        Write::Link { from, relation, to } => Some((from, *relation, to, by)),
        Write::Put(_) => None,
    });
    link(txn, &batch.key, links.collect()).await?;
    Ok(Applied::Now)
}

type Put<'a> = (&'a Entity, &'a Provenance, &'a Provenance);

async fn put(txn: &mut Transaction<'_>, puts: Vec<Put<'_>>, keep: bool) -> Result<(), GraphError> {
    for label in Label::ALL {
        let of_label = puts.iter().filter(|(entity, ..)| entity.key().label == label);
        let rows_of: Vec<Value> = of_label
            .map(|(entity, made, changed)| {
                let made = provenance_properties("made", made);
                let props = to_properties(entity, changed);
                json!({"key": entity.key().to_string(), "made": made, "props": props})
            })
            .collect();
        if !rows_of.is_empty() {
            rows(txn, &text::put(label), json!({"rows": rows_of, "keep": keep})).await?;
        }
    }
    Ok(())
}

type NewLink<'a> = (&'a NodeKey, Relation, &'a NodeKey, &'a Provenance);

async fn link(
    txn: &mut Transaction<'_>,
    batch: &str,
    links: Vec<NewLink<'_>>,
) -> Result<(), GraphError> {
    let row = |(from, _, to, made): &NewLink<'_>| {
        let made = provenance_properties("made", made);
        json!({"from": from.to_string(), "to": to.to_string(), "made": made})
    };
    if links.is_empty() {
        return Ok(());
    }
    let all: Vec<Value> = links.iter().map(row).collect();
    let missing = rows(txn, text::MISSING, json!({"rows": all})).await?;
    if let Some(key) = missing.first().and_then(|row| row.get("missing")?.as_str()) {
        let node = key.parse().map_err(|error| corrupt("a node", error))?;
        return Err(GraphError::Missing { key: batch.to_owned(), node });
    }
    for relation in Relation::ALL {
        let of_relation = links.iter().filter(|(_, each, ..)| *each == relation);
        let rows_of: Vec<Value> = of_relation.map(row).collect();
        if !rows_of.is_empty() {
            rows(txn, &text::link(relation), json!({"rows": rows_of})).await?;
        }
    }
    Ok(())
}

fn page(limit: usize) -> usize {
    limit.clamp(1, PAGE)
}

impl Steps for Neo4jGraph {
    fn links<'a>(
        &'a self,
        of: &'a [NodeKey],
        way: Way,
        relations: &'a [Relation],
        each: usize,
    ) -> Reply<'a, Vec<Link>> {
        Box::pin(async move {
            let keys: Vec<String> = of.iter().map(NodeKey::to_string).collect();
            let names: Vec<&str> = relations.iter().map(|relation| relation.as_str()).collect();
            let text = match way {
                Way::Out => text::LINKS_OUT,
                Way::In => text::LINKS_IN,
            };
            let with = json!({"keys": keys, "relations": names, "each": page(each)});
            self.read(text, with).await?.iter().map(link_from).collect()
        })
    }

    fn nodes<'a>(&'a self, keys: &'a [NodeKey]) -> Reply<'a, Vec<Node>> {
        Box::pin(async move {
            let keys: Vec<String> = keys.iter().map(NodeKey::to_string).collect();
            self.nodes_by(text::NODES, json!({"keys": keys})).await
        })
    }
}

impl Graph for Neo4jGraph {
    fn apply<'a>(&'a self, batch: &'a Batch) -> Reply<'a, Applied> {
        Box::pin(self.write(batch))
    }

    fn node<'a>(&'a self, key: &'a NodeKey) -> Reply<'a, Option<Node>> {
        Box::pin(async move { Ok(self.nodes(std::slice::from_ref(key)).await?.pop()) })
    }

    fn newest(&self, label: Label, limit: usize) -> Reply<'_, Vec<Node>> {
        Box::pin(
            async move { self.nodes_by(&text::newest(label), json!({"limit": page(limit)})).await },
        )
    }

    fn pending_decisions(&self, limit: usize) -> Reply<'_, Vec<Node>> {
        Box::pin(self.nodes_by(text::PENDING, json!({"limit": page(limit)})))
    }

    fn tasks_of<'a>(&'a self, decision: &'a str, limit: usize) -> Reply<'a, Vec<Node>> {
        let key = NodeKey::decision(decision).to_string();
        Box::pin(self.nodes_by(text::TASKS, json!({"key": key, "limit": page(limit)})))
    }

    fn goals(&self, limit: usize, each: usize) -> Reply<'_, Vec<GoalView>> {
        Box::pin(async move {
            let with = json!({"limit": page(limit), "each": page(each)});
            let rows = self.read(text::GOALS, with).await?;
            let view = |mut row: Fields| {
                let goal = from_properties(row.remove("n"))?;
                let Some(Value::Array(decisions)) = row.remove("decisions") else {
                    return Err(corrupt("a goal", "it has no list of decisions"));
                };
                let decisions = decisions.into_iter().map(|d| from_properties(Some(d)));
                Ok(GoalView { goal, decisions: decisions.collect::<Result<_, _>>()? })
            };
            rows.into_iter().map(view).collect()
        })
    }

    fn insights<'a>(&'a self, topic: &'a str, limit: usize) -> Reply<'a, Vec<Node>> {
        Box::pin(async move {
            let words = words(topic);
            if words.is_empty() {
                return self.nodes_by(text::INSIGHTS, json!({"limit": page(limit)})).await;
            }
            // In quotes, so that no word is read as Lucene syntax.
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let with = json!({"words": words.join(" AND "), "limit": page(limit)});
            self.nodes_by(text::INSIGHTS_BY_WORDS, with).await
        })
    }

    fn around<'a>(&'a self, key: &'a NodeKey, reach: u8, limit: usize) -> Reply<'a, Picture> {
        Box::pin(walk::around(self, key, reach, limit))
    }

    fn evidence_of<'a>(&'a self, insight: &'a str, limit: usize) -> Reply<'a, Vec<Vec<NodeKey>>> {
        Box::pin(walk::evidence(self, insight, limit))
    }

    fn size(&self) -> Reply<'_, Size> {
        Box::pin(async move {
            let rows = self.read(text::SIZE, json!({})).await?;
            let count = |name: &str| {
                let found = rows.first().and_then(|row| row.get(name)?.as_u64());
                found.ok_or_else(|| corrupt("a count", name))
            };
            Ok(Size { nodes: count("nodes")?, links: count("links")? })
        })
    }

    fn page<'a>(&'a self, after: &'a Cursor, limit: usize) -> Reply<'a, Vec<Record>> {
        Box::pin(async move {
            let limit = page(limit);
            let after_node = match after {
                Cursor::Start => String::new(),
                Cursor::AfterNode(key) => key.to_string(),
                Cursor::Links | Cursor::AfterLink(..) => {
                    let (from, relation, to) = match after {
                        Cursor::AfterLink(from, relation, to) => {
                            (from.to_string(), *relation, to.to_string())
                        }
                        _ => Default::default(),
                    };
                    let with =
                        json!({"from": from, "relation": relation, "to": to, "limit": limit});
                    let rows = self.read(text::PAGE_OF_LINKS, with).await?;
                    return rows.iter().map(|row| link_from(row).map(Record::Link)).collect();
                }
            };
            let with = json!({"after": after_node, "limit": limit});
            let nodes = self.nodes_by(text::PAGE_OF_NODES, with).await?;
            Ok(nodes.into_iter().map(Record::Node).collect())
        })
    }

    fn restore<'a>(&'a self, records: &'a [Record]) -> Reply<'a, ()> {
        Box::pin(async move {
            self.prepare().await?;
            let work = async {
                let mut txn = self.driver.begin().await.map_err(trouble)?;
                let nodes = records.iter().filter_map(|record| match record {
                    Record::Node(node) => Some((&node.entity, &node.made, &node.changed)),
                    Record::Link(_) => None,
                });
                put(&mut txn, nodes.collect(), false).await?;
                let links = records.iter().filter_map(|record| match record {
                    Record::Link(link) => Some((&link.from, link.relation, &link.to, &link.made)),
                    Record::Node(_) => None,
                });
                link(&mut txn, "import", links.collect()).await?;
                txn.commit().await.map_err(trouble)
            };
            within(work).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_12_what_is_not_the_fault_of_a_query_may_pass() {
        let refused = |code: &str| BoltError::Refused { code: code.into(), message: "no".into() };
        for passes in [
            refused("Neo.TransientError.Transaction.DeadlockDetected"),
            refused("Neo.ClientError.Security.Unauthorized"),
            BoltError::Broken("reset".into()),
            BoltError::Late(PATIENCE),
            BoltError::Strange("HTTP"),
        ] {
            assert!(trouble(passes).may_pass());
        }
        for stays in [
            refused("Neo.ClientError.Statement.SyntaxError"),
            refused("Neo.ClientError.Schema.ConstraintValidationFailed"),
            BoltError::Malformed("a date"),
            BoltError::TooLong { what: "a request" },
        ] {
            assert!(!trouble(stays).may_pass());
        }
    }
}
