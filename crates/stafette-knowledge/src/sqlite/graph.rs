//! The graph in SQLite.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Base, quoted};
use crate::graph::walk::{self, Steps, Way};
use crate::graph::{
    Applied, Batch, Cursor, Entity, GoalView, Graph, GraphError, Label, Link, Node, NodeKey, PAGE,
    Picture, Provenance, Record, Relation, Reply, Size, Write, corrupt, words,
};

/// The graph in a SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteGraph {
    base: Base,
}

impl SqliteGraph {
    /// Opens the graph in this file.
    #[must_use]
    pub fn new(base: Base) -> Self {
        SqliteGraph { base }
    }
}

type GraphResult<T> = Result<T, GraphError>;

/// The columns of a node, in the order in which [`node`] reads them.
const NODE: &str = "entity, made, changed";

fn page(limit: usize) -> i64 {
    i64::try_from(limit.clamp(1, PAGE)).unwrap_or(1)
}

fn json<T: Serialize>(value: &T) -> GraphResult<String> {
    serde_json::to_string(value).map_err(|error| corrupt("what is to be written", error))
}

fn parse<T: DeserializeOwned>(what: &str, text: &str) -> GraphResult<T> {
    serde_json::from_str(text).map_err(|error| corrupt(what, error))
}

type NodeTexts = (String, String, String);

fn texts(row: &Row) -> rusqlite::Result<NodeTexts> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn node((entity, made, changed): NodeTexts) -> GraphResult<Node> {
    let entity: Entity = parse("a node", &entity)?;
    Ok(Node { entity, made: parse("a node", &made)?, changed: parse("a node", &changed)? })
}

fn nodes(mut query: CachedStatement, with: impl Params) -> GraphResult<Vec<Node>> {
    let rows = query.query_map(with, texts)?;
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    rows.into_iter().map(node).collect()
}

fn number(conn: &Connection, key: &NodeKey) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT n FROM nodes WHERE label = ?1 AND id = ?2")?
        .query_row(params![key.label.as_str(), key.id], |row| row.get(0))
        .optional()
}

/// Writes a node. The first author stays if `keep_made` is set.
fn put(
    tx: &Transaction,
    entity: &Entity,
    made: &Provenance,
    changed: &Provenance,
    keep_made: bool,
) -> GraphResult<()> {
    let key = entity.key();
    let (status, sure) = match entity {
        Entity::Decision(decision) => (Some(serde_json::to_value(decision.status)), None),
        Entity::Insight(insight) => (None, Some(insight.confidence)),
        _ => (None, None),
    };
    let status = status.and_then(Result::ok).and_then(|status| status.as_str().map(str::to_owned));
    let n: i64 = tx
        .prepare_cached(
            "INSERT INTO nodes (label, id, status, sure, made_at, entity, made, changed) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (label, id) DO UPDATE SET \
             status = ?3, sure = ?4, entity = ?6, changed = ?8, \
             made_at = iif(?9, made_at, ?5), made = iif(?9, made, ?7) RETURNING n",
        )?
        .query_row(
            params![
                key.label.as_str(),
                key.id,
                status,
                sure,
                made.at.0,
                json(entity)?,
                json(made)?,
                json(changed)?,
                keep_made
            ],
            |row| row.get(0),
        )?;
    if let Some(words) = entity.searched() {
        tx.prepare_cached("INSERT OR REPLACE INTO insight_words (rowid, words) VALUES (?1, ?2)")?
            .execute(params![n, words])?;
    }
    Ok(())
}

fn link(
    tx: &Transaction,
    batch: &str,
    (from, relation, to): (&NodeKey, Relation, &NodeKey),
    made: &Provenance,
) -> GraphResult<()> {
    let missing =
        |node: &NodeKey| GraphError::Missing { key: batch.to_owned(), node: node.clone() };
    let src = number(tx, from)?.ok_or_else(|| missing(from))?;
    let dst = number(tx, to)?.ok_or_else(|| missing(to))?;
    tx.prepare_cached(
        "INSERT INTO links (src, relation, dst, made) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT DO NOTHING",
    )?
    .execute(params![src, relation.as_str(), dst, json(made)?])?;
    Ok(())
}

fn apply(tx: &Transaction, batch: &Batch) -> GraphResult<Applied> {
    let digest = batch.digest();
    let before: Option<String> = tx
        .prepare_cached("SELECT digest FROM batches WHERE key = ?1")?
        .query_row([&batch.key], |row| row.get(0))
        .optional()?;
    match before {
        Some(before) if before == digest => return Ok(Applied::Before),
        Some(_) => return Err(GraphError::KeyReused { key: batch.key.clone() }),
        None => {}
    }
    tx.prepare_cached("INSERT INTO batches (key, digest) VALUES (?1, ?2)")?
        .execute(params![batch.key, digest])?;
    let by = &batch.provenance;
    for write in &batch.writes {
        if let Write::Put(entity) = write {
            put(tx, entity, by, by, true)?;
        }
    }
    for write in &batch.writes {
        if let Write::Link { from, relation, to } = write {
            link(tx, &batch.key, (from, *relation, to), by)?;
        }
    }
    Ok(Applied::Now)
}

/// Reads a link from a row: both ends, the relation and its origin.
fn read_link(row: &Row) -> rusqlite::Result<[String; 6]> {
    Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?])
}

fn whole_link([from, from_id, relation, to, to_id, made]: [String; 6]) -> GraphResult<Link> {
    let key = |label: &str, id: &str| {
        let label = Label::named(label).ok_or_else(|| corrupt("a node", label));
        label.map(|label| NodeKey::new(label, id))
    };
    Ok(Link {
        from: key(&from, &from_id)?,
        relation: Relation::named(&relation).ok_or_else(|| corrupt("a link", &relation))?,
        to: key(&to, &to_id)?,
        made: parse("a link", &made)?,
    })
}

const LINK: &str = "a.label, a.id, l.relation, b.label, b.id, l.made";

fn links_of(
    conn: &Connection,
    key: &NodeKey,
    way: Way,
    relations: &[Relation],
    each: usize,
) -> GraphResult<Vec<Link>> {
    let Some(n) = number(conn, key)? else { return Ok(Vec::new()) };
    let (near, far) = match way {
        Way::Out => ("l.src", "b"),
        Way::In => ("l.dst", "a"),
    };
    let mut query = conn.prepare_cached(&format!(
        "SELECT {LINK} FROM links l JOIN nodes a ON a.n = l.src JOIN nodes b ON b.n = l.dst \
         WHERE {near} = ?1 AND l.relation = ?2 ORDER BY {far}.label, {far}.id LIMIT ?3"
    ))?;
    let mut names: Vec<&str> = relations.iter().map(|relation| relation.as_str()).collect();
    names.sort_unstable();
    let mut found = Vec::new();
    for name in names {
        let left = each.saturating_sub(found.len());
        if left == 0 {
            break;
        }
        let rows = query.query_map(params![n, name, page(left)], read_link)?;
        for row in rows {
            found.push(whole_link(row?)?);
        }
    }
    Ok(found)
}

fn records(conn: &Connection, after: &Cursor, limit: usize) -> GraphResult<Vec<Record>> {
    let nothing = || ("", "");
    match after {
        Cursor::Start | Cursor::AfterNode(_) => {
            let (label, id) = match after {
                Cursor::AfterNode(key) => (key.label.as_str(), key.id.as_str()),
                _ => nothing(),
            };
            let query = conn.prepare_cached(&format!(
                "SELECT {NODE} FROM nodes WHERE (label, id) > (?1, ?2) ORDER BY label, id LIMIT ?3"
            ))?;
            let found = nodes(query, params![label, id, page(limit)])?;
            Ok(found.into_iter().map(Record::Node).collect())
        }
        Cursor::Links | Cursor::AfterLink(..) => {
            let ((label, id), relation, (to, to_id)) = match after {
                Cursor::AfterLink(from, relation, to) => (
                    (from.label.as_str(), from.id.as_str()),
                    *relation,
                    (to.label.as_str(), to.id.as_str()),
                ),
                _ => (nothing(), "", nothing()),
            };
            // Nodes in index order, so that only the links of one node have to be sorted.
            let mut query = conn.prepare_cached(&format!(
                "SELECT {LINK} FROM nodes a CROSS JOIN links l ON l.src = a.n \
                 CROSS JOIN nodes b ON b.n = l.dst \
                 WHERE (a.label, a.id) >= (?1, ?2) \
                 AND (a.label, a.id, l.relation, b.label, b.id) > (?1, ?2, ?3, ?4, ?5) \
                 ORDER BY a.label, a.id, l.relation, b.label, b.id LIMIT ?6"
            ))?;
            let rows =
                query.query_map(params![label, id, relation, to, to_id, page(limit)], read_link)?;
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            rows.into_iter().map(|row| whole_link(row).map(Record::Link)).collect()
        }
    }
}

impl Steps for SqliteGraph {
    fn links<'a>(
        &'a self,
        of: &'a [NodeKey],
        way: Way,
        relations: &'a [Relation],
        each: usize,
    ) -> Reply<'a, Vec<Link>> {
        let (of, relations) = (of.to_vec(), relations.to_vec());
        Box::pin(self.base.read(move |conn| {
            let mut found = Vec::new();
            for key in &of {
                found.extend(links_of(conn, key, way, &relations, each)?);
            }
            Ok(found)
        }))
    }

    fn nodes<'a>(&'a self, keys: &'a [NodeKey]) -> Reply<'a, Vec<Node>> {
        let keys = keys.to_vec();
        Box::pin(self.base.read(move |conn| {
            let mut found = Vec::new();
            for key in &keys {
                let text = format!("SELECT {NODE} FROM nodes WHERE label = ?1 AND id = ?2");
                let mut query = conn.prepare_cached(&text)?;
                let row = query.query_row(params![key.label.as_str(), key.id], texts).optional()?;
                found.extend(row.map(node).transpose()?);
            }
            Ok(found)
        }))
    }
}

impl Graph for SqliteGraph {
    fn apply<'a>(&'a self, batch: &'a Batch) -> Reply<'a, Applied> {
        Box::pin(async move {
            batch.check()?;
            let batch = batch.clone();
            self.base.write(move |tx| apply(tx, &batch)).await
        })
    }

    fn node<'a>(&'a self, key: &'a NodeKey) -> Reply<'a, Option<Node>> {
        Box::pin(async move { Ok(self.nodes(std::slice::from_ref(key)).await?.pop()) })
    }

    fn newest(&self, label: Label, limit: usize) -> Reply<'_, Vec<Node>> {
        Box::pin(self.base.read(move |conn| {
            let query = conn.prepare_cached(&format!(
                "SELECT {NODE} FROM nodes INDEXED BY nodes_by_age WHERE label = ?1 \
                 ORDER BY made_at DESC, id DESC LIMIT ?2"
            ))?;
            nodes(query, params![label.as_str(), page(limit)])
        }))
    }

    fn pending_decisions(&self, limit: usize) -> Reply<'_, Vec<Node>> {
        Box::pin(self.base.read(move |conn| {
            let query = conn.prepare_cached(&format!(
                "SELECT {NODE} FROM nodes INDEXED BY decisions_pending \
                 WHERE label = 'Decision' AND status = 'pending' \
                 ORDER BY made_at, id LIMIT ?1"
            ))?;
            nodes(query, [page(limit)])
        }))
    }

    fn tasks_of<'a>(&'a self, decision: &'a str, limit: usize) -> Reply<'a, Vec<Node>> {
        let decision = decision.to_owned();
        Box::pin(self.base.read(move |conn| {
            let query = conn.prepare_cached(
                "SELECT t.entity, t.made, t.changed FROM nodes d \
                 JOIN links l ON l.dst = d.n AND l.relation = 'PART_OF' \
                 JOIN nodes t ON t.n = l.src WHERE d.label = 'Decision' AND d.id = ?1 \
                 ORDER BY t.made_at, t.id LIMIT ?2",
            )?;
            nodes(query, params![decision, page(limit)])
        }))
    }

    fn goals(&self, limit: usize, each: usize) -> Reply<'_, Vec<GoalView>> {
        Box::pin(self.base.read(move |conn| {
            let query = conn.prepare_cached(&format!(
                "SELECT {NODE} FROM nodes WHERE label = 'Goal' ORDER BY id LIMIT ?1"
            ))?;
            let mut views = Vec::new();
            for goal in nodes(query, [page(limit)])? {
                let query = conn.prepare_cached(
                    "SELECT d.entity, d.made, d.changed FROM nodes g \
                     JOIN links l ON l.dst = g.n AND l.relation = 'SERVES' \
                     JOIN nodes d ON d.n = l.src AND d.label = 'Decision' \
                     WHERE g.label = 'Goal' AND g.id = ?1 \
                     ORDER BY d.made_at DESC, d.id LIMIT ?2",
                )?;
                let decisions = nodes(query, params![goal.key().id, page(each)])?;
                views.push(GoalView { goal, decisions });
            }
            Ok(views)
        }))
    }

    fn insights<'a>(&'a self, topic: &'a str, limit: usize) -> Reply<'a, Vec<Node>> {
        let words = words(topic);
        Box::pin(self.base.read(move |conn| {
            if words.is_empty() {
                let query = conn.prepare_cached(&format!(
                    "SELECT {NODE} FROM nodes INDEXED BY insights_by_certainty \
                     WHERE label = 'Insight' \
                     ORDER BY sure DESC, id LIMIT ?1"
                ))?;
                return nodes(query, [page(limit)]);
            }
            let query = conn.prepare_cached(&format!(
                "SELECT {NODE} FROM insight_words JOIN nodes ON n = insight_words.rowid \
                 WHERE insight_words MATCH ?1 ORDER BY sure DESC, id LIMIT ?2"
            ))?;
            nodes(query, params![quoted(&words, false), page(limit)])
        }))
    }

    fn around<'a>(&'a self, key: &'a NodeKey, reach: u8, limit: usize) -> Reply<'a, Picture> {
        Box::pin(walk::around(self, key, reach, limit))
    }

    fn evidence_of<'a>(&'a self, insight: &'a str, limit: usize) -> Reply<'a, Vec<Vec<NodeKey>>> {
        Box::pin(walk::evidence(self, insight, limit))
    }

    fn size(&self) -> Reply<'_, Size> {
        Box::pin(self.base.read(|conn| {
            let text = "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM links)";
            let row = |row: &Row| Ok(Size { nodes: row.get(0)?, links: row.get(1)? });
            Ok(conn.query_row(text, [], row)?)
        }))
    }

    fn page<'a>(&'a self, after: &'a Cursor, limit: usize) -> Reply<'a, Vec<Record>> {
        let after = after.clone();
        Box::pin(self.base.read(move |conn| records(conn, &after, limit)))
    }

    fn restore<'a>(&'a self, records: &'a [Record]) -> Reply<'a, ()> {
        let records = records.to_vec();
        Box::pin(self.base.write(move |tx| {
            for record in &records {
                match record {
                    Record::Node(node) => put(tx, &node.entity, &node.made, &node.changed, false)?,
                    Record::Link(Link { from, relation, to, made }) => {
                        link(tx, "import", (from, *relation, to), made)?;
                    }
                }
            }
            Ok(())
        }))
    }
}
