//! A run at any moment: what clients are sent of its state is what the core computes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use stafette_core::{Event, HandoffId, Input, Recorded, Run, Time};
use stafette_engine::{EngineError, RunState, RunView, StateFeed, state_changes};

use crate::flaky::Flaky;
use crate::outside::{result, workflow};
use crate::runs::{end, open, start};

/// What a client knows of a run: fields replace those of the same name, those that are null go, and
/// handoffs and changes are merged by their ids.
fn merge(known: &mut Map<String, Value>, changed: &Map<String, Value>) {
    for (name, value) in changed {
        match (name.as_str(), value) {
            (_, Value::Null) => drop(known.remove(name)),
            ("handoffs" | "changes", Value::Object(changed)) => {
                let all = known.entry(name.clone()).or_insert_with(|| json!({}));
                for (id, changed) in changed {
                    let one = all.as_object_mut().expect("by id").entry(id.clone());
                    let one = one.or_insert_with(|| json!({})).as_object_mut().expect("fields");
                    merge(one, changed.as_object().expect("fields"));
                }
            }
            (_, value) => drop(known.insert(name.clone(), value.clone())),
        }
    }
}

fn whole(view: &RunView, state: &RunState) -> Map<String, Value> {
    let mut fields = json!(view).as_object().expect("fields").clone();
    fields.extend(json!(state).as_object().expect("fields").clone());
    // A client takes null for a field that is not there.
    for set in fields["changes"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        set.as_object_mut().expect("fields").retain(|_, value| !value.is_null());
    }
    fields
}

/// Handoffs and changes that a run no longer keeps are as they were last; the rest is the same.
fn assert_same(mut known: Map<String, Value>, kernel: &Map<String, Value>, about: &str) {
    for name in ["handoffs", "changes"] {
        let kept = kernel[name].as_object().expect("by id");
        let all = known[name].as_object_mut().expect("by id");
        for (id, one) in all.iter().filter(|(id, _)| !kept.contains_key(*id)) {
            assert!(name == "changes" || one["state"]["closed"].is_object(), "{about}: {id}");
        }
        all.retain(|id, _| kept.contains_key(id));
    }
    for (name, value) in kernel {
        assert_eq!(known.get(name), Some(value), "{about}: {name}");
    }
    assert_eq!(known.len(), kernel.len(), "{about}");
}

/// The events of a recorded run.
fn recorded(path: &Path) -> Vec<Recorded> {
    let text = fs::read_to_string(path).expect("a log");
    let event = |line: &str| {
        let fields: Value = serde_json::from_str(line).expect("JSON");
        let written = || fields["at"].as_str().and_then(Time::parse);
        let at = fields["at"].as_i64().map(Time).or_else(written).expect("a time");
        let seq = fields["seq"].as_u64().expect("a number");
        let event: Event = serde_json::from_value(fields).expect("an event");
        Recorded { seq, at, event }
    };
    text.lines().filter(|line| !line.is_empty()).map(event).collect()
}

/// The logs of a folder; none when it is not there.
fn logs(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("a file").path());
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl") && !name.ends_with(".changed.jsonl")
    };
    let mut logs: Vec<PathBuf> = paths.filter(is_log).collect();
    logs.sort();
    logs
}

const PAGE: &str = "web/test/logs";

#[test]
fn b_12_what_clients_are_sent_of_each_event_adds_up_to_the_state() {
    for path in logs(PAGE).into_iter().chain(logs("fixtures/logs")) {
        let events = recorded(&path);
        let changes = state_changes(&events).expect("a run");
        let mut known = Map::new();
        for (count, changed) in (1..).zip(&changes) {
            merge(&mut known, changed);
            let run = Run::replay(&events[..count]).expect("a run");
            let kernel = whole(&RunView::of(&run), &RunState::of(&run));
            assert_same(known.clone(), &kernel, &format!("{} at {count}", path.display()));
        }
    }
}

/// The page's tests read these files: what the daemon would have sent with the recorded events.
/// `UPDATE_GOLDEN=1 cargo test -p stafette-engine moment` writes them anew.
#[test]
fn the_recorded_changes_of_the_page_are_those_of_the_core() {
    assert!(!logs(PAGE).is_empty(), "the page has logs");
    for path in logs(PAGE) {
        let changes = state_changes(&recorded(&path)).expect("a run");
        let lines: String = changes.iter().map(|changed| format!("{}\n", json!(changed))).collect();
        let kept = path.with_extension("changed.jsonl");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&kept, &lines).expect("written");
        }
        let known = fs::read_to_string(&kept).unwrap_or_default();
        assert!(known == lines, "{}: run this test with UPDATE_GOLDEN=1", kept.display());
    }
}

#[tokio::test]
async fn b_12_a_run_is_shown_as_it_was_after_any_of_its_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let run = start(&engine, workflow()).await.expect("a run");
    let turns = engine.external();
    let order = turns.accept(run, HandoffId(1), "alice", None).await.expect("it is free");
    // Enough for more than one snapshot.
    for _ in 0..300 {
        engine.send(run, Input::Pause { by: "me".into() }).await.expect("it goes on");
        engine.send(run, Input::Unpause { by: "me".into() }).await.expect("it is paused");
    }
    turns.complete(order.key, result("done")).await.expect("it is hers");
    assert_eq!(end(&engine, run).await, "succeeded");

    let log = engine.log();
    let events = log.events(run, 0).await.expect("events");
    let (mut feed, mut late) = (StateFeed::default(), StateFeed::default());
    let mut known = Map::new();
    let mut seen = BTreeMap::new();
    for stored in &events {
        let changed = feed.change(&engine, stored).await.expect("readable").expect("new");
        merge(&mut known, &changed);
        seen.insert(stored.entry.seq, changed);
        let (view, state) = log.moment(run, Some(stored.entry.seq)).await.expect("a moment");
        assert_same(known.clone(), &whole(&view, &state), &format!("at {}", stored.entry.seq));
    }
    assert!(events.len() > 600);
    // Whoever begins in the middle is sent the same.
    for stored in events.iter().skip(300).take(3) {
        let changed = late.change(&engine, stored).await.expect("readable");
        assert_eq!(changed.as_ref(), seen.get(&stored.entry.seq));
    }
    assert_eq!(late.change(&engine, &events[300]).await.expect("readable"), None, "not twice");

    let now = log.moment(run, None).await.expect("a run");
    assert_eq!(log.moment(run, Some(events.len() as u64)).await.expect("the end"), now);
    for wrong in [0, events.len() as u64 + 1] {
        let error = log.moment(run, Some(wrong)).await.expect_err("there is no such event");
        let EngineError::NoEvent { seq, last, .. } = error else { panic!("{error}") };
        assert_eq!((seq, last), (wrong, events.len() as u64));
    }
}
