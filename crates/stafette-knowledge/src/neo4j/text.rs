//! The queries, made of constants alone.

use crate::graph::{Label, Relation};

/// The constraints that keep nodes apart and the indexes for the stages' queries.
pub(super) const SCHEMA: &[&str] = &[
    "CREATE CONSTRAINT stafette_key IF NOT EXISTS FOR (n:Stafette) REQUIRE n.key IS UNIQUE",
    "CREATE CONSTRAINT stafette_batch IF NOT EXISTS FOR (b:StafetteBatch) REQUIRE b.key IS UNIQUE",
    "CREATE INDEX stafette_decision IF NOT EXISTS FOR (n:Decision) ON (n.status)",
    "CREATE INDEX stafette_decision_id IF NOT EXISTS FOR (n:Decision) ON (n.id)",
    "CREATE INDEX stafette_task_id IF NOT EXISTS FOR (n:Task) ON (n.id)",
    "CREATE INDEX stafette_task_age IF NOT EXISTS FOR (n:Task) ON (n.made_at, n.id)",
    "CREATE INDEX stafette_decision_age IF NOT EXISTS FOR (n:Decision) ON (n.made_at, n.id)",
    "CREATE INDEX stafette_goal_id IF NOT EXISTS FOR (n:Goal) ON (n.id)",
    "CREATE INDEX stafette_discussion_id IF NOT EXISTS FOR (n:Discussion) ON (n.id)",
    "CREATE INDEX stafette_insight IF NOT EXISTS FOR (n:Insight) ON (n.confidence)",
    "CREATE FULLTEXT INDEX stafette_words IF NOT EXISTS FOR (n:Insight) ON EACH [n.words] \
     OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}}",
    "CALL db.awaitIndexes(25)",
];

/// Claims a batch's key, or returns the batch that has it.
pub(super) const CLAIM: &str = "MERGE (b:StafetteBatch {key: $key}) \
    ON CREATE SET b.digest = $digest, b.token = $token \
    RETURN b.digest AS digest, b.token AS token";

/// Writes nodes of one label. The first author stays, unless the caller says otherwise.
pub(super) fn put(label: Label) -> String {
    format!(
        "UNWIND $rows AS row MERGE (n:Stafette {{key: row.key}}) ON CREATE SET n += row.made \
         WITH n, row, n {{.made_by, .made_at, .made_run, .made_handoff}} AS made \
         SET n = row.props SET n += CASE WHEN $keep THEN made ELSE row.made END \
         SET n:{}",
        label.as_str()
    )
}

/// Returns the first end of a link that does not exist.
pub(super) const MISSING: &str = "UNWIND range(0, size($rows) - 1) AS i WITH i, $rows[i] AS row \
    OPTIONAL MATCH (a:Stafette {key: row.from}) OPTIONAL MATCH (b:Stafette {key: row.to}) \
    WITH i, row, a, b WHERE a IS NULL OR b IS NULL \
    RETURN CASE WHEN a IS NULL THEN row.from ELSE row.to END AS missing ORDER BY i LIMIT 1";

/// Writes links of one relation.
pub(super) fn link(relation: Relation) -> String {
    format!(
        "UNWIND $rows AS row MATCH (a:Stafette {{key: row.from}}) \
         MATCH (b:Stafette {{key: row.to}}) \
         MERGE (a)-[r:{}]->(b) ON CREATE SET r += row.made",
        relation.as_str()
    )
}

pub(super) const NODES: &str = "UNWIND $keys AS key MATCH (n:Stafette {key: key}) \
    RETURN properties(n) AS n ORDER BY key";

pub(super) const LINKS_OUT: &str = "UNWIND $keys AS key CALL { WITH key \
    MATCH (a:Stafette {key: key})-[r]->(b:Stafette) WHERE type(r) IN $relations \
    RETURN a.key AS from, type(r) AS relation, b.key AS to, properties(r) AS made \
    ORDER BY relation, to LIMIT $each } RETURN from, relation, to, made";

pub(super) const LINKS_IN: &str = "UNWIND $keys AS key CALL { WITH key \
    MATCH (a:Stafette)-[r]->(b:Stafette {key: key}) WHERE type(r) IN $relations \
    RETURN a.key AS from, type(r) AS relation, b.key AS to, properties(r) AS made \
    ORDER BY relation, from LIMIT $each } RETURN from, relation, to, made";

/// Returns the newest nodes of one label. The filter lets Neo4j read the index from its end.
pub(super) fn newest(label: Label) -> String {
    format!(
        "MATCH (n:{}) WHERE n.made_at IS NOT NULL AND n.id IS NOT NULL AND n:Stafette \
         WITH n ORDER BY n.made_at DESC, n.id DESC LIMIT $limit \
         RETURN properties(n) AS n ORDER BY n.made_at DESC, n.id DESC",
        label.as_str()
    )
}

pub(super) const PENDING: &str = "MATCH (n:Decision:Stafette) WHERE n.status = 'pending' \
    RETURN properties(n) AS n ORDER BY n.made_at, n.id LIMIT $limit";

pub(super) const TASKS: &str = "MATCH (:Stafette {key: $key})<-[:PART_OF]-(n:Task:Stafette) \
    RETURN properties(n) AS n ORDER BY n.made_at, n.id LIMIT $limit";

pub(super) const GOALS: &str = "MATCH (g:Goal:Stafette) WITH g ORDER BY g.id LIMIT $limit \
    CALL { WITH g OPTIONAL MATCH (g)<-[:SERVES]-(d:Decision:Stafette) \
    WITH d ORDER BY d.made_at DESC, d.id LIMIT $each \
    RETURN collect(properties(d)) AS decisions } \
    RETURN properties(g) AS n, decisions ORDER BY g.id";

pub(super) const INSIGHTS: &str = "MATCH (n:Insight:Stafette) \
    RETURN properties(n) AS n ORDER BY n.confidence DESC, n.id LIMIT $limit";

pub(super) const INSIGHTS_BY_WORDS: &str = "CALL db.index.fulltext.queryNodes('stafette_words', $words) YIELD node AS n \
    WITH n WHERE n:Stafette \
    RETURN properties(n) AS n ORDER BY n.confidence DESC, n.id LIMIT $limit";

pub(super) const SIZE: &str = "MATCH (n:Stafette) WITH count(n) AS nodes \
    OPTIONAL MATCH (:Stafette)-[r]->(:Stafette) RETURN nodes, count(r) AS links";

pub(super) const PAGE_OF_NODES: &str = "MATCH (n:Stafette) WHERE n.key > $after \
    RETURN properties(n) AS n ORDER BY n.key LIMIT $limit";

pub(super) const PAGE_OF_LINKS: &str = "MATCH (a:Stafette) WHERE a.key >= $from \
    MATCH (a)-[r]->(b:Stafette) WHERE a.key > $from OR (a.key = $from AND (type(r) > $relation \
    OR (type(r) = $relation AND b.key > $to))) \
    RETURN a.key AS from, type(r) AS relation, b.key AS to, properties(r) AS made \
    ORDER BY a.key, relation, to LIMIT $limit";

pub(super) const ERASE: &str = "MATCH (n) WHERE n:Stafette OR n:StafetteBatch DETACH DELETE n";
