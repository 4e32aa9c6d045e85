//! Each edge of the template with each piece of its evidence missing. Edges and pieces are the
//! template's own: one that is added there is tried here.

use serde_json::{Value, json};
use stafette_core::Event;
use stafette_core::run::propose::Refusal;

use crate::story::{Story, admitted, answers, offer, workflow};

/// A good piece of evidence of this name.
fn sample(key: &str) -> Value {
    match key {
        "thread_id" => json!("this"),
        "check_results" => answers(),
        "score" => json!(0.8),
        "recommendation" => json!("APPROVE"),
        "decision_id" => json!("d"),
        "roi" => json!({ "total": 1 }),
        "goals" => json!(["craft"]),
        "provenance" => json!({ "by": "ada" }),
        "task_ids" => json!(["t"]),
        "calendar_events" => json!(["e.ics"]),
        "plan" => json!({}),
        "blocked_by" => json!("no budget"),
        other => panic!("the template asks for `{other}`: say here what a good one looks like"),
    }
}

/// What is said to be missing when `from` hands this to `to`; nothing when it is admitted.
fn missing(from: &str, to: &str, evidence: Value) -> Vec<String> {
    let events = Story::with(from, json!({})).hands(offer(from, to, evidence));
    if admitted(&events).is_some() {
        return Vec::new();
    }
    let refused = events.iter().find_map(|event| match event {
        Event::HandoffRefused(refused) => Some(refused.refusal.clone()),
        _ => None,
    });
    match refused {
        Some(Refusal::MissingEvidence { missing, .. }) => missing,
        _ => panic!("{from} → {to}: {events:?}"),
    }
}

#[test]
fn s1_06_each_missing_piece_on_each_edge_is_refused_with_its_name() {
    let workflow = workflow();
    let mut edges = Vec::new();
    for route in &workflow.routes {
        let (from, to) = (route.from.as_str(), route.to.as_str());
        edges.push(format!("{from} → {to}"));
        assert!(!route.requires.is_empty(), "{from} → {to} asks for something");
        let whole: Value = route.requires.iter().map(|key| (key.clone(), sample(key))).collect();
        assert_eq!(missing(from, to, whole.clone()), [""; 0], "{from} → {to} with everything");
        assert_eq!(missing(from, to, json!({})), route.requires, "{from} → {to} with nothing");
        for key in &route.requires {
            let mut without = whole.clone();
            without.as_object_mut().expect("fields").shift_remove(key);
            let mut empty = whole.clone();
            empty[key] = Value::Null;
            for less in [without, empty] {
                let named = missing(from, to, less);
                assert_eq!(named, std::slice::from_ref(key), "{from} → {to} without {key}");
            }
        }
    }
    // The seed's line, and its one branch.
    let expected =
        ["discuss → decisions", "decisions → execute", "execute → mind", "execute → discuss"];
    assert_eq!(edges, expected);
}

#[test]
fn s1_06_no_stage_can_be_skipped() {
    let workflow = workflow();
    assert_eq!(workflow.deny.len(), 3);
    for denied in &workflow.deny {
        let (from, to) = (denied.from.as_str(), denied.to.as_str());
        let events = Story::with(from, json!({})).hands(offer(from, to, json!({})));
        let denied = events.iter().any(|event| {
            matches!(event, Event::HandoffRefused(refused)
                if matches!(refused.refusal, Refusal::Denied { .. }))
        });
        assert!(denied, "{from} → {to}: {events:?}");
    }
}
