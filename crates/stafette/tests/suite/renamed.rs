//! A project's folder gets another name: its runs are found again, when a person says so.

use std::fs;

use crate::world::{ECHO, Said, WAITS, World, until_so};

/// A project with one run, whose folder was renamed afterwards.
fn renamed() -> (World, String) {
    let world = World::workflow(ECHO);
    let run = world.run(&["run", "before", "--json"]).ok().json()["run"].clone();
    world.run(&["down"]).ok();
    let (here, there) = (world.project(), world.home().join("renamed"));
    fs::rename(here, there).expect("renamed");
    (world, run.as_str().expect("a run").to_owned())
}

/// Runs a command in the folder with the new name.
fn run(world: &World, arguments: &[&str]) -> Said {
    let folder = world.home().join("renamed");
    let output = world
        .command(crate::world::program())
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the program runs");
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn b_01_the_runs_of_a_renamed_folder_are_taken_along_when_a_person_says_so() {
    let (world, kept) = renamed();
    let hint = format!("This project was at {}: `stafette state adopt`", world.project().display());
    // It is said as long as it is so, also once a daemon has begun a state there.
    let alone = run(&world, &[]);
    assert!(alone.out.contains(&hint), "{alone:?}");
    assert!(alone.out.contains("Next: stafette state adopt"), "{alone:?}");
    for command in [&["status"][..], &["run", "anew"], &["status"]] {
        let said = run(&world, command);
        assert!(said.err.contains(&hint), "{command:?}: {said:?}");
        assert!(!said.out.contains("before"), "nothing is moved by itself: {said:?}");
    }
    run(&world, &["down"]).ok();
    let asked = run(&world, &["state", "adopt"]);
    assert!(asked.code == 2 && asked.err.contains("Take its runs"), "{asked:?}");
    run(&world, &["state", "adopt", "--yes"]).ok();
    let listed = run(&world, &["status", "--json"]).ok();
    assert!(listed.out.contains(&kept) && !listed.err.contains("was at"), "{listed:?}");
    assert!(run(&world, &[]).out.contains("not trusted"), "trust is given for a path");
    run(&world, &["trust", "--yes"]).ok();
    run(&world, &["run", "after"]).ok();
    run(&world, &["down"]).ok();
    let again = run(&world, &["state", "adopt"]);
    assert!(again.code == 2 && again.err.contains("nothing to adopt"), "{again:?}");
}

#[test]
fn b_20_runs_are_not_offered_to_another_folder() {
    let offered = |world: &World| {
        let said = run(world, &["state", "adopt", "--yes"]);
        assert_eq!(said.code == 0, said.err.contains("trust is given for a path"), "{said:?}");
        said.code == 0
    };
    // Something is at the old path again.
    let (world, _) = renamed();
    fs::create_dir_all(world.project()).expect("a folder");
    assert!(!offered(&world));
    fs::remove_dir(world.project()).expect("removed");
    assert!(offered(&world));
    // Another folder, as a copy is.
    let (world, _) = renamed();
    let (there, other) = (world.home().join("renamed"), world.home().join("other"));
    crate::world::copy(&there, &other);
    fs::rename(there, world.home().join("away")).expect("renamed");
    fs::rename(other, world.home().join("renamed")).expect("renamed");
    assert!(!offered(&world));
    // The folder has runs of its own by now.
    let (world, _) = renamed();
    run(&world, &["trust", "--yes"]).ok();
    run(&world, &["run", "of its own"]).ok();
    run(&world, &["down"]).ok();
    let said = run(&world, &["state", "adopt", "--yes"]);
    assert!(said.code == 1 && said.err.contains("has runs already"), "{said:?}");
}

#[test]
fn b_01_a_folder_that_is_renamed_under_its_daemon_is_said_to_have_moved() {
    let world = World::workflow(WAITS);
    world.run(&["run", "--detach", "before"]).ok();
    until_so("it has begun", || world.project().join("begun").exists());
    let log = world.state().join("daemon.log");
    fs::rename(world.project(), world.home().join("renamed")).expect("renamed");
    for command in [&["status"][..], &["run", "--detach", "anew"], &["inbox"]] {
        let said = run(&world, command);
        assert!(said.err.contains("This project was at"), "{command:?}: {said:?}");
        assert!(!said.err.contains("free some space"), "{command:?}: {said:?}");
    }
    let log = fs::read_to_string(log).expect("a log");
    assert!(log.contains("was moved or removed"), "{log}");
    run(&world, &["down"]).ok();
}

#[test]
fn b_20_a_run_that_is_taken_along_continues_only_where_its_workflow_is_trusted() {
    let world = World::workflow(WAITS);
    world.run(&["run", "--detach", "before"]).ok();
    until_so("it has begun", || world.project().join("begun").exists());
    world.run(&["down"]).ok();
    fs::remove_file(world.project().join("begun")).expect("it was there");
    let folder = world.home().join("renamed");
    fs::rename(world.project(), &folder).expect("renamed");
    run(&world, &["state", "adopt", "--yes"]).ok();
    // Be it as it was, or changed meanwhile: nobody has trusted it here.
    for text in [WAITS, ECHO] {
        fs::write(folder.join("stafette.toml"), text).expect("written");
        let up = run(&world, &["up"]).ok();
        assert!(up.err.contains("stays stopped: nobody has trusted"), "{up:?}");
        let refused = run(&world, &["run", "anew"]);
        assert!(refused.code == 2 && refused.err.contains("not trusted"), "{refused:?}");
        assert!(!refused.err.contains("continues"), "{refused:?}");
        run(&world, &["down"]).ok();
    }
    // Another workflow is trusted here: the run's own is not.
    run(&world, &["trust", "--yes"]).ok();
    let up = run(&world, &["up"]).ok();
    assert!(up.err.contains("is not what was trusted here"), "{up:?}");
    assert!(!folder.join("begun").exists(), "nothing of it was started");
    fs::write(folder.join("go"), "").expect("written");
    fs::write(folder.join("stafette.toml"), WAITS).expect("written");
    run(&world, &["trust", "--yes"]).ok();
    run(&world, &["resume"]).ok();
    assert!(folder.join("begun").exists());
    run(&world, &["down"]).ok();
}
