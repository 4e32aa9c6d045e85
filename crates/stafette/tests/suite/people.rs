//! People who are not always there.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::world::{World, until, until_so};

/// A team whose planner asks with ten minutes to answer, while nobody is at work for hours.
fn asks_while_away(when_away: &str) -> World {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    // In UTC, three hours from now or a little later: never now, and not over midnight.
    let from = (now / 3600 % 24 + 3) % 23;
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
    let moved = until("somebody thinks of the hours", || {
        let events = world.run(&["log", "--json"]).ok().lines();
        events.into_iter().find(|event| event["event"] == "question_postponed")
    });
    let postponed = moved["until"].as_u64().expect("a time");
    // Ten minutes after work begins.
    assert_eq!(postponed / 60_000 % 60, 10, "{moved}");
    assert!(moved["why"].as_str().is_some_and(|why| why.contains("hours")), "{moved}");
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    assert!(inbox.to_string().contains("Tokens or sessions?"), "still open: {inbox}");
}

#[test]
fn b_13_what_nobody_can_answer_in_time_gets_its_default() {
    let world = asks_while_away("default");
    world.run(&["run", "Add a login", "--detach"]).ok();
    world.run(&["resume", "--json"]);
    until_so("it goes on by itself", || {
        world.run(&["status", "--json"]).ok().json()[0]["status"] == "succeeded"
    });
    let events = world.run(&["log", "--json"]).ok().lines();
    let answered = events.iter().find(|event| event["event"] == "question_answered");
    let answered = answered.expect("an answer");
    assert!(answered.to_string().contains("tokens") && answered.to_string().contains("default"));
}
