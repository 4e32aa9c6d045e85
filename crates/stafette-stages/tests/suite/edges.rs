//! Each edge of the template with each piece of its evidence missing.

use serde_json::{Value, json};
use stafette_core::Event;
use stafette_core::run::propose::Refusal;

use crate::story::{Story, admitted, answers, offer};

/// Hands `from` → `to` with all of the evidence, then without each piece of it.
fn every_missing_piece_is_named(from: &str, to: &str, evidence: Value) {
    let whole = Story::with(from, json!({})).hands(offer(from, to, evidence.clone()));
    assert!(admitted(&whole).is_some(), "{from} → {to} with everything: {whole:?}");
    let keys: Vec<String> = evidence.as_object().expect("fields").keys().cloned().collect();
    let required = crate::story::workflow();
    let route = required.route(&from.into(), &to.into()).expect("a route");
    assert_eq!(route.requires.len(), keys.len(), "{from} → {to}");
    for key in &keys {
        for gone in [None, Some(Value::Null)] {
            let mut less = evidence.clone();
            match gone {
                None => drop(less.as_object_mut().expect("fields").shift_remove(key)),
                Some(null) => less[key] = null,
            }
            let events = Story::with(from, json!({})).hands(offer(from, to, less));
            assert!(admitted(&events).is_none(), "{from} → {to} without {key}");
            let refused = events.iter().find_map(|event| match event {
                Event::HandoffRefused(refused) => Some(refused.refusal.clone()),
                _ => None,
            });
            let Some(Refusal::MissingEvidence { missing, .. }) = refused else {
                panic!("{from} → {to} without {key}: {events:?}");
            };
            assert_eq!(missing, std::slice::from_ref(key), "{from} → {to}");
        }
    }
    let nothing = Story::with(from, json!({})).hands(offer(from, to, json!({})));
    let said = format!("{nothing:?}");
    assert!(keys.iter().all(|key| said.contains(key)), "all of it is named: {said}");
}

#[test]
fn s1_07_discuss_to_decisions_names_each_missing_piece() {
    let evidence = json!({
        "thread_id": "this", "check_results": answers(), "score": 0.8, "recommendation": "APPROVE",
    });
    every_missing_piece_is_named("discuss", "decisions", evidence);
}

#[test]
fn s1_08_decisions_to_execute_names_each_missing_piece() {
    let evidence = json!({
        "decision_id": "d", "roi": {"total": 1}, "goals": ["craft"], "provenance": {"by": "ada"},
    });
    every_missing_piece_is_named("decisions", "execute", evidence);
}

#[test]
fn s1_09_execute_to_mind_names_each_missing_piece() {
    let evidence = json!({ "task_ids": ["t"], "calendar_events": ["e.ics"], "plan": {} });
    every_missing_piece_is_named("execute", "mind", evidence);
}

#[test]
fn s1_18_execute_goes_back_to_discuss_only_with_what_blocks_it() {
    every_missing_piece_is_named("execute", "discuss", json!({ "blocked_by": "no budget" }));
}

#[test]
fn s1_06_no_stage_can_be_skipped() {
    for (from, to) in [("discuss", "execute"), ("discuss", "mind"), ("decisions", "mind")] {
        let events = Story::with(from, json!({})).hands(offer(from, to, json!({})));
        let denied = events.iter().any(|event| {
            matches!(event, Event::HandoffRefused(refused)
                if matches!(refused.refusal, Refusal::Denied { .. }))
        });
        assert!(denied, "{from} → {to}: {events:?}");
    }
}
