//! The demonstration, whole and killed.

use std::process::Command;

use serde_json::Value;

use crate::world::{Said, World};

fn git(said: &Value, arguments: &[&str]) -> String {
    let folder = said["repository"].as_str().expect("a repository");
    let output = Command::new("git").args(["-C", folder]).args(arguments).output().expect("git");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn demo(world: &World, more: &[&str]) -> Said {
    let folder = world.project().join("demo");
    let folder = folder.to_str().expect("UTF-8");
    let arguments = [&["demo", "--headless", "--json", "--dir", folder], more].concat();
    world.run(&arguments).ok()
}

#[test]
fn s5_11_the_example_runs_from_one_command() {
    let said = demo(&World::new(), &[]);
    assert_eq!(said.out.lines().count(), 1, "one line for programs");
    let line = said.json();
    assert_eq!(line["status"], "succeeded");
    assert_eq!(line["handoffs"], 4);
    assert_eq!(line["rounds"], 2);
    assert_eq!((&line["lost"], &line["repeated"]), (&0.into(), &0.into()));
    assert!(line["elapsed_ms"].is_u64());
    assert_eq!(
        said.err.lines().filter(|line| line.contains(" → ")).collect::<Vec<_>>(),
        [
            "→   h1 human → planner  task_handoff: Add user auth",
            "→   h2 planner → builder  task_handoff: Specification in specs/auth.md",
            "→   h3 builder → reviewer  review_request: auth.sh with tests",
            "→   h4 reviewer → fixer  fix_request: 2 issues",
            "→   h5 fixer → reviewer  rereview_request: Both issues fixed",
        ]
    );
}

#[test]
fn s5_11_the_repository_that_it_leaves_holds_the_agents_commits() {
    let world = World::new();
    let line = demo(&world, &[]).json();
    assert_eq!(git(&line, &["log", "--format=%an"]), "fixer\nbuilder\nplanner\ndemo\n");
    assert_eq!(git(&line, &["status", "--porcelain"]), "");
    let folder = line["repository"].as_str().expect("a repository");
    let tests = Command::new("sh").arg("tests/auth.sh").current_dir(folder).status();
    assert!(tests.expect("sh").success(), "what they built works");
}

#[test]
fn b_15_killed_again_and_again_it_loses_nothing_and_repeats_nothing() {
    let mut crashes = 0;
    for seed in ["1", "2", "3", "4"] {
        let world = World::new();
        let line = demo(&world, &["--crash", "--crashes", "6", "--seed", seed]).json();
        assert_eq!(line["status"], "succeeded", "{line}");
        assert_eq!((&line["lost"], &line["repeated"]), (&0.into(), &0.into()), "{line}");
        let keys = git(&line, &["log", "--format=%(trailers:key=Stafette-Turn,valueonly)"]);
        let mut keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!((keys.len(), all), (3, 3), "each turn committed once: {line}");
        crashes += line["crashes"].as_u64().expect("a number");
    }
    assert!(crashes >= 8, "only {crashes} crashes in four runs");
}

#[test]
fn it_does_not_touch_a_folder_that_is_in_use() {
    let world = World::new();
    world.write("demo/mine.txt", "mine");
    let folder = world.project().join("demo");
    let said = world.run(&["demo", "--dir", folder.to_str().expect("UTF-8")]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("is not empty"), "{said:?}");
    assert_eq!(world.read("demo/mine.txt"), "mine");
}
