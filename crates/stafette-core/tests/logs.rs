//! Logs of real runs, kept for ever: whatever becomes of the kernel, each of them still opens and
//! tells the same. `fixtures/logs/README.md` says what they are.

#[path = "logs/transcript.rs"]
mod transcript;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use stafette_core::schema;
use stafette_core::team::order::{Order, OrderKey};
use stafette_core::{Event, Recorded, Run, Workflow};

/// A log with its name, a line for each event.
struct Log {
    name: String,
    lines: Vec<String>,
}

impl Log {
    fn events(&self) -> Vec<Recorded> {
        let read = |line: &String| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}", self.name))
        };
        self.lines.iter().map(read).collect()
    }
}

fn fixtures(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures")).join(path)
}

/// All of them, by name.
fn logs() -> Vec<Log> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(fixtures("logs")).expect("the logs are there") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a log");
            logs.push(Log { name, lines: text.lines().map(str::to_owned).collect() });
        }
    }
    logs.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(!logs.is_empty());
    logs
}

/// The first line that differs, with what leads there.
fn difference(kept: &str, told: &str) -> String {
    let (kept, told): (Vec<&str>, Vec<&str>) = (kept.lines().collect(), told.lines().collect());
    let same = kept.iter().zip(&told).take_while(|(kept, told)| kept == told).count();
    let event = kept[..same].iter().rev().find(|line| !line.starts_with(' '));
    format!(
        "after {}\n  kept: {}\n  told: {}",
        event.unwrap_or(&"the beginning"),
        kept.get(same).unwrap_or(&"nothing more"),
        told.get(same).unwrap_or(&"nothing more"),
    )
}

/// Set `UPDATE_GOLDEN=1` to write the transcripts again. That is right for a log that is new; for
/// one that was there before, the transcript is the promise.
#[test]
fn b_12_every_stored_run_opens_and_tells_the_same_after_each_event() {
    let mut wrong = Vec::new();
    for log in logs() {
        let events = log.events();
        let seqs: Vec<u64> = events.iter().map(|recorded| recorded.seq).collect();
        assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>(), "{}", log.name);
        let told = transcript::of(&events);
        let file = fixtures("logs").join(format!("{}.transcript", log.name));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, &told).expect("the file can be written");
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        if kept != told {
            wrong.push(format!("{}: {}", log.name, difference(&kept, &told)));
        }
    }
    assert!(wrong.is_empty(), "stored runs tell something else:\n{}", wrong.join("\n"));
}

/// The whole state after each event, as a short mark.
fn digest(events: &[Recorded]) -> String {
    let mut text = String::new();
    let mut run = Run::replay(&events[..1]).expect("a log begins with its run");
    for (place, recorded) in events.iter().enumerate() {
        if place > 0 {
            run.apply(recorded.at, &recorded.event);
        }
        let state = serde_json::to_string(&run).expect("a run is JSON");
        let mark = state.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let _ = writeln!(text, "{} {} {mark:016x}", recorded.seq, recorded.event.name());
    }
    text
}

/// `UPDATE_GOLDEN=1` writes them again: that is right where the state has got a new field, and
/// nothing else has changed.
#[test]
fn b_12_the_newer_logs_lead_to_the_same_state_after_each_event() {
    let mut wrong = Vec::new();
    for log in logs() {
        let file = fixtures("logs").join(format!("{}.digest", log.name));
        let Ok(mut kept) = fs::read_to_string(&file) else { continue };
        let told = digest(&log.events());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, &told).expect("the file can be written");
            kept.clone_from(&told);
        }
        if kept != told {
            wrong.push(format!("{}: {}", log.name, difference(&kept, &told)));
        }
    }
    assert!(wrong.is_empty(), "stored runs have another state:\n{}", wrong.join("\n"));
}

#[test]
fn b_12_a_run_that_ended_under_an_earlier_release_has_nothing_left_to_begin() {
    let mut ended = BTreeSet::new();
    for log in logs() {
        let run = Run::replay(&log.events()).expect("a run");
        if run.status().is_final() {
            let orders: Vec<OrderKey> = run.orders().iter().map(Order::key).collect();
            let is_new = |key: &&OrderKey| {
                matches!(key, OrderKey::Import | OrderKey::Collect | OrderKey::Begin)
            };
            assert_eq!(orders.iter().find(is_new), None, "{}", log.name);
            ended.insert(log.name);
        }
    }
    for name in ["generation-1", "imported", "worktree"] {
        assert!(ended.contains(name), "{name} has not ended");
    }
}

#[test]
fn b_12_a_run_that_ends_now_lists_what_is_left_to_do() {
    for (name, left) in [("generation-1", OrderKey::Begin), ("worktree", OrderKey::Collect)] {
        let log = logs().into_iter().find(|log| log.name == name).expect("a log");
        let mut events = log.events();
        for recorded in &mut events {
            if let Event::RunFinished(finished) = &mut recorded.event {
                finished.lists_orders = true;
            }
        }
        let run = Run::replay(&events).expect("a run");
        assert!(run.orders().iter().any(|order| order.key() == left), "{name}: {:?}", run.orders());
    }
}

#[test]
fn b_12_every_event_is_in_some_log() {
    let logs = logs();
    let seen: BTreeSet<&str> =
        logs.iter().flat_map(Log::events).map(|recorded| recorded.event.name()).collect();
    let unseen: Vec<&str> = Event::names().filter(|name| !seen.contains(name)).collect();
    assert!(unseen.is_empty(), "no log has {unseen:?}");
}

/// The keys that a workflow has where no others may be, as they are published.
struct Closed {
    schema: Value,
    /// Those that something was put into.
    seen: BTreeSet<String>,
}

impl Closed {
    fn published() -> Self {
        let text = fs::read_to_string(fixtures("schemas/workflow.json")).expect("the schema");
        let schema = serde_json::from_str(&text).expect("JSON");
        Closed { schema, seen: BTreeSet::new() }
    }

    /// Puts a setting that nobody knows any more wherever there are settings.
    fn put(&mut self, workflow: &mut Value) {
        self.put_into(workflow, "");
    }

    fn put_into(&mut self, value: &mut Value, place: &str) {
        let schema = self.schema.pointer(place).cloned().expect("a place in the schema");
        // What may be left out is there under a condition.
        let optional = schema.pointer("/then/$ref");
        if let Some(elsewhere) = schema.get("$ref").or(optional).and_then(Value::as_str) {
            return self.put_into(value, elsewhere.trim_start_matches('#'));
        }
        match value {
            Value::Array(items) if schema.get("items").is_some() => {
                items.iter_mut().for_each(|item| self.put_into(item, &format!("{place}/items")));
            }
            Value::Object(fields) => {
                let known = schema.get("properties").and_then(Value::as_object);
                let others = schema.get("additionalProperties").filter(|it| it.is_object());
                for (key, value) in fields.iter_mut() {
                    if known.is_some_and(|known| known.contains_key(key)) {
                        self.put_into(value, &format!("{place}/properties/{key}"));
                    } else if others.is_some() {
                        self.put_into(value, &format!("{place}/additionalProperties"));
                    }
                }
                if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
                    fields.insert("retired_setting".into(), json!({ "rounds": 3, "of": ["old"] }));
                    self.seen.insert(place.to_owned());
                }
            }
            _ => {}
        }
    }
}

#[test]
fn b_12_a_run_whose_workflow_has_settings_that_are_no_more_tells_the_same() {
    let mut closed = Closed::published();
    for mut log in logs() {
        let mut first: Value = serde_json::from_str(&log.lines[0]).expect("JSON");
        let workflow = match first.pointer("/workflow").is_some() {
            true => "/workflow",
            false => "/state/workflow",
        };
        closed.put(first.pointer_mut(workflow).expect("a workflow"));
        let whole = first.to_string();
        assert!(whole.matches("retired_setting").count() > 3, "{whole}");
        log.lines[0] = whole;
        let kept = fs::read_to_string(fixtures("logs").join(format!("{}.transcript", log.name)));
        let (kept, told) = (kept.expect("a transcript"), transcript::of(&log.events()));
        assert!(kept == told, "{}: {}", log.name, difference(&kept, &told));
    }
}

/// A workflow that says something of everything, as it is stored; what was put into it is not known.
fn whole() -> (Workflow, Value, Closed) {
    let text = fs::read_to_string(fixtures("workflows/whole.toml")).expect("a workflow");
    let (workflow, _) = stafette_config::document::<Workflow>(&text).expect("a workflow");
    let mut stored = serde_json::to_value(&workflow).expect("a workflow is JSON");
    let mut closed = Closed::published();
    closed.put(&mut stored);
    (workflow, stored, closed)
}

#[test]
fn b_12_no_setting_of_a_stored_workflow_has_to_be_known() {
    let (workflow, stored, closed) = whole();
    assert_eq!(serde_json::from_value::<Workflow>(stored).expect("it is read"), workflow);

    let definitions = closed.schema["$defs"].as_object().expect("definitions");
    let is_closed = |schema: &Value| schema["additionalProperties"] == Value::Bool(false);
    let places = definitions.iter().filter(|(_, schema)| is_closed(schema));
    let mut places: BTreeSet<String> = places.map(|(name, _)| format!("/$defs/{name}")).collect();
    places.insert(String::new());
    assert_eq!(closed.seen, places, "whole.toml has to say something of everything");
}

/// What is stored may be old; what somebody writes is meant.
#[test]
fn s2_11_every_unknown_key_of_a_file_is_found_and_refused_by_the_schema() {
    let (_, written, _) = whole();
    let count = written.to_string().matches("retired_setting").count();
    let text = toml::to_string(&written).expect("it is TOML");
    let found =
        stafette_config::document::<Workflow>(&text).expect_err("nobody knows these settings");
    let unknown = found.iter().filter(|diagnostic| {
        diagnostic.code == "unknown-key"
            && diagnostic.span.clone().is_some_and(|span| &text[span] == "retired_setting")
    });
    assert_eq!((unknown.count(), found.len()), (count, count), "{found:#?}");
    assert_eq!(schema::validate(schema::Name::Workflow, &written).len(), count);
}
