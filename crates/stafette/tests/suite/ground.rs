//! What a daemon stands on is taken away while it works: it says so, and stops.

use std::fs;

use crate::world::{ECHO, Said, World, gone, lives};

/// The lines of the daemon's log that say why it stopped.
fn reasons(world: &World) -> Vec<String> {
    let log = world.kept("daemon.log");
    log.lines().filter(|line| line.contains("lost what it stands on")).map(str::to_owned).collect()
}

/// A run that was acknowledged is there, whichever daemon is asked.
fn is_kept(world: &World, said: &Said) {
    let listed = world.run(&["status", "--json"]).ok();
    assert!(listed.out.contains(said.out.trim()), "{said:?}, then {listed:?}");
}

#[test]
fn b_01_a_daemon_whose_store_is_removed_stops_and_says_why() {
    let world = World::workflow(ECHO);
    let pid = world.up(&[]).expect("a daemon");
    world.run(&["run", "before"]).ok();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        fs::remove_file(world.state().join(name)).expect("removed");
    }
    // It takes nothing more, and no other daemon begins anew by itself.
    let said = world.run(&["run", "--detach", "after"]);
    gone(pid);
    let why = ["store.db was removed while it was in use", "The runs of this project are gone"];
    assert!(said.code != 0 && why.iter().any(|why| said.err.contains(why)), "{said:?}");
    let said = reasons(&world);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("store.db was removed while it was in use"), "{said:?}");
    let said = world.run(&["run", "--detach", "anew"]);
    assert!(said.code == 1 && said.err.contains("stafette state forget"), "{said:?}");
}

#[test]
fn b_01_a_state_folder_that_is_removed_or_moved_never_makes_two_daemons() {
    for moved in [false, true] {
        let world = World::workflow(ECHO);
        let old = world.up(&[]).expect("a daemon");
        let state = world.state();
        let away = world.home().join("moved");
        match moved {
            true => fs::rename(&state, &away).expect("moved"),
            false => fs::remove_dir_all(&state).expect("removed"),
        }
        let new = world.up(&[]).expect("another daemon");
        assert_ne!(old, new);
        assert!(!lives(old), "the first has ended before the second began");
        is_kept(&world, &world.run(&["run", "--detach", "anew"]).ok());
        assert!(lives(new), "it is not disturbed by what the first left");
        if moved {
            let log = fs::read_to_string(away.join("daemon.log")).expect("a log");
            assert_eq!(log.matches("lost what it stands on").count(), 1, "{log}");
        }
    }
}

#[test]
fn b_01_a_daemon_that_cannot_be_found_any_more_stops() {
    for is_lock in [false, true] {
        let world = World::workflow(ECHO);
        let old = world.up(&[]).expect("a daemon");
        let path = match is_lock {
            true => world.project().join(".stafette/lock"),
            false => world.state().join("daemon.sock"),
        };
        fs::remove_file(&path).expect("removed");
        gone(old);
        let said = reasons(&world);
        let named = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(said.len() == 1 && said[0].contains(&named), "{said:?}");
    }
}

#[test]
fn b_01_once_the_daemon_is_down_its_files_are_closed() {
    let world = World::workflow(ECHO);
    for _ in 0..5 {
        world.run(&["run", "something to find"]).ok();
        world.run(&["down"]).ok();
        let files = fs::read_dir(world.state()).expect("a folder");
        let names = files.map(|file| file.expect("a file").file_name());
        let open: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with("-wal")).collect();
        assert!(open.is_empty(), "{open:?}");
    }
}
