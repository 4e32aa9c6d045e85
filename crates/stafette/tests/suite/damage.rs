//! Bytes of the store change while nobody looks: the run is stopped and named, the others go on.

use std::fs;

use crate::world::{ECHO, WAITS, World, until_so};

/// Changes one digit of the event in which a run's first turn was ordered.
fn damage(world: &World, run: &str) {
    let path = world.state().join("store.db");
    let mut bytes = fs::read(&path).expect("the store");
    let event = format!(r#"{{"event":"turn_ordered","turn":"{run}/h1/1.1"#);
    let event = event.as_bytes();
    let windows = bytes.windows(event.len()).enumerate();
    // Pages that were split leave copies behind, which nobody reads.
    let places: Vec<usize> =
        windows.filter(|(_, window)| *window == event).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "the event is there");
    for at in places {
        bytes[at + event.len() - 1] = b'3';
    }
    fs::write(&path, bytes).expect("written");
}

#[test]
fn b_01_a_run_with_a_damaged_event_is_stopped_and_named_and_others_go_on() {
    let world = World::workflow(WAITS);
    let begin = |request| world.run(&["run", "--detach", request]).ok().out.trim().to_owned();
    let (bad, good) = (begin("first"), begin("second"));
    until_so("an agent works", || world.project().join("begun").exists());
    let ordered = |run: &str| world.run(&["log", run]).ok().out.contains("turn_ordered");
    until_so("both have a turn", || ordered(&bad) && ordered(&good));
    world.run(&["down"]).ok();
    damage(&world, &bad);
    world.write("go", "");

    let damaged = format!("event 3 of run {bad} is damaged");
    let said = world.run(&["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains(&damaged) && said.out.contains("backup"), "{said:?}");

    world.up(&[]).expect("a daemon");
    world.run(&["resume", &good]).ok();
    let shown = world.run(&["status", &bad]).ok();
    assert!(shown.out.contains(&format!("stopped: {damaged}")), "{shown:?}");
    assert!(shown.err.contains("1 run with damaged events: see `stafette doctor`"), "{shown:?}");
    let log = world.run(&["log", &bad, "--json"]).ok();
    let named = log.lines().into_iter().find(|line| line["event"] == "event_damaged");
    assert!(named.is_some_and(|line| line["seq"] == 3 && line["why"] == damaged), "{log:?}");
    assert!(log.out.contains("session_changed"), "what comes after it can be read: {log:?}");
    for command in [&["why", &format!("{bad}:h1")][..], &["pause", &bad], &["cancel", &bad]] {
        let said = world.run(command);
        assert_eq!(said.code, 1, "{command:?}: {said:?}");
        assert!(said.err.contains(&damaged) && said.err.contains("backup"), "{said:?}");
    }
    world.run(&["run", "third"]).ok();
}

#[test]
fn b_01_a_store_that_is_gone_is_said_and_no_new_one_begins_by_itself() {
    let world = World::workflow(ECHO);
    world.run(&["run", "before"]).ok();
    world.run(&["down"]).ok();
    let store = world.state().join("store.db");
    let whole = fs::read(&store).expect("the store");
    let half = whole[..whole.len() / 2].to_vec();
    let garbage = b"no store at all".repeat(1000);
    let losses =
        [(None, "not there"), (Some(Vec::new()), "empty"), (Some(half), ""), (Some(garbage), "")];
    for (left, why) in losses {
        for name in ["store.db", "store.db-wal", "store.db-shm"] {
            let _ = fs::remove_file(world.state().join(name));
        }
        left.iter().for_each(|bytes| fs::write(&store, bytes).expect("written"));
        for command in ["status", "doctor"] {
            let said = world.run(&[command]);
            let told = format!("{}{}", said.out, said.err);
            assert_eq!(said.code, 1, "{why}: {said:?}");
            assert!(told.contains("from a backup") && told.contains(why), "{why}: {said:?}");
            assert!(told.contains("stafette state forget"), "{why}: {said:?}");
        }
        assert_eq!(fs::read(&store).ok(), left, "it is left as it is");
    }
    world.run(&["state", "forget", "--yes"]).ok();
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "anew"]).ok();
}
