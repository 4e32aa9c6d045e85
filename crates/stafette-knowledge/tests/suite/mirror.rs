//! What the events of a run say to the graph and to the mind.

use serde_json::{Value, json};
use stafette_core::{Recorded, Time};
use stafette_knowledge::graph::{Applied, Entity, Mirror, NodeKey, Relation};
use stafette_knowledge::mind::{Observation, StepEnd, observe};

use crate::story::{run, sqlite};

fn event(seq: u64, mut event: Value) -> Recorded {
    event["seq"] = seq.into();
    event["at"] = (seq * 1000).into();
    serde_json::from_value(event).expect("an event")
}

fn admitted(id: &str, from: &str, to: &str, cause: Option<&str>) -> Value {
    json!({
        "event": "handoff_admitted", "id": id, "cause": cause,
        "offer": {"from": from, "to": to, "kind": "transfer", "reason": "stage", "summary": "go on"},
        "trail": {"held_by": []}, "state": {"pending": {"not_before": 0}},
    })
}

fn closed(id: &str, outcome: &str, way: &str) -> Value {
    json!({
        "event": "handoff_closed", "handoff": id, "way": way,
        "response": {"by": "decisions", "outcome": outcome, "took": 2500},
    })
}

fn story() -> Vec<Recorded> {
    vec![
        event(1, admitted("h1", "human", "discuss", None)),
        event(2, admitted("h2", "discuss", "decisions", Some("h1"))),
        event(3, closed("h1", "resolved", "answered")),
        event(4, closed("h2", "failed", "answered")),
        event(5, admitted("h3", "discuss", "decisions", Some("h1"))),
        event(6, closed("h3", "failed", "cancelled")),
    ]
}

#[tokio::test]
async fn s1_18_all_handoffs_are_in_the_graph_once_however_often_they_are_told() {
    let (graph, _, _folder) = sqlite();
    for expected in [Applied::Now, Applied::Before] {
        let mut mirror = Mirror::new(run());
        for batch in story().iter().filter_map(|recorded| mirror.see(recorded)) {
            assert_eq!(graph.apply(&batch).await.expect("written"), expected);
        }
    }
    let key = |id: &str| NodeKey::handoff(run(), id.parse().expect("a handoff"));
    let second = graph.node(&key("h2")).await.expect("asked").expect("there");
    assert_eq!((second.made.at, second.changed.at), (Time(2000), Time(4000)));
    assert_eq!(second.changed.by.as_str(), "decisions");
    let Entity::Handoff(node) = second.entity else { panic!("a handoff") };
    assert_eq!((node.state.as_str(), node.seconds), ("failed", Some(2.5)));
    assert_eq!((node.from.as_str(), node.to.as_str()), ("discuss", "decisions"));
    let around = graph.around(&key("h1"), 1, 10).await.expect("asked");
    assert_eq!(around.links.len(), 2);
    assert!(around.links.iter().all(|link| link.relation == Relation::FollowedBy));
}

#[test]
fn s1_10_steps_and_rounds_are_read_off_the_events() {
    let found = observe(run(), &story());
    let steps: Vec<_> = found
        .iter()
        .filter_map(|one| match one {
            Observation::Step { path, end, seconds, .. } => {
                Some((path.to_string(), *end, *seconds))
            }
            _ => None,
        })
        .collect();
    let expected = [
        ("human → discuss".to_owned(), StepEnd::Done, 2.5),
        ("discuss → decisions".to_owned(), StepEnd::Failed, 2.5),
    ];
    assert_eq!(steps, expected, "what was called off says nothing");
    let rounds = found.iter().find_map(|one| match one {
        Observation::Rounds { path, count, .. } if path.from == "discuss" => Some(*count),
        _ => None,
    });
    assert_eq!(rounds, Some(2));
}
