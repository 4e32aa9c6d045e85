//! A daemon goes by what `[knowledge]` said when it started: whoever wants something else is told.

use super::{project, trusted, until};
use crate::world::{ECHO, World};

/// What is said of it everywhere.
const WORDS: &str = "[knowledge] in stafette.toml is not as it was when the daemon started";

#[test]
fn s1_14_a_run_by_other_hours_begins_once_the_daemon_goes_by_them() {
    let world = project("graph = \"sqlite\"\n", "folder = \"calendar\"\n");
    world.run(&["up"]).ok();
    let first = world.begin("As it was");
    let choice = world.question(&first, "decision_approval");
    assert!(!world.run(&["status"]).ok().err.contains(WORDS));
    let before = "hours = [\"09:00-12:00\", \"13:00-17:00\"]";
    let text = world.read("stafette.toml");
    assert!(text.contains(before), "{text}");
    let world = trusted(world, &text.replace(before, "hours = [\"06:00-08:30\"]"));

    let refused = world.run(&["run", "By other hours", "--detach"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains(WORDS) && refused.err.contains("stafette down"), "{refused:?}");
    for command in ["status", "doctor"] {
        let said = world.run(&[command]);
        assert!(format!("{}{}", said.out, said.err).contains(WORDS), "{command}: {said:?}");
    }
    // What goes on goes on.
    world.answer(&choice, "a");
    world.question(&first, "plan_approval");

    world.run(&["down"]).ok();
    let second = world.begin("By other hours");
    assert!(!world.run(&["status"]).ok().err.contains(WORDS));
    world.answer(&world.question(&second, "decision_approval"), "a");
    let plan = world.question(&second, "plan_approval");
    let block = plan.pointer("/handoff/offer/outputs/plan/blocks/0/start").expect("a block");
    let start = super::at(block.as_str().expect("a moment"));
    // Six in Berlin is four or five in UTC.
    let hour = start.0.rem_euclid(24 * 3_600_000) / 3_600_000;
    assert!((4..=5).contains(&hour), "{plan}");
    world.run(&["down"]).ok();
}

#[test]
fn s1_14_a_daemon_that_knows_nothing_begins_no_run_that_should() {
    let world = World::workflow(ECHO);
    world.run(&["up"]).ok();
    world.run(&["run", "Nothing to know"]).ok();
    let world = trusted(world, &format!("{ECHO}[knowledge]\ngraph = \"sqlite\"\n"));
    let refused = world.run(&["run", "Something to know"]);
    assert!(refused.code == 1 && refused.err.contains(WORDS), "{refused:?}");
    world.run(&["down"]).ok();
    world.run(&["run", "Something to know"]).ok();
    // What happened before it knew anything is known, too.
    until("the handoffs", || world.run(&["graph"]).ok().out.starts_with("2 nodes").then_some(()));
    world.run(&["down"]).ok();
}

#[test]
fn s1_08_a_run_does_not_go_on_without_what_it_goes_by() {
    let world = project("graph = \"sqlite\"\n", "folder = \"calendar\"\n");
    let run = world.begin("Have a tool");
    let choice = world.question(&run, "decision_approval");
    world.run(&["down"]).ok();
    // The next daemon finds a workflow that nobody has allowed.
    world.write("stafette.toml", &format!("# Edited.\n{}", world.read("stafette.toml")));
    world.run(&["up"]).ok();
    let id = format!("{run}:{}", choice["id"].as_str().expect("a handoff"));
    let refused = world.run(&["answer", &id, "a"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("this run goes by [knowledge]"), "{refused:?}");
    world.run(&["trust", "--yes"]).ok();
    world.run(&["down"]).ok();
    world.run(&["answer", &id, "a"]).ok();
    world.question(&run, "plan_approval");
    world.run(&["down"]).ok();
}
