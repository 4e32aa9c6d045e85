//! How long the stages' questions take in a large graph, on SQLite and on a Neo4j that is started for
//! it: `cargo bench -p stafette-knowledge [-- NODES LINKS]`. Prints, and asserts nothing.

#![expect(clippy::print_stdout, reason = "it is a measurement, and this is its result")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use stafette_core::{Party, Priority, Time};
use stafette_knowledge::graph::{
    Batch, Decision, DecisionStatus, Entity, Goal, Graph, GraphError, InsightNode, Label, NodeKey,
    Provenance, Relation, Task, TaskStatus, Write,
};
use stafette_knowledge::{Base, Neo4jGraph, Neo4jSettings, SqliteGraph};
use stafette_testkit::neo4j::Neo4j;

/// How often each question is asked.
const ROUNDS: usize = 50;

/// Of a hundred nodes, so many are goals, decisions and insights; the rest are tasks.
fn label(number: usize) -> Label {
    match number % 100 {
        0 => Label::Goal,
        1..10 => Label::Decision,
        10..15 => Label::Insight,
        _ => Label::Task,
    }
}

fn key(number: usize) -> NodeKey {
    NodeKey::new(label(number), &format!("n{number:07}"))
}

fn entity(number: usize) -> Entity {
    let id = key(number).id;
    match label(number) {
        Label::Goal => Entity::Goal(Goal {
            id,
            title: "A goal".into(),
            horizon: "quarter".into(),
            target: "reached".into(),
        }),
        Label::Decision => Entity::Decision(Decision {
            id,
            option: "an option".into(),
            roi: number as f64,
            reasoning: "because".into(),
            serves_goal_type: None,
            status: match number % 50 {
                1 => DecisionStatus::Pending,
                _ => DecisionStatus::Done,
            },
            actual_return: None,
            breakdown: stafette_core::Fields::new(),
        }),
        Label::Insight => Entity::Insight(InsightNode {
            id,
            pattern: format!("work of kind k{} takes longer", number % 97),
            confidence: (number % 100) as f64 / 100.0,
            evidence: "many tasks".into(),
            topic: format!("estimates k{}", number % 97),
            finding: stafette_core::Fields::new(),
        }),
        _ => Entity::Task(Task {
            id,
            title: "A task".into(),
            effort_hours: 1.0,
            priority: Priority::Medium,
            status: TaskStatus::Open,
            kind: Some(format!("k{}", number % 97)),
            estimated_hours: None,
            actual_hours: None,
            event: None,
        }),
    }
}

/// Chance from a number, the same every time.
fn mixed(number: usize, salt: usize, limit: usize) -> usize {
    let mut z = (number * 31 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % limit
}

/// A link from one node to another that it may have, both from a number.
fn link(number: usize, nodes: usize) -> Write {
    let hundreds = nodes / 100;
    let some = |salt: usize, place: usize| mixed(number, salt, hundreds) * 100 + place;
    let from = some(1, 1 + mixed(number, 2, 99));
    let task = some(3, 15 + mixed(number, 4, 85));
    let (relation, to) = match label(from) {
        Label::Decision => (Relation::Serves, some(3, 0)),
        Label::Insight => (Relation::LearnedFrom, task),
        _ if number.is_multiple_of(3) => (Relation::DependsOn, task),
        _ => (Relation::PartOf, some(3, 1 + mixed(number, 5, 9))),
    };
    Write::Link { from: key(from), relation, to: key(to) }
}

async fn load(graph: &dyn Graph, nodes: usize, links: usize) -> Result<(), GraphError> {
    let puts = (0..nodes).map(|number| Write::Put(entity(number)));
    let links = (0..links).map(|number| link(number, nodes));
    let writes: Vec<Write> = puts.chain(links).collect();
    for (number, writes) in writes.chunks(1000).enumerate() {
        let at = Time(i64::try_from(number).unwrap_or(0));
        let provenance = Provenance { by: Party::Human, at, run: None, handoff: None };
        let key = format!("load-{number}");
        graph.apply(&Batch { key, provenance, writes: writes.to_vec() }).await?;
    }
    Ok(())
}

async fn measure<T>(name: &str, mut ask: impl AsyncFnMut(usize) -> Result<T, GraphError>) {
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        let before = Instant::now();
        match ask(round).await {
            Ok(_) => took.push(before.elapsed()),
            Err(error) => return println!("  {name:<28} failed: {error}"),
        }
    }
    took.sort_unstable();
    let at = |share: usize| took[(took.len() - 1) * share / 100];
    println!("  {name:<28} median {:>9.2?}   p95 {:>9.2?}", at(50), at(95));
}

async fn questions(graph: &dyn Graph, nodes: usize) {
    let hundred = |round: usize| round * 1777 % (nodes / 100) * 100;
    measure("pending decisions (100)", async |_| graph.pending_decisions(100).await).await;
    measure("newest tasks (1000)", async |_| graph.newest(Label::Task, 1000).await).await;
    measure("tasks of a decision", async |round| {
        graph.tasks_of(&key(hundred(round) + 1 + round % 9).id, 100).await
    })
    .await;
    measure("goals with decisions (20×5)", async |_| graph.goals(20, 5).await).await;
    measure("insights for a topic", async |round| {
        graph.insights(&format!("estimates k{}", round % 97), 20).await
    })
    .await;
    measure("neighbourhood, 1 step", async |round| {
        graph.around(&key(hundred(round) + 20), 1, 100).await
    })
    .await;
    measure("neighbourhood, 2 steps", async |round| {
        graph.around(&key(hundred(round) + 20), 2, 200).await
    })
    .await;
    measure("from insight to evidence", async |round| {
        graph.evidence_of(&key(hundred(round) + 10).id, 50).await
    })
    .await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Without this the program is only tried out, as a test.
    let measured = words.iter().any(|word| word == "--bench");
    let mut numbers = words.iter().filter_map(|word| word.parse::<usize>().ok());
    let nodes = numbers.next().unwrap_or(if measured { 100_000 } else { 500 }).max(100);
    let links = numbers.next().unwrap_or(if measured { 500_000 } else { 1_000 });
    let folder = tempfile::tempdir()?;
    let base = Base::open(&folder.path().join("knowledge.db"))?;
    let mut graphs: Vec<(&str, Arc<dyn Graph>)> =
        vec![("SQLite", Arc::new(SqliteGraph::new(base)))];
    let server = match measured {
        true => Some(Neo4j::start(&folder.path().join("neo4j"))?),
        false => None,
    };
    if let Some(server) = &server {
        let (user, password) = ("neo4j".to_owned(), String::new());
        let settings = Neo4jSettings { uri: server.uri(), user, password, database: None };
        graphs.push(("Neo4j", Arc::new(Neo4jGraph::new(&settings)?)));
    }
    for (name, graph) in graphs {
        let before = Instant::now();
        load(&*graph, nodes, links).await?;
        let took = before.elapsed();
        let size = graph.size().await?;
        let rate = (nodes + links) as f64 / took.max(Duration::from_millis(1)).as_secs_f64();
        println!("{name}: {} nodes, {} links, {rate:.0} writes/s", size.nodes, size.links);
        questions(&*graph, nodes).await;
    }
    Ok(())
}
