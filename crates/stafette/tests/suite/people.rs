//! People who are not always there.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::world::World;

/// A team whose planner asks with ten minutes to answer, while nobody is at work for hours.
fn asks_while_away(when_away: &str) -> World {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    // In UTC, three hours from now or a little later: never now, and not over midnight.
    let from = (now / 3600 + 3) % 23;
    let world = World::workflow(&format!(
        "[workflow]\nname = \"away\"\nentry = \"planner\"\n\
         [agents.planner]\nrunner = \"scripted\"\nscript = \"planner.toml\"\n\
         [knowledge]\n[knowledge.week]\nhours = [\"{from:02}:00-{:02}:00\"]\n\
         days = [\"monday\", \"tuesday\", \"wednesday\", \"thursday\", \"friday\", \"saturday\", \
         \"sunday\"]\n[knowledge.people]\nwhen_away = \"{when_away}\"\n",
        from + 1
    ));
    world.write(
        "planner.toml",
        r#"
[[turn]]
when = { turn = 2 }
steps = [{ emit = "RESULT", payload = { status = "resolved", summary = "built so" } }]
[[turn]]
when = { turn = 1 }
steps = [{ emit = "HANDOFF", payload = { to = "human", reason = "requires_human_decision", question = {
  reason = "architecture", details = "Tokens or sessions?", options = ["tokens", "sessions"],
  blocking = true, default = "tokens", within = "10m" } } }]
"#,
    );
    world.run(&["trust", "--yes"]).ok();
    world
}

#[test]
fn b_13_a_question_waits_until_somebody_is_at_work() {
    let world = asks_while_away("move");
    assert_eq!(world.run(&["run", "Add a login"]).code, 3, "it asks");
    let since = Instant::now();
    let moved = loop {
        let events = world.run(&["log", "--json"]).ok().lines();
        let moved = events.into_iter().find(|event| event["event"] == "question_postponed");
        if let Some(moved) = moved {
            break moved;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "nobody thought of the hours");
        std::thread::park_timeout(Duration::from_millis(20));
    };
    let until = moved["until"].as_u64().expect("a time");
    // Ten minutes after work begins.
    assert_eq!(until / 60_000 % 60, 10, "{moved}");
    assert!(moved["why"].as_str().is_some_and(|why| why.contains("hours")), "{moved}");
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    assert!(inbox.to_string().contains("Tokens or sessions?"), "still open: {inbox}");
}

#[test]
fn b_13_what_nobody_can_answer_in_time_gets_its_default() {
    let world = asks_while_away("default");
    world.run(&["run", "Add a login", "--detach"]).ok();
    let view = world.run(&["resume", "--json"]);
    let since = Instant::now();
    while world.run(&["status", "--json"]).ok().json()[0]["status"] != "succeeded" {
        assert!(since.elapsed() < Duration::from_secs(60), "{view:?}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let events = world.run(&["log", "--json"]).ok().lines();
    let answered = events.iter().find(|event| event["event"] == "question_answered");
    let answered = answered.expect("an answer");
    assert!(answered.to_string().contains("tokens") && answered.to_string().contains("default"));
}
