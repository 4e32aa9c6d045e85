//! Rubbish in: one clear message, a documented exit code, nothing lost.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};

use crate::world::World;

#[test]
fn without_a_project_every_command_says_how_to_get_one() {
    let world = World::new();
    for command in [&["run", "x"][..], &["status"], &["inbox"], &["up"], &["trust"], &["check"]] {
        let said = world.run(command);
        assert_eq!(said.code, 2, "{command:?} {said:?}");
        assert!(said.err.contains("stafette init"), "{said:?}");
    }
    assert_eq!(world.run(&["nonsense"]).code, 2);
}

#[test]
fn a_workflow_with_a_cycle_that_no_loop_declares_does_not_run() {
    let world = World::new();
    world.write(
        "stafette.toml",
        r#"
[workflow]
name = "round"
entry = "a"
[agents.a]
runner = "exec"
command = ["true"]
[agents.b]
runner = "exec"
command = ["true"]
[[routes]]
from = "a"
to = "b"
[[routes]]
from = "b"
to = "a"
"#,
    );
    let said = world.run(&["check"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("a → b → a"), "{said:?}");
    let said = world.run(&["run", "--foreground", "x"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("a → b → a"), "{said:?}");
}

#[test]
fn a_store_from_a_newer_version_is_left_alone() {
    let world = World::example("refusals/unknown");
    world.run(&["run", "--foreground", "x"]).ok();
    let store = world.state().join("store.db");
    // The version of the tables stands in the file's header.
    let mut file = OpenOptions::new().write(true).open(&store).expect("the store");
    file.seek(SeekFrom::Start(60)).expect("seek");
    file.write_all(&999_u32.to_be_bytes()).expect("written");
    drop(file);
    let before = fs::read(&store).expect("the store");
    for command in [&["run", "x"][..], &["run", "--foreground", "x"], &["status"]] {
        let said = world.run(command);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("newer version") && said.err.contains("fix: update"), "{said:?}");
    }
    assert_eq!(fs::read(&store).expect("the store"), before);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let world = World::example("refusals/unknown");
    // Where the state should be, something else is: nobody can write there, not even root.
    let place = world.home().join(".local/state");
    let _ = fs::remove_dir_all(&place);
    fs::write(&place, "a file").expect("written");
    let said = world.run(&["run", "x"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("Cannot write") && said.err.contains(".local/state"), "{said:?}");
    assert_eq!(fs::read_to_string(place).expect("a file"), "a file");
}

#[test]
fn a_full_store_says_so_and_goes_on_when_there_is_room() {
    let world = World::example("refusals/unknown");
    world.run(&["run", "--foreground", "first"]).ok();
    let small = [("STAFETTE_STORE_MAX_BYTES", "4096")];
    // Too much for the room that is left within the file.
    let second = "second ".repeat(15_000);
    let said = world.run_with(&["run", "--foreground", &second], b"", &small);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("no room left"), "{said:?}");
    world.run(&["run", "--foreground", "third"]).ok();
    let runs = world.run(&["status", "--json"]).ok().json();
    let requests: Vec<&str> =
        runs.as_array().expect("runs").iter().filter_map(|run| run["request"].as_str()).collect();
    assert_eq!(requests, ["third", "first"]);
}

#[test]
fn names_that_do_not_exist_are_said_to_not_exist() {
    let world = World::example("refusals/unknown");
    world.run(&["run", "--foreground", "x"]).ok();
    for (command, code) in [
        (&["status", "ffffffff"][..], 1),
        (&["why", "h99"], 1),
        (&["why", "nonsense"], 1),
        (&["answer", "h7", "yes"], 1),
        (&["cancel"], 1),
        (&["run", "x", "--budget", "lots"], 2),
        (&["run", "x", "--input", "novalue"], 2),
        (&["run", "   "], 2),
    ] {
        let said = world.run(command);
        assert_eq!(said.code, code, "{command:?} {said:?}");
        assert!(said.err.starts_with("error: "), "{said:?}");
    }
}

#[test]
fn errors_are_json_for_programs() {
    let world = World::new();
    let error = world.run(&["status", "--json"]).json();
    assert_eq!(error["error"]["exit"], 2);
    assert!(error["error"]["fix"].as_str().expect("a fix").contains("stafette init"));
}
