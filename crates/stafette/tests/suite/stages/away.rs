//! The graph is away, or the daemon is killed: nothing is lost, and nothing is there twice.

use serde_json::{Value, json};
use stafette_testkit::neo4j::Neo4j;

use super::project;
use crate::world::until;

#[test]
fn s1_05_while_neo4j_is_away_people_are_told_and_afterwards_everything_is_there_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Neo4j::start(&folder.path().join("neo4j")).expect("Neo4j starts");
    let lines = format!("graph = \"neo4j\"\nneo4j = {{ uri = \"{}\" }}\n", server.uri());
    let world = project(&lines, "folder = \"calendar\"\n");
    world.run(&["up"]).ok();
    let before = world.begin("While all is well");
    world.question(&before, "decision_approval");
    world.mirrored(&before);
    server.kill();

    // The work goes on, and everyone who looks hears of it.
    let during = world.begin("While the graph is away");
    let choice = world.question(&during, "decision_approval");
    world.answer(&choice, "b");
    world.question(&during, "plan_approval");
    let code = "MCP_CONNECTION_FAILED";
    until("the word of it", || world.run(&["status"]).ok().err.contains(code).then_some(()));
    let doctor = world.run(&["doctor"]).out;
    assert!(doctor.contains(code), "{doctor}");
    until("an alert in the run", || {
        let events = world.run(&["log", &before, "--json"]).ok().out;
        events.contains(code).then_some(())
    });

    // The daemon dies as well; what waits is in its file.
    let pid = world.get("http://d/healthz")["pid"].as_u64().expect("a process");
    let mut kill = world.command("kill");
    crate::mcp::said(kill.args(["-9", &pid.to_string()])).ok();
    world.run(&["up"]).ok();
    server.start_again().expect("Neo4j starts again");
    until("the queue to drain", || {
        let health = world.get("http://d/v1/knowledge");
        (health.pointer("/condition/code") == Some(&Value::Null)).then_some(())
    });
    for run in [&before, &during] {
        world.mirrored(run);
    }
    let health = world.get("http://d/v1/knowledge");
    assert_eq!(health["set_aside"], json!([]), "none was refused: {health}");
    let decisions = world.asked(&["roi"]);
    assert_eq!(decisions["decisions"].as_array().map(Vec::len), Some(1), "{decisions}");
    world.run(&["down"]).ok();
}

#[test]
fn s1_18_a_daemon_that_is_killed_mirrors_and_records_everything_once() {
    let world = project("graph = \"sqlite\"\n", "folder = \"calendar\"\n");
    let mut runs = Vec::new();
    for round in 0..4 {
        runs.push(world.begin(&format!("Round {round}")));
        // In the midst of it, wherever that is.
        world.run(&["handoffs", "latest", "--json"]);
        let pid = world.get("http://d/healthz")["pid"].as_u64().expect("a process");
        let mut kill = world.command("kill");
        crate::mcp::said(kill.args(["-9", &pid.to_string()])).ok();
    }
    world.run(&["up"]).ok();
    for run in &runs {
        world.question(run, "decision_approval");
        world.mirrored(run);
        let talk = until("the talk", || {
            let talk = world.asked(&["threads", &format!("{run}.discuss")]);
            (talk["messages"].as_array()?.len() >= 2).then_some(talk)
        });
        let bodies: Vec<&Value> =
            talk["messages"].as_array().into_iter().flatten().map(|m| &m["id"]).collect();
        let mut once = bodies.clone();
        once.dedup();
        assert_eq!(bodies, once, "{talk}");
    }
    world.run(&["down"]).ok();
}
