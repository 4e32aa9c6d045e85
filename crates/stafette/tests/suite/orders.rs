//! What a run wants done besides turns is done, whoever dies and however many speak at once.

use std::process::Command;

use serde_json::Value;

use crate::council::team_with_a_change;
use crate::world::{World, until};

/// A team of two, of which the second proposes to delete a file.
const TEAM: &str = r#"
[workflow]
name = "two"
entry = "planner"
[agents.planner]
runner = "scripted"
script = "planner.toml"
[agents.builder]
runner = "scripted"
script = "builder.toml"
[[routes]]
from = "planner"
to = "builder"
reason = "task_handoff"
"#;

const PLANNER: &str = r#"
[[turn]]
steps = [{ emit = "HANDOFF", payload = { to = "builder", summary = "Clean up" } }]
"#;

const BUILDER: &str = r#"
[[turn]]
steps = [{ emit = "CHANGE", payload = { reason = "Old", changes = [{ file = "old.txt", action = "delete" }] } }]
"#;

fn two() -> World {
    let files = [("planner.toml", PLANNER), ("builder.toml", BUILDER), ("old.txt", "old\n")];
    let world = World::with(TEAM, &files);
    assert_eq!(world.run(&["run", "Clean up", "--json"]).code, 3, "a deletion is asked about");
    world
}

fn change(world: &World) -> Value {
    world.run(&["changes", "--json"]).ok().json()["changes"][0].clone()
}

#[test]
fn b_22_why_of_a_change_shows_what_a_person_answered() {
    let world = two();
    let question = world.run(&["inbox", "--json"]).ok().json()[0]["id"].clone();
    world.run(&["answer", question.as_str().expect("an id"), "approve"]).ok();
    let why = world.run(&["why", "c1"]).ok().out;
    assert!(why.contains("asked you") && why.contains("you said  approve"), "{why}");
}

#[test]
fn b_18_two_who_decide_at_the_same_moment_leave_a_set_and_its_run_of_one_mind() {
    let world = two();
    for round in 0..6 {
        std::thread::scope(|scope| {
            for word in ["approve", "refuse"] {
                let world = &world;
                scope.spawn(move || world.run(&["changes", word, "c1"]).ok());
            }
        });
        let events = world.run(&["log", "--json"]).ok().lines();
        let mut settled = events.iter().rev().filter(|event| event["event"] == "change_settled");
        let last = settled.next().expect("a decision")["status"].clone();
        assert_eq!(change(&world)["status"], last, "round {round}");
    }
}

#[test]
fn s4_06_a_word_reaches_an_agent_that_is_not_the_first_after_the_end_of_its_run() {
    let world = two();
    let inbox = world.run(&["inbox", "--json"]).ok().out;
    assert!(inbox.contains("old.txt"), "{inbox}");
    world.run(&["changes", "refuse", "c1"]).ok();
    until("the run is over", || {
        let view = world.run(&["status", "--json"]).ok().json()[0].clone();
        (view["status"] == "succeeded").then_some(())
    });
    let said = world.run(&["changes", "comment", "c1", "Keep it", "--json"]).ok().json();
    assert_eq!(said["heard"]["by"], "revision", "{said}");
    let run = said["heard"]["run"].as_str().expect("a run").to_owned();
    let events = world.run(&["log", &run, "--json"]).ok().lines();
    let given: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "turn_ordered").collect();
    assert!(!given.is_empty(), "{events:?}");
    let first = events.iter().find(|event| event["event"] == "handoff_admitted").expect("one");
    assert_eq!(first["offer"]["to"], "builder", "nobody else is asked: {first}");
}

#[test]
fn b_01_the_outcome_of_a_run_is_proposed_wherever_the_daemon_is_killed() {
    let workflow = r#"
[workflow]
name = "own"
entry = "one"
worktrees = true
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "cat > /dev/null; echo changed > src.txt"]
"#;
    for place in (8..40).step_by(4) {
        let world = World::workflow(workflow);
        world.write("src.txt", "as it was\n");
        let mia = ["-c", "user.name=Mia", "-c", "user.email=mia@example.org"];
        for arguments in [
            &["init", "-q", "-b", "main"][..],
            &[&mia[..], &["add", "src.txt"]].concat(),
            &[&mia[..], &["commit", "-qm", "first"]].concat(),
        ] {
            let done = Command::new("git").args(arguments).current_dir(world.project()).status();
            assert!(done.expect("git").success());
        }
        let after = place.to_string();
        world.run_with(&["run", "Change it"], b"", &[("STAFETTE_CRASH_AFTER", &after)]);
        world.run(&["down"]);
        world.run(&["up"]).ok();
        until(&format!("a change after a crash at place {place}"), || {
            let list = world.run(&["changes", "--json"]).ok().json();
            let changes = list["changes"].as_array().expect("changes").clone();
            assert!(changes.len() <= 1, "place {place}: {list}");
            let events = world.run(&["log", "--json"]).ok().lines();
            let proposed = events.iter().filter(|event| event["event"] == "change_proposed");
            (changes.len() == 1 && proposed.count() == 1).then_some(())
        });
        world.run(&["apply", "c1"]).ok();
        assert_eq!(world.read("src.txt"), "changed\n", "place {place}");
    }
}

#[test]
fn s4_04_a_generation_that_is_about_to_begin_is_cancelled() {
    let world = team_with_a_change();
    let flags = ["--max-runs", "3", "--pause", "10m", "--detach"];
    let first = world.run(&[&["run", "Grow", "--continuous"], &flags[..]].concat()).ok().out;
    let first = first.trim();
    let log = || world.run(&["log", first, "--json"]).ok().lines();
    until("it hands over", || {
        let handed_over = |event: &&Value| event["event"] == "generation_handed_over";
        log().iter().find(handed_over).map(drop)
    });
    world.run(&["cancel", first]).ok();
    let last = log().last().expect("events").clone();
    assert_eq!((&last["event"], &last["order"]), (&"order_done".into(), &"begin".into()), "{last}");
    assert_ne!(world.run(&["cancel", first]).code, 0, "nothing is left to be cancelled");
}
