//! What every graph does the same, one case a promise. Each case begins with an empty graph.

use std::pin::Pin;
use std::sync::Arc;

use stafette_core::{HandoffId, Party, Time};
use stafette_knowledge::graph::{
    Applied, DecisionStatus, Entity, Graph, GraphError, Label, NodeKey, PAGE, Relation, Size, Write,
};

use crate::story::*;

/// A case, by name.
pub(crate) type Case =
    (&'static str, fn(Arc<dyn Graph>) -> Pin<Box<dyn Future<Output = ()> + Send>>);

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[Case] =
            &[$((stringify!($name), |graph| Box::pin(async move { $name(&*graph).await }))),*];
    };
}

cases![
    nodes_come_back_as_they_were_written,
    a_batch_is_written_once_under_its_key,
    a_key_is_not_used_twice_for_different_things,
    a_batch_with_a_loose_end_writes_nothing,
    what_cannot_be_meant_is_refused_before_it_is_written,
    a_node_keeps_who_made_it_and_shows_who_changed_it,
    a_link_is_there_once_and_keeps_who_made_it,
    the_newest_of_a_label_come_first,
    pending_decisions_come_oldest_first,
    the_tasks_of_a_decision_are_found,
    goals_show_the_decisions_that_serve_them,
    insights_are_found_by_their_words,
    the_neighbourhood_grows_with_its_reach,
    ways_lead_from_an_insight_to_its_evidence,
    writers_at_the_same_time_lose_nothing,
    hostile_text_is_text,
];

async fn only(graph: &dyn Graph, key: &str, at: i64, entity: Entity) {
    let batch = batch(key, at, vec![Write::Put(entity)]);
    assert_eq!(graph.apply(&batch).await.expect("written"), Applied::Now);
}

fn ids(nodes: &[stafette_knowledge::graph::Node]) -> Vec<String> {
    nodes.iter().map(|node| node.key().id).collect()
}

async fn nodes_come_back_as_they_were_written(graph: &dyn Graph) {
    told(graph).await;
    for entity in [
        goal("g1"),
        discussion("talk1"),
        decision("d1", DecisionStatus::Planned),
        task("t1", 2.0),
        insight("i1", "estimates of code", 0.9),
        handoff(3),
    ] {
        let found = graph.node(&entity.key()).await.expect("asked").expect("there");
        assert_eq!(found.entity, entity);
        assert_eq!(found.made, by("decisions", 1000));
        assert_eq!(found.changed, found.made);
    }
    assert_eq!(graph.node(&NodeKey::task("none")).await.expect("asked"), None);
    assert_eq!(graph.size().await.expect("counted"), Size { nodes: 7, links: 7 });
}

async fn a_batch_is_written_once_under_its_key(graph: &dyn Graph) {
    let first = batch("k1", 1, vec![Write::Put(task("t1", 1.0))]);
    assert_eq!(graph.apply(&first).await.expect("written"), Applied::Now);
    only(graph, "k2", 2, task("t1", 5.0)).await;
    assert_eq!(graph.apply(&first).await.expect("again"), Applied::Before);
    let found = graph.node(&NodeKey::task("t1")).await.expect("asked").expect("there");
    assert_eq!(found.entity, task("t1", 5.0), "the repetition changed nothing");
}

async fn a_key_is_not_used_twice_for_different_things(graph: &dyn Graph) {
    only(graph, "k", 1, task("t1", 1.0)).await;
    let other = batch("k", 1, vec![Write::Put(task("t2", 1.0))]);
    let refused = graph.apply(&other).await.expect_err("another content");
    assert!(matches!(refused, GraphError::KeyReused { .. }), "{refused}");
    assert_eq!(graph.node(&NodeKey::task("t2")).await.expect("asked"), None);
}

async fn a_batch_with_a_loose_end_writes_nothing(graph: &dyn Graph) {
    let loose = batch(
        "k",
        1,
        vec![
            link(NodeKey::task("t1"), Relation::PartOf, NodeKey::decision("gone")),
            Write::Put(task("t1", 1.0)),
        ],
    );
    match graph.apply(&loose).await.expect_err("nothing to link to") {
        GraphError::Missing { key, node } => {
            assert_eq!((key.as_str(), node), ("k", NodeKey::decision("gone")));
        }
        other => panic!("{other}"),
    }
    assert_eq!(graph.size().await.expect("counted"), Size::default());
    // Its key is free: with what was missing, the same batch can be written.
    only(graph, "k0", 1, decision("gone", DecisionStatus::Pending)).await;
    assert_eq!(graph.apply(&loose).await.expect("now it fits"), Applied::Now);
}

async fn what_cannot_be_meant_is_refused_before_it_is_written(graph: &dyn Graph) {
    let wrong = [
        vec![Write::Put(task("", 1.0))],
        vec![Write::Put(task("t", f64::NAN))],
        vec![Write::Put(insight("i", "x", 1.5))],
        vec![link(NodeKey::task("t"), Relation::DecidedIn, NodeKey::goal("g"))],
        vec![Write::Put(task(&"x".repeat(300), 1.0))],
    ];
    for (number, writes) in wrong.into_iter().enumerate() {
        let refused = graph.apply(&batch(&format!("k{number}"), 1, writes)).await;
        assert!(matches!(refused, Err(GraphError::Malformed { .. })), "{number}: {refused:?}");
    }
}

async fn a_node_keeps_who_made_it_and_shows_who_changed_it(graph: &dyn Graph) {
    only(graph, "k1", 10, decision("d1", DecisionStatus::Pending)).await;
    let mut second = batch("k2", 20, vec![Write::Put(decision("d1", DecisionStatus::Done))]);
    second.provenance.by = Party::from("execute");
    second.provenance.handoff = None;
    graph.apply(&second).await.expect("written");
    let found = graph.node(&NodeKey::decision("d1")).await.expect("asked").expect("there");
    assert_eq!(found.made, by("decisions", 10));
    assert_eq!(found.changed, second.provenance);
    assert_eq!(found.entity, decision("d1", DecisionStatus::Done));
}

async fn a_link_is_there_once_and_keeps_who_made_it(graph: &dyn Graph) {
    told(graph).await;
    let again = link(NodeKey::task("t1"), Relation::PartOf, NodeKey::decision("d1"));
    graph.apply(&batch("again", 2000, vec![again])).await.expect("written");
    assert_eq!(graph.size().await.expect("counted").links, 7);
    let picture = graph.around(&NodeKey::task("t1"), 1, 10).await.expect("asked");
    let part = picture.links.iter().find(|link| link.relation == Relation::PartOf);
    assert_eq!(part.expect("there").made.at, Time(1000));
}

async fn the_newest_of_a_label_come_first(graph: &dyn Graph) {
    for (id, at) in [("a", 30), ("c", 10), ("b", 30), ("d", 20)] {
        only(graph, id, at, task(id, 1.0)).await;
    }
    only(graph, "other", 99, decision("z", DecisionStatus::Pending)).await;
    only(graph, "again", 99, task("c", 2.0)).await;
    let found = async |limit| ids(&graph.newest(Label::Task, limit).await.expect("asked"));
    assert_eq!(found(10).await, ["b", "a", "d", "c"], "by when they were made, not changed");
    assert_eq!(found(2).await, ["b", "a"]);
    let none = graph.newest(Label::Insight, 10).await.expect("asked");
    assert_eq!(ids(&none), [""; 0]);
}

async fn pending_decisions_come_oldest_first(graph: &dyn Graph) {
    for (id, at, status) in [
        ("b", 30, DecisionStatus::Pending),
        ("a", 30, DecisionStatus::Pending),
        ("c", 10, DecisionStatus::Pending),
        ("d", 5, DecisionStatus::Planned),
    ] {
        only(graph, id, at, decision(id, status)).await;
    }
    assert_eq!(ids(&graph.pending_decisions(10).await.expect("asked")), ["c", "a", "b"]);
    assert_eq!(ids(&graph.pending_decisions(2).await.expect("asked")), ["c", "a"]);
    only(graph, "taken", 40, decision("c", DecisionStatus::Planned)).await;
    assert_eq!(ids(&graph.pending_decisions(10).await.expect("asked")), ["a", "b"]);
}

async fn the_tasks_of_a_decision_are_found(graph: &dyn Graph) {
    told(graph).await;
    assert_eq!(ids(&graph.tasks_of("d1", 10).await.expect("asked")), ["t1", "t2"]);
    assert_eq!(ids(&graph.tasks_of("d1", 1).await.expect("asked")), ["t1"]);
    assert!(graph.tasks_of("none", 10).await.expect("asked").is_empty());
}

async fn goals_show_the_decisions_that_serve_them(graph: &dyn Graph) {
    told(graph).await;
    let d2 = decision("d2", DecisionStatus::Pending);
    let serves = link(NodeKey::decision("d2"), Relation::Serves, NodeKey::goal("g1"));
    let writes = vec![Write::Put(d2), Write::Put(goal("g0")), serves];
    graph.apply(&batch("more", 2000, writes)).await.expect("written");
    let goals = graph.goals(10, 10).await.expect("asked");
    let shown: Vec<_> =
        goals.iter().map(|view| (view.goal.key().id, ids(&view.decisions))).collect();
    let expected = [("g0", vec![]), ("g1", vec!["d2", "d1"])];
    assert_eq!(shown.len(), 2);
    for ((id, decisions), (goal, wanted)) in shown.iter().zip(expected) {
        assert_eq!((id.as_str(), decisions.iter().map(String::as_str).collect()), (goal, wanted));
    }
    assert_eq!(goals.len(), 2);
    assert_eq!(graph.goals(10, 1).await.expect("asked")[1].decisions.len(), 1);
}

async fn insights_are_found_by_their_words(graph: &dyn Graph) {
    only(graph, "1", 1, insight("i1", "estimates of writing", 0.6)).await;
    only(graph, "2", 1, insight("i2", "Estimates in general", 0.9)).await;
    only(graph, "3", 1, insight("i3", "calendar", 0.9)).await;
    let found =
        |topic: &'static str| async move { ids(&graph.insights(topic, 10).await.expect("asked")) };
    assert_eq!(found("ESTIMATES").await, ["i2", "i1"]);
    assert_eq!(found("writing estimates").await, ["i1"]);
    assert_eq!(found("takes").await, ["i2", "i3", "i1"], "the pattern counts too");
    assert_eq!(found("estim").await, [""; 0], "whole words");
    assert_eq!(found("").await, ["i2", "i3", "i1"]);
    assert_eq!(found("AND OR NOT * \" ( ) ~ : \\ / [ {").await, [""; 0]);
    only(graph, "4", 2, insight("i3", "weekends", 0.9)).await;
    assert_eq!(found("calendar").await, [""; 0], "what it said before is forgotten");
}

async fn the_neighbourhood_grows_with_its_reach(graph: &dyn Graph) {
    told(graph).await;
    let centre = NodeKey::task("t1");
    let near = graph.around(&centre, 1, 100).await.expect("asked");
    assert_eq!(ids(&near.nodes), ["d1", "i1", "t1", "t2"]);
    assert_eq!(near.links.len(), 3, "those that were met on the way: {:?}", near.links);
    let all = graph.around(&centre, 2, 100).await.expect("asked");
    assert_eq!((all.nodes.len(), all.links.len(), all.cut), (7, 7, false));
    let few = graph.around(&centre, 2, 3).await.expect("asked");
    assert_eq!((few.nodes.len(), few.cut), (3, true));
    let nobody = graph.around(&NodeKey::task("none"), 2, 10).await.expect("asked");
    assert!(nobody.nodes.is_empty());
}

async fn ways_lead_from_an_insight_to_its_evidence(graph: &dyn Graph) {
    told(graph).await;
    let other =
        link(NodeKey::insight("i1"), Relation::LearnedFrom, NodeKey::handoff(run(), HandoffId(3)));
    graph.apply(&batch("more", 2, vec![other])).await.expect("written");
    let ways = graph.evidence_of("i1", 10).await.expect("asked");
    let shown: Vec<String> = ways
        .iter()
        .map(|way| way.iter().map(NodeKey::to_string).collect::<Vec<_>>().join(" > "))
        .collect();
    assert_eq!(
        shown,
        [
            format!("insight:i1 > handoff:{}/h3", run()),
            "insight:i1 > task:t1 > decision:d1 > discussion:talk1".into(),
        ]
    );
    assert!(graph.evidence_of("none", 10).await.expect("asked").is_empty());
}

async fn writers_at_the_same_time_lose_nothing(graph: &dyn Graph) {
    only(graph, "d", 1, decision("d1", DecisionStatus::Pending)).await;
    // Each writes its own task and all of them the same link's end; every batch is sent twice.
    let write = |number: usize| async move {
        let id = format!("t{}", number / 2);
        let part = link(NodeKey::task(&id), Relation::PartOf, NodeKey::decision("d1"));
        let batch = batch(&id, 2, vec![Write::Put(task(&id, 1.0)), part]);
        graph.apply(&batch).await.expect("written")
    };
    let mut now = 0;
    let mut all = Vec::new();
    for number in 0..24 {
        all.push(Box::pin(write(number)));
    }
    for answer in join(all).await {
        now += usize::from(answer == Applied::Now);
    }
    assert_eq!(now, 12, "each key was written once");
    assert_eq!(graph.size().await.expect("counted"), Size { nodes: 13, links: 12 });
}

/// Drives all of them at once.
async fn join<F: Future + Unpin>(mut all: Vec<F>) -> Vec<F::Output> {
    let mut answers: Vec<Option<F::Output>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut waiting = false;
        for (future, answer) in all.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match Pin::new(future).poll(context) {
                    std::task::Poll::Ready(value) => *answer = Some(value),
                    std::task::Poll::Pending => waiting = true,
                }
            }
        }
        if waiting { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
    answers.into_iter().flatten().collect()
}

async fn hostile_text_is_text(graph: &dyn Graph) {
    let id = "'}) MATCH (n) DETACH DELETE n; DROP TABLE nodes; --\"`$x";
    only(graph, "k'\"`", 1, task(id, 1.0)).await;
    let found = graph.node(&NodeKey::task(id)).await.expect("asked").expect("there");
    assert_eq!(found.entity, task(id, 1.0));
    assert!(graph.tasks_of(id, PAGE * 2).await.expect("asked").is_empty());
    assert_eq!(graph.size().await.expect("counted").nodes, 1);
}
