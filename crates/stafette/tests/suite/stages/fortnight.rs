//! Two weeks, from a proposal to what was learned from it, and to a second run that uses it. All of
//! it happens at its date by the daemon's clock; between the two weeks summer time begins.

use serde_json::{Value, json};
use stafette_core::Time;
use stafette_knowledge::calendar::{Calendar, entry};
use stafette_testkit::neo4j::Neo4j;
use stafette_testkit::radicale::{PASSWORD, USER};

use super::{Office, Wall, at, project, wait};
use crate::world::{World, until};

/// The first Monday, before work. Everything is told in UTC; in Berlin it is an hour later, from the
/// 29th on two.
const MONDAY: &str = "2026-03-23T07:30:00Z";

/// From a proposal to what was learned from it, and to a second run that uses it.
fn what_was_learned_changes_the_second_run(world: &World, office: &Office, wall: &Wall) {
    let env = [("CAL_USER", USER), ("CAL_PASSWORD", PASSWORD), wall.env()];
    world.run_with(&["up"], b"", &env).ok();
    let first = world.begin("Have a better tool");

    // Monday: a decision among three options; the table is in the inbox.
    let choice = world.question(&first, "decision_approval");
    let ranking = choice.pointer("/handoff/offer/outputs/ranking").expect("a ranking");
    assert_eq!(ranking["winner"], "a");
    assert_eq!(ranking["learned"], json!([]));
    let shown = world.run(&["inbox"]).ok().out;
    assert!(shown.contains("1. a: 550.00") && shown.contains("wins when"), "{shown}");

    // Tuesday: it is answered. Tasks get time that waits for a yes; nothing is in the calendar yet.
    wall.set(at("2026-03-24T07:00:00Z"));
    world.answer(&choice, "a");
    let plan = world.question(&first, "plan_approval");
    let blocks =
        until("proposals", || Some(world.blocks(&first, MONDAY)).filter(|all| all.len() == 6));
    assert!(blocks.iter().all(|one| one["state"] == "proposed"), "{blocks:?}");
    let starts: Vec<String> = blocks.iter().map(|one| moment(one, "start").rfc3339()).collect();
    // Each begins at nine by the clock on the wall in Berlin.
    assert_eq!(
        starts,
        [
            "2026-03-24T08:00:00.000Z",
            "2026-03-25T08:00:00.000Z",
            "2026-03-26T08:00:00.000Z",
            "2026-03-30T07:00:00.000Z",
            "2026-03-31T07:00:00.000Z",
            "2026-04-01T07:00:00.000Z",
        ]
    );
    assert_eq!(office.entries().len(), 0);
    // One of them is moved to another day before it is accepted.
    let friday = (at("2026-04-03T11:00:00Z"), at("2026-04-03T13:00:00Z"));
    let id = blocks[5]["id"].as_str().expect("an id");
    world.run(&["calendar", "move", id, &friday.0.rfc3339(), &friday.1.rfc3339()]).ok();
    world.answer(&plan, "approve");
    world.ends(&first);
    until("the events", || (office.entries().len() == 6).then_some(()));
    let text: String = office.entries().into_iter().map(|entry| entry.text).collect();
    assert!(text.contains("X-STAFETTE-TASK") && text.contains("SUMMARY:Three"), "{text}");
    for start in ["20260324T080000Z", "20260330T070000Z", "20260403T110000Z"] {
        assert!(text.contains(&format!("DTSTART:{start}")), "{text}");
    }
    assert_eq!(text.matches("DTSTAMP:20260324T07").count(), 6, "{text}");
    until("the notes", || {
        let all = world.blocks(&first, MONDAY);
        all.iter().all(|one| one["state"] == "written").then_some(())
    });
    world.mirrored(&first);
    // What happened has the dates at which it happened.
    let dates: Vec<String> = world
        .run(&["log", &first, "--json"])
        .ok()
        .lines()
        .iter()
        .map(|line| day(&line["at"]))
        .collect();
    assert_eq!(dates.first().map(String::as_str), Some("2026-03-23"), "{dates:?}");
    assert_eq!(dates.last().map(String::as_str), Some("2026-03-24"), "{dates:?}");

    // Wednesday: somebody moves one event and deletes another in a calendar program.
    wall.set(at("2026-03-25T06:00:00Z"));
    let entries = office.entries();
    let named = |title: &str| {
        let found = entries.iter().find(|entry| entry.text.contains(&format!("SUMMARY:{title}")));
        found.expect("an entry").clone()
    };
    let (moved, gone) = (named("Four"), named("Five"));
    let (from, to) = (at("2026-04-02T07:00:00Z"), at("2026-04-02T09:00:00Z"));
    let text = entry::moved(&moved.text, from, to, at("2026-03-25T06:00:00Z")).expect("an event");
    wait(office.calendar.put(&moved.name, &text, Some(&moved.etag))).expect("moved");
    wait(office.calendar.remove(&gone.name, &gone.etag)).expect("deleted");
    until("what somebody changed", || {
        let all = world.blocks(&first, MONDAY);
        let state = |entry: &str| {
            all.iter().find(|one| one["entry"] == entry).map(|one| one["state"].clone())
        };
        let both = (state(&moved.name), state(&gone.name));
        (both == (Some(json!("moved")), Some(json!("deleted")))).then_some(())
    });

    // The work takes half as long again as its agent had thought, and is told when it is done.
    let decisions = world.asked(&["roi"]);
    assert_eq!(decisions["decisions"], json!([]), "it is planned, so nobody has to take it up");
    let decision = choice["id"].as_str().map(|id| format!("{first}.{id}")).expect("an id");
    let seen = world.asked(&["roi", &decision]);
    assert!(seen["ranking"]["sensitivity"].as_array().is_some_and(|tips| !tips.is_empty()));
    let mut tasks = seen["tasks"].as_array().expect("tasks").clone();
    tasks.sort_by_key(|task| task["id"].as_str().map(str::to_owned));
    assert_eq!(tasks.len(), 6, "{seen}");
    let done =
        ["03-25T09:30", "03-25T15:00", "03-26T11:00", "03-30T10:00", "04-02T10:00", "04-03T14:00"];
    for (number, (task, done)) in tasks.iter().zip(done).enumerate() {
        assert_eq!(task["effortHours"], 2.0);
        wall.set(at(&format!("2026-{done}:00Z")));
        let hours = format!("{}", 2.9 + 0.04 * number as f64);
        let id = task["id"].as_str().expect("an id");
        world.run(&["calendar", "done", id, &hours]).ok();
        let node = world.get(&format!("http://d/v1/graph/nodes/task:{id}"));
        assert_eq!(day(&node["changed"]["at"]), format!("2026-{}", &done[..5]), "{node}");
        let blocks = world.blocks(&first, MONDAY);
        let block = blocks.iter().find(|one| one["task"] == json!(format!("task:{id}")));
        if let Some(ended) = block.filter(|one| one["state"] != "deleted") {
            assert_eq!(moment(ended, "done_at").rfc3339()[..16], format!("2026-{done}"), "{ended}");
        }
    }

    // Friday evening: what was learned. It counts once a person says so, on the next Monday.
    wall.set(at("2026-04-03T16:00:00Z"));
    world.run(&["insights", "reflect"]).ok();
    let insights = world.asked(&["insights"]);
    let all = insights["insights"].as_array().expect("insights");
    let found = |id: &str| all.iter().find(|one| one["id"] == id).cloned();
    let learned = found("estimate-code").unwrap_or_else(|| panic!("{insights}"));
    assert_eq!(learned["in_force"], Value::Null);
    assert_eq!(day(&learned["made"]["at"]), "2026-04-03");
    let factor = learned["change"]["factor"].as_f64().expect("a factor");
    assert!((1.45..1.55).contains(&factor), "{learned}");
    let own = all.iter().any(|one| one["pattern"] == "Options are always three");
    assert!(own, "what the mind stage said is kept: {insights}");
    let evidence = world.run(&["insights", "evidence", "estimate-code"]).ok().out;
    assert!(evidence.contains("task:") && evidence.contains("decision:"), "{evidence}");
    wall.set(at("2026-04-06T07:00:00Z"));
    world.run(&["insights", "accept", "estimate-code"]).ok();
    assert_eq!(world.run(&["insights", "accept", "estimate-code"]).code, 1, "once is enough");
    let versions = world.asked(&["params"]);
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2), "{versions}");
    assert_eq!(day(&versions["versions"][1]["at"]), "2026-04-06", "{versions}");

    // The second run ranks and estimates by it, and says why.
    let second = world.begin("Have another tool");
    let choice = world.question(&second, "decision_approval");
    let ranking = choice.pointer("/handoff/offer/outputs/ranking").expect("a ranking");
    assert_eq!(ranking["winner"], "b", "{ranking}");
    assert_eq!((&ranking["version"], &ranking["learned"][0]["version"]), (&json!(2), &json!(2)));
    let id = choice["id"].as_str().expect("a handoff");
    let why = world.run(&["why", &format!("{second}:{id}")]).ok().out;
    let says = "work of the kind `code` takes 1.5";
    assert!(why.contains(says) && why.contains("insight:estimate-code, version 2"), "{why}");
    world.answer(&choice, "a");
    let plan = world.question(&second, "plan_approval");
    let estimate = plan.pointer("/handoff/offer/outputs/plan/estimates/0").expect("an estimate");
    let hours = estimate["hours"].as_f64().expect("hours");
    assert_eq!(estimate["estimated"], 2.0);
    assert!((2.9..3.1).contains(&hours), "{estimate}");
    let id = plan["id"].as_str().expect("a handoff");
    let why = world.run(&["why", &format!("{second}:{id}")]).ok().out;
    assert!(why.contains(says), "{why}");
    world.answer(&plan, "drop");

    // Going back behind it takes it away again.
    world.run(&["params", "rollback", "1"]).ok();
    let insights = world.asked(&["insights"]);
    let list = insights["insights"].as_array().expect("insights");
    assert!(list.iter().all(|one| one["in_force"].is_null()), "{insights}");

    // A question that nobody answers has its week, by the same clock.
    let third = world.begin("Have no tool");
    world.question(&third, "decision_approval");
    wall.set(at("2026-04-14T08:00:00Z"));
    until("the end of its time", || {
        (world.asked(&["status", &third])["status"] == "failed").then_some(())
    });

    // The talk can be found.
    let hits = world.asked(&["threads", "--search", "fits goals"]);
    assert!(hits["hits"].as_array().is_some_and(|hits| !hits.is_empty()), "{hits}");
    let talk = world.asked(&["threads", &format!("{first}.decisions")]);
    let roles: Vec<&str> = talk["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|m| m["role"].as_str())
        .collect();
    assert!(roles.contains(&"human") && roles.contains(&"decisions"), "{talk}");
    world.run(&["down"]).ok();
}

/// A moment of an answer.
fn moment(of: &Value, name: &str) -> Time {
    Time(of[name].as_i64().unwrap_or_else(|| panic!("no {name} in {of}")))
}

/// The date of a moment, as it is on the wire.
fn day(value: &Value) -> String {
    let text = value.as_i64().map(|at| Time(at).rfc3339());
    let text = text.or_else(|| value.as_str().map(str::to_owned)).unwrap_or_default();
    text.chars().take(10).collect()
}

#[test]
fn s1_10_what_was_learned_changes_the_second_run_with_the_graph_in_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let office = Office::open(&folder.path().join("radicale"));
    let wall = Wall::at(folder.path(), MONDAY);
    let world = project("graph = \"sqlite\"\n", &office.lines);
    what_was_learned_changes_the_second_run(&world, &office, &wall);
}

#[test]
fn s1_12_what_was_learned_changes_the_second_run_with_the_graph_in_neo4j() {
    let folder = tempfile::tempdir().expect("a folder");
    let office = Office::open(&folder.path().join("radicale"));
    let wall = Wall::at(folder.path(), MONDAY);
    let server = Neo4j::start(&folder.path().join("neo4j")).expect("Neo4j starts");
    let lines = format!("graph = \"neo4j\"\nneo4j = {{ uri = \"{}\" }}\n", server.uri());
    let world = project(&lines, &office.lines);
    what_was_learned_changes_the_second_run(&world, &office, &wall);
}
