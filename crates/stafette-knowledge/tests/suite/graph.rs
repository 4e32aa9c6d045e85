//! The cases of all graphs, on each of them.

use std::sync::Arc;

use stafette_knowledge::graph::{Applied, Graph, Queued, Write};
use stafette_knowledge::{Base, OpenError, SqliteGraph};

use crate::cases::CASES;
use crate::story::{batch, sqlite, task};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_12_the_embedded_graph_does_what_all_graphs_do() {
    for (name, case) in CASES {
        eprintln!("{name}");
        let (graph, _, _folder) = sqlite();
        case(graph).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_12_a_queue_in_front_changes_nothing_while_the_graph_is_there() {
    for (name, case) in CASES {
        eprintln!("{name}");
        let (graph, base, _folder) = sqlite();
        let queued = Arc::new(Queued::new(graph, base));
        case(queued.clone()).await;
        let condition = queued.condition().await.expect("asked");
        assert_eq!((condition.code, condition.waiting), (None, 0));
    }
}

#[tokio::test]
async fn s1_12_what_was_written_is_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("knowledge.db");
    let write = batch("k", 1, vec![Write::Put(task("t1", 1.0))]);
    {
        let graph = SqliteGraph::new(Base::open(&path).expect("a file"));
        graph.apply(&write).await.expect("written");
    }
    let graph = SqliteGraph::new(Base::open(&path).expect("the file"));
    assert_eq!(graph.apply(&write).await.expect("again"), Applied::Before);
    assert_eq!(graph.size().await.expect("counted").nodes, 1);
}

#[test]
fn a_file_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.db");
    let other = rusqlite::Connection::open(&path).expect("a file");
    other.execute_batch("CREATE TABLE theirs (x)").expect("a table");
    drop(other);
    let before = std::fs::read(&path).expect("read");
    assert!(matches!(Base::open(&path), Err(OpenError::NotOurs { .. })));
    assert_eq!(std::fs::read(&path).expect("read"), before);
}
