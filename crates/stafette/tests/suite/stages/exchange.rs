//! The graph goes from one home to the other, and back.

use stafette_testkit::neo4j::Neo4j;

use super::{project, until};
use crate::world::World;

fn exported(world: &World, name: &str) -> Vec<String> {
    let file = world.home().join(name);
    let path = file.to_str().expect("a plain path");
    let said = world.asked(&["graph", "export", path]);
    let text = std::fs::read_to_string(&file).expect("the file");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let records = said["nodes"].as_u64().unwrap_or(0) + said["links"].as_u64().unwrap_or(0);
    assert_eq!(records + 1, lines.len() as u64, "a header, and all of them: {said}");
    lines
}

#[test]
fn s1_12_a_graph_is_taken_from_sqlite_to_neo4j_and_is_the_same_there() {
    let one = project("graph = \"sqlite\"\n", "folder = \"calendar\"\n");
    let run = one.begin("Have a tool");
    one.answer(&one.question(&run, "decision_approval"), "a");
    one.question(&run, "plan_approval");
    one.mirrored(&run);
    until("the decision", || (one.nodes("Decision", &run) == 1).then_some(()));
    one.run(&["cancel", &run]).ok();
    one.mirrored(&run);
    let lines = exported(&one, "graph.jsonl");
    let file = one.home().join("graph.jsonl");
    let path = file.to_str().expect("a plain path");
    let again = one.run(&["graph", "export", path]);
    assert_eq!(again.code, 1, "a file that is there is not touched: {again:?}");

    let folder = tempfile::tempdir().expect("a folder");
    let server = Neo4j::start(&folder.path().join("neo4j")).expect("Neo4j starts");
    let home = format!("graph = \"neo4j\"\nneo4j = {{ uri = \"{}\" }}\n", server.uri());
    let other = project(&home, "folder = \"calendar\"\n");
    other.run(&["up"]).ok();
    // Its own goals are there first.
    until("the goals", || other.run(&["graph"]).ok().out.starts_with("3 nodes").then_some(()));
    let first = other.asked(&["graph", "import", path]);
    assert_eq!(first["nodes"].as_u64().map(|nodes| nodes > 8), Some(true), "{first}");
    assert_eq!(other.asked(&["graph", "import", path]), first, "a second time changes nothing");
    let parsed = |lines: &[String]| -> Vec<serde_json::Value> {
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    assert_eq!(parsed(&exported(&other, "back.jsonl")), parsed(&lines));
    let decision = other.get("http://d/v1/goals");
    assert!(decision.to_string().contains(&run), "it can be walked through: {decision}");

    // What is no export is refused, and so is one of another time.
    for (text, words) in [
        ("hello\n", "is no export"),
        ("{\"stafette_graph\":99}\n", "`stafette_graph` is 99"),
        ("{\"stafette_graph\":1}\nnonsense\n", "line 2"),
        ("{\"stafette_graph\":1}\n{\"node\":{}}\n", "lines 2 to 2"),
    ] {
        other.write("odd.jsonl", text);
        let refused = other.run(&["graph", "import", "odd.jsonl"]);
        assert!(refused.code != 0 && refused.err.contains(words), "{words}: {refused:?}");
    }
    for world in [&one, &other] {
        world.run(&["down"]).ok();
    }
}
