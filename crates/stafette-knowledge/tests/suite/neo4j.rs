//! A real Neo4j: the same cases, an export in both directions, and an outage in the middle.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stafette_knowledge::graph::{
    Applied, DecisionStatus, Graph, NodeKey, Queued, Relation, Size, Write,
};
use stafette_knowledge::{Base, Neo4jGraph, Neo4jSettings};
use stafette_testkit::neo4j::Neo4j;

use crate::cases::CASES;
use crate::story::{batch, decision, link, records, sqlite, task, told};

/// The server that the environment names, or one of our own.
fn server(folder: &Path) -> (Option<Neo4j>, Neo4jSettings) {
    let given = |name: &str| std::env::var(format!("STAFETTE_TEST_NEO4J_{name}")).ok();
    let settings = |uri| Neo4jSettings {
        uri,
        user: given("USER").unwrap_or_else(|| "neo4j".into()),
        password: given("PASSWORD").unwrap_or_default(),
        database: None,
    };
    match given("URI") {
        Some(uri) => (None, settings(uri)),
        None => {
            let server = Neo4j::start(folder).expect("Neo4j starts");
            let uri = server.uri();
            (Some(server), settings(uri))
        }
    }
}

/// Removes what the cases wrote, and nothing else.
async fn wipe(settings: &Neo4jSettings) {
    Neo4jGraph::new(settings).expect("a graph").erase().await.expect("wiped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_12_neo4j_does_what_all_graphs_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, settings) = server(folder.path());
    for (name, case) in CASES {
        eprintln!("{name}");
        wipe(&settings).await;
        case(Arc::new(Neo4jGraph::new(&settings).expect("a graph"))).await;
    }

    // Out of the embedded graph, into Neo4j, and back: record by record the same.
    wipe(&settings).await;
    let (one, _, _folder) = sqlite();
    told(&*one).await;
    let first = records(&*one).await;
    let neo = Neo4jGraph::new(&settings).expect("a graph");
    neo.restore(&first).await.expect("read");
    let second = records(&neo).await;
    assert_eq!(first, second);
    let (other, _, _folder) = sqlite();
    other.restore(&second).await.expect("read");
    assert_eq!(first, records(&*other).await);
    wipe(&settings).await;
}

/// Waits until nothing waits: a busy machine lets a fresh server answer late.
async fn settled(graph: &Queued) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while graph.condition().await.expect("asked").waiting > 0 {
        graph.drain().await.expect("drains");
        assert!(Instant::now() < deadline, "it does not drain: {:?}", graph.condition().await);
    }
}

/// Each task depends on the one before: written out of order, its link would lead nowhere.
fn step(number: u32) -> stafette_knowledge::graph::Batch {
    let key = |number: u32| NodeKey::task(&format!("t{number}"));
    let mut writes = vec![
        Write::Put(task(&key(number).id, f64::from(number))),
        Write::Put(task("latest", f64::from(number))),
        link(key(number), Relation::PartOf, NodeKey::decision("d")),
    ];
    if number > 0 {
        writes.push(link(key(number), Relation::DependsOn, key(number - 1)));
    }
    batch(&format!("step-{number}"), 10 + i64::from(number), writes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_12_neo4j_killed_during_writes_and_brought_back_has_everything_once_and_in_order() {
    const STEPS: u32 = 80;
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Neo4j::start(&folder.path().join("neo4j")).expect("Neo4j starts");
    let settings = Neo4jSettings {
        uri: server.uri(),
        user: "neo4j".into(),
        password: String::new(),
        database: None,
    };
    let open = || {
        let base = Base::open(&folder.path().join("knowledge.db")).expect("a file");
        let neo = Arc::new(Neo4jGraph::new(&settings).expect("a graph"));
        Arc::new(Queued::new(neo, base))
    };
    let graph = open();
    let root = batch("root", 1, vec![Write::Put(decision("d", DecisionStatus::Pending))]);
    graph.apply(&root).await.expect("taken");
    settled(&graph).await;

    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (kill, killed) = tokio::sync::oneshot::channel();
    let writer = tokio::spawn({
        let graph = graph.clone();
        async move {
            let (mut queued, mut killed) = (0, Some(killed));
            for number in 0..STEPS {
                // However quick it is, the last ones come after the blow.
                if number == STEPS - 10
                    && let Some(killed) = killed.take()
                {
                    killed.await.expect("it is killed");
                }
                let answer = graph.apply(&step(number)).await.expect("taken");
                queued += u32::from(answer == Applied::Queued);
                let _ = tell.send(number);
            }
            queued
        }
    });
    while told.recv().await.expect("it writes") < 20 {}
    // The writer goes on while the server dies.
    server.kill();
    kill.send(()).expect("it waits for that");
    let queued = writer.await.expect("it wrote");
    assert!(queued > 0, "the server was killed before the end");
    let condition = graph.condition().await.expect("asked");
    assert_eq!(condition.code.as_deref(), Some("MCP_CONNECTION_FAILED"));
    assert_eq!(condition.waiting, u64::from(queued));
    let read = graph.pending_decisions(1).await.expect_err("nobody answers");
    assert_eq!(read.code(), "MCP_CONNECTION_FAILED");

    // Stafette starts again in the meantime: what waits is in the file, and a repetition of what
    // was acknowledged before does nothing.
    drop(graph);
    let graph = open();
    assert_eq!(graph.apply(&step(STEPS - 1)).await.expect("taken"), Applied::Queued);
    assert_eq!(graph.drain().await.expect("nobody there yet"), 0);
    server.start_again().expect("Neo4j starts again");
    settled(&graph).await;
    let condition = graph.condition().await.expect("asked");
    assert_eq!((condition.code, condition.set_aside), (None, 0), "none was refused");
    let expected =
        Size { nodes: u64::from(STEPS) + 2, links: u64::from(STEPS) + u64::from(STEPS - 1) };
    assert_eq!(graph.size().await.expect("counted"), expected, "nothing lost, nothing doubled");
    let latest = graph.node(&NodeKey::task("latest")).await.expect("asked").expect("there");
    assert_eq!(latest.entity, task("latest", f64::from(STEPS - 1)), "the last one came last");
    assert_eq!(graph.apply(&step(3)).await.expect("again"), Applied::Before);
}
