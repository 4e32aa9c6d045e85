//! Locks from the command line: real processes, real commits.

use std::fs;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::world::{ECHO, Said, World, gone, program, until_so};

fn world() -> World {
    let world = World::new();
    world.write("stafette.toml", ECHO);
    world
}

pub(crate) fn bob(world: &World, arguments: &[&str]) -> Said {
    world.run_with(arguments, b"", &[("USER", "bob")])
}

pub(crate) fn list(world: &World) -> Vec<Value> {
    let list = world.run(&["locks", "--json"]).ok().json();
    list["locks"].as_array().expect("locks").clone()
}

#[test]
fn s5_04_a_lock_is_taken_seen_refused_to_others_and_given_back() {
    let world = world();
    let said = world.run(&["lock", "src/**", "--reason", "big"]).ok();
    assert_eq!(said.out, "1\n");
    assert!(said.err.contains("src/** is yours for"), "{said:?}");
    let said = bob(&world, &["lock", "src/a.rs", "--wait", "0s"]);
    assert_eq!(said.code, 6, "{said:?}");
    assert!(said.err.contains("src/** is locked by ada until"), "{said:?}");
    let said = bob(&world, &["unlock", "src/**"]);
    assert_eq!(said.code, 6, "{said:?}");
    assert!(said.err.contains("l1 belongs to ada"), "{said:?}");
    assert_eq!(bob(&world, &["lock", "docs/", "--json"]).ok().json()["fence"], 2);
    let table = world.run(&["locks"]).ok().out;
    assert!(table.contains("l1    1      held   ada     "), "{table}");
    assert!(table.contains("docs/**"), "{table}");
    // The numbers go on after a restart of the daemon.
    world.run(&["down"]).ok();
    world.run(&["unlock", "--all"]).ok();
    assert_eq!(bob(&world, &["lock", "src/a.rs"]).ok().out, "3\n");
    for bad in ["../x", "/etc/passwd", ""] {
        assert_eq!(world.run(&["lock", bad]).code, 2, "{bad}");
    }
    assert_eq!(world.run(&["lock", "x", "--for", "25h"]).code, 2);
    assert_eq!(world.run(&["lock", "x", "--for", "soon"]).code, 2);
    assert_eq!(world.run(&["unlock", "nothing"]).code, 1);
}

#[test]
fn s5_05_who_waits_gets_the_lock_and_an_admin_takes_it_with_a_reason() {
    let world = world();
    world.run(&["lock", "a", "--for", "1h"]).ok();
    let waiting = start(&world, "bob", &["lock", "a", "--wait", "1m"]);
    until_so("bob waits", || list(&world).len() == 2);
    world.run(&["unlock", "a"]).ok();
    let output = waiting.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n");
    assert_eq!(world.run(&["lock", "a", "--take-over"]).code, 2, "a reason is needed");
    let said = world.run(&["lock", "a", "--take-over", "--reason", "bob is away"]).ok();
    assert_eq!(said.out, "3\n");
    let said = bob(&world, &["lock", "check", "a", "--fence", "2"]);
    assert_eq!(said.code, 6, "{said:?}");
    world.run(&["lock", "check", "a", "--fence", "3"]).ok();
    assert_eq!(bob(&world, &["lock", "check", "a"]).code, 6);
    bob(&world, &["lock", "check", "b"]).ok();
}

#[test]
fn s5_05_a_workflow_that_skips_does_not_wait_and_a_deadlock_is_shown() {
    let world = world();
    world.write(
        "stafette.toml",
        &format!("{ECHO}[locks]\non_conflict = \"skip\"\nlease = \"1h\"\n"),
    );
    world.run(&["trust", "--yes"]).ok();
    world.run(&["lock", "a"]).ok();
    let said = bob(&world, &["lock", "a"]);
    assert_eq!(said.code, 6, "nobody waits here: {said:?}");
    bob(&world, &["lock", "b"]).ok();
    let waiting = start(&world, "ada", &["lock", "b", "--wait", "1m"]);
    until_so("ada waits", || list(&world).len() == 3);
    let said = bob(&world, &["lock", "a", "--wait", "1m"]);
    assert_eq!(said.code, 6, "{said:?}");
    assert!(said.err.contains("DEADLOCK: ada waits for b behind bob"), "{said:?}");
    assert!(world.run(&["locks"]).ok().err.contains("DEADLOCK"));
    bob(&world, &["unlock", "--all"]).ok();
    assert!(waiting.wait_with_output().expect("it ends").status.success());
}

pub(crate) fn start(world: &World, user: &str, arguments: &[&str]) -> Child {
    world
        .command(program())
        .args(arguments)
        .env("USER", user)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

#[test]
fn s5_04_a_command_holds_its_lock_while_it_runs_and_ends_when_it_loses_it() {
    let world = world();
    let said = world.run(&["lock", "a", "--", "sh", "-c", "echo $STAFETTE_FENCE; exit 9"]);
    assert_eq!((said.code, said.out.as_str()), (9, "1\n"), "{said:?}");
    until_so("it is given back", || list(&world).is_empty());
    // What runs under a lock may lock more, and commit, though others of the same person may not.
    let inner = format!("{} lock a/b -- true && {0} lock check a", program());
    world.run(&["lock", "a", "--", "sh", "-c", &inner]).ok();

    // Renewed before its lease is over, until somebody takes it. A machine may stand still meanwhile.
    let script = "echo $$ > pid; while :; do sleep 0.01; done";
    let held = start(&world, "ada", &["lock", "a", "--for", "20s", "--", "sh", "-c", script]);
    until_so("it runs", || world.read("pid").ends_with('\n'));
    let first = list(&world)[0]["until"].clone();
    until_so("it is renewed", || list(&world)[0]["until"] != first);
    assert_eq!(world.run(&["lock", "a", "--wait", "0s"]).code, 6, "not even ada may");
    bob(&world, &["lock", "a", "--take-over", "--reason", "urgent"]).ok();
    let output = held.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(6));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is not held any more"), "{said}");
    gone(world.read("pid").trim().parse().expect("a process"));
}

#[test]
fn b_10_an_agent_holds_locks_for_its_turn_only() {
    let world = World::new();
    let script = format!(
        "cat >/dev/null; {0} lock src/ >fence; {0} lock check src/a; echo $? >code; \
         while [ ! -e go ]; do sleep 0.01; done",
        program()
    );
    let text = ECHO.replace("\"true\"", &format!("'{script}'"));
    world.write("stafette.toml", &text);
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "x", "--detach"]).ok();
    until_so("it has checked", || world.read("code").ends_with('\n'));
    assert_eq!((world.read("fence").as_str(), world.read("code").as_str()), ("1\n", "0\n"));
    let locks = list(&world);
    assert_eq!(locks[0]["by"]["agent"], "one");
    let said = world.run(&["lock", "check", "src/a"]);
    assert_eq!(said.code, 6, "{said:?}");
    assert!(said.err.contains("src/a is locked by one of"), "{said:?}");
    world.write("go", "");
    world.run(&["resume"]).ok();
    until_so("it is given back", || list(&world).is_empty());
}

fn git(world: &World, user: &str, arguments: &[&str]) -> (bool, String) {
    let output = world
        .command("git")
        .args(["-c", "user.name=ada", "-c", "user.email=ada@example.org"])
        .args(arguments)
        .env("USER", user)
        .output()
        .expect("git");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn b_20_the_hook_is_not_installed_outside_the_repository_or_by_an_agent() {
    let world = world();
    assert!(git(&world, "ada", &["init", "-q"]).0);
    let other = tempfile::tempdir().expect("a folder");
    for path in [other.path().join("hooks"), "../other".into()] {
        let path = path.to_string_lossy();
        assert!(git(&world, "ada", &["config", "core.hooksPath", &path]).0);
        let said = world.run(&["lock", "hook", "install"]);
        assert!(said.code != 0 && said.err.contains("outside this repository"), "{said:?}");
    }
    assert!(!other.path().join("hooks").exists());
    assert!(git(&world, "ada", &["config", "core.hooksPath", "hooks"]).0);
    let key = [("STAFETTE_KEY", "0198a1f2-7c3d-7e4f-8a9b-0c1d2e3f4a5b:1")];
    let said = world.run_with(&["lock", "hook", "install"], b"", &key);
    assert!(said.code != 0 && said.err.contains("This is for a person"), "{said:?}");
    world.run(&["lock", "hook", "install"]).ok();
    assert!(world.project().join("hooks/pre-commit").exists());
}

#[test]
fn b_10_a_commit_of_what_somebody_else_has_locked_is_refused() {
    let world = world();
    assert!(git(&world, "ada", &["init", "-q"]).0);
    let hook = world.project().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().expect("a folder")).expect("a folder");
    let theirs = "#!/bin/sh\necho ran >> before.txt\n";
    stafette_testkit::program::write(&hook, theirs).expect("a hook of theirs");
    for _ in 0..2 {
        let said = world.run(&["lock", "hook", "install"]).ok();
        assert!(said.err.contains("the hook from before runs first"), "{said:?}");
    }
    world.write("src/a.rs", "one");
    world.write("docs/b.md", "one");
    assert!(git(&world, "ada", &["add", "src", "docs"]).0);
    let (ok, said) = git(&world, "ada", &["commit", "-qm", "nothing is locked, no daemon runs"]);
    assert!(ok, "{said}");
    assert!(!world.state().join("daemon.sock").exists(), "and none was started");
    bob(&world, &["lock", "src/**"]).ok();
    for running in [true, false] {
        world.write("docs/b.md", &running.to_string());
        assert!(git(&world, "ada", &["commit", "-qam", "docs are free"]).0);
        assert!(git(&world, "ada", &["mv", "src/a.rs", "docs/a.rs"]).0);
        let (ok, said) = git(&world, "ada", &["commit", "-qm", "x"]);
        assert!(!ok && said.contains("src/a.rs is locked by bob"), "{running} {said}");
        let checked = world.run(&["lock", "check", "--staged"]);
        assert_eq!(checked.code, 6, "{checked:?}");
        assert!(git(&world, "ada", &["mv", "docs/a.rs", "src/a.rs"]).0);
        if running {
            world.run(&["down"]).ok();
        }
    }
    world.write("src/a.rs", "two");
    let (ok, said) = git(&world, "bob", &["commit", "-qam", "the holder may"]);
    assert!(ok, "{said}");
    world.run(&["lock", "hook", "uninstall"]).ok();
    assert!(fs::read_to_string(&hook).expect("theirs is back").contains("echo ran"));
    assert!(world.read("before.txt").lines().count() >= 4, "theirs ran each time");
    assert!(world.run(&["lock", "hook", "uninstall"]).ok().err.contains("no hook of ours"));
}

#[test]
fn b_20_a_pipe_in_the_place_of_gits_index_is_named_where_locks_are_checked() {
    let world = world();
    assert!(git(&world, "ada", &["init", "-q"]).0);
    let index = world.project().join(".git/index");
    assert!(std::process::Command::new("mkfifo").arg(&index).status().expect("mkfifo").success());
    let said = world.run(&["lock", "check", "--staged"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains(".git/index, which is a pipe"), "{said:?}");
    assert!(said.err.contains("fix: remove the pipe"), "{said:?}");
}

/// What the lock protects: it takes only what comes with the newest number that it has seen.
#[derive(Default)]
struct Register {
    newest: u64,
    value: u64,
    accepted: u64,
    refused: u64,
}

#[test]
fn s5_04_two_processes_fight_with_pauses_past_the_lease_and_no_stale_write_is_accepted() {
    const ROUNDS: u32 = 12;
    let world = world();
    world.run(&["up"]).ok();
    let (register, done) = (Mutex::new(Register::default()), AtomicU32::new(0));
    let fight = |user: &str| {
        for round in 0..ROUNDS {
            let wait = ["lock", "a", "--for", "50ms", "--wait", "1m"];
            let said = world.run_with(&wait, b"", &[("USER", user)]).ok();
            let fence: u64 = said.out.trim().parse().expect("a number");
            let value = {
                let mut register = register.lock().expect("sound");
                if fence < register.newest {
                    register.refused += 1;
                    continue;
                }
                register.newest = fence;
                register.value
            };
            if round % 2 == 0 {
                // Asleep until the other has taken the lock and used it.
                until_so("the other has it", || {
                    register.lock().expect("sound").newest > fence
                        || done.load(Ordering::SeqCst) > 0
                });
            }
            let mut register = register.lock().expect("sound");
            if fence < register.newest {
                register.refused += 1;
            } else {
                register.newest = fence;
                register.value = value + 1;
                register.accepted += 1;
            }
        }
        done.fetch_add(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| fight("ada"));
        scope.spawn(|| fight("bob"));
    });
    let register = register.into_inner().expect("sound");
    assert_eq!(register.value, register.accepted, "no write was lost");
    assert!(register.refused > 0, "stale writes were tried, and refused");
    assert_eq!(world.run(&["locks", "--json"]).ok().json()["alerts"], json!([]));
}
