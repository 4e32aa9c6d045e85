//! The team changes its own program, a small one in Rust, and runs on it. Another one is a script,
//! which takes no time to build: whoever renews it is killed at every step.

use std::process::Command;

use serde_json::json;

use crate::world::{World, gone, until, until_so};

/// Counts on from what it finds in its store, which is a number in a file.
const PROGRAM: &str = r#"
use std::{env, fs, thread, time::Duration};

const VERSION: u32 = 1;

fn store() -> u64 {
    let text = fs::read_to_string("count.txt").unwrap_or_else(|_| "0".into());
    text.trim().parse().expect("the store can be read")
}

fn main() {
    match env::args().nth(1).as_deref() {
        Some("doctor") => println!("{}", store()),
        _ => loop {
            let count = store() + 1;
            fs::write("count.tmp", count.to_string()).expect("written");
            fs::rename("count.tmp", "count.txt").expect("renamed");
            fs::write("version.txt", VERSION.to_string()).expect("written");
            thread::sleep(Duration::from_millis(20));
        },
    }
}
"#;

/// The compiler itself: what starts it elsewhere needs the tester's own home.
fn tool(name: &str) -> String {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc");
    format!("{}/bin/{name}", String::from_utf8_lossy(&sysroot.stdout).trim())
}

fn team() -> World {
    let world = World::new();
    world.write("Cargo.toml", "[package]\nname = \"counter\"\nedition = \"2021\"\n[workspace]\n");
    world.write("src/main.rs", PROGRAM);
    let (cargo, rustc) = (tool("cargo"), tool("rustc"));
    let build = format!(r#"["env", "RUSTC={rustc}", "{cargo}", "build", "--offline", "--quiet"]"#);
    world.write(
        "stafette.toml",
        &format!(
            r#"
            workflow = {{ name = "own", entry = "coder" }}
            agents.coder = {{ runner = "scripted", script = "coder.toml" }}
            changes = {{ commit = false, own = ["src/**"] }}
            [self]
            build = {build}
            program = "target/debug/counter"
            prove = ["target/debug/counter", "doctor"]
            start = ["target/debug/counter", "serve"]
            settle = "2s"
            "#
        ),
    );
    let mut cargo = world.command(cargo);
    let built = cargo.args(["build", "--offline", "--quiet"]).env("RUSTC", rustc).output();
    let built = built.expect("cargo");
    assert!(built.status.success(), "{built:?}");
    world
}

/// An agent proposes the program with one thing changed, in a run.
fn proposed(world: &World, old: &str, new: &str) -> String {
    let text = world.read("src/main.rs");
    assert!(text.contains(old), "nothing to change");
    let proposal = json!({
        "reason": "a better counter",
        "changes": [{ "file": "src/main.rs", "action": "modify", "content": text.replace(old, new) }],
    });
    world.write("proposal.json", &proposal.to_string());
    let propose = format!("{} changes propose proposal.json", crate::world::program());
    world.write("coder.toml", &format!("[[turn]]\nsteps = [{{ run = {} }}]", json!(propose)));
    world.run(&["trust", "--yes"]).ok();
    let said = world.run(&["run", "Make the counter better"]);
    assert_eq!(said.code, 3, "a person is asked about the team's own logic: {said:?}");
    let changes = world.run(&["changes", "--json"]).ok().json();
    let last = changes["changes"].as_array().and_then(|all| all.last()).expect("a change").clone();
    assert_eq!(last["author"]["agent"], "coder", "{last}");
    last["id"].as_str().expect("an id").to_owned()
}

fn count(world: &World) -> u64 {
    world.read("count.txt").trim().parse().unwrap_or(0)
}

/// Waits until the program has counted on, under this version.
fn counts_on(world: &World, version: &str) {
    let from = count(world);
    until_so(&format!("version {version} counts"), || {
        count(world) > from + 2 && world.read("version.txt") == version
    });
}

/// The program as it would be started now.
fn program(world: &World) -> Vec<u8> {
    std::fs::read(world.project().join("target/debug/counter")).expect("a program")
}

/// The processes that run the program, by what they were started with.
fn runs(world: &World) -> Vec<u32> {
    let mark = format!("STAFETTE_OWN_PROGRAM_OF={}", world.project().display());
    let carries = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(carries).collect()
}

#[test]
fn s4_09_the_team_changes_its_own_program_and_goes_on_with_it_or_with_the_old_one() {
    let world = team();
    let better = proposed(&world, "VERSION: u32 = 1", "VERSION: u32 = 2");
    counts_on(&world, "1");

    let said = world.run(&["self-update", &better]);
    assert_eq!(said.code, 3, "a person says yes to the team's own logic first: {said:?}");
    world.run(&["changes", "approve", &better]).ok();
    let before = count(&world);
    let said = world.run(&["self-update", &better]).ok();
    assert!(said.out.contains("the team runs on it"), "{said:?}");
    counts_on(&world, "2");
    assert!(count(&world) > before, "it goes on where the old one was");

    // One that compiles and reads the store, but does not come up.
    let broken = proposed(&world, "_ => loop {", "_ => loop { assert_eq!(VERSION, 3, \"no\");");
    world.run(&["changes", "approve", &broken]).ok();
    let said = world.run(&["self-update", &broken]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.out.contains("ended as soon as it was started"), "{said:?}");
    assert!(!world.read("src/main.rs").contains("assert_eq"), "its sources are gone, too");
    counts_on(&world, "2");

    // One that does not compile, and one that cannot read the store: the old one never stops.
    for (old, new, why) in [
        ("fn main()", "fn main() -> Nothing", "cargo"),
        ("\"count.txt\"", "\"version.txt\".parse::<u8>().unwrap().to_string()", "doctor"),
    ] {
        let bad = proposed(&world, old, new);
        world.run(&["changes", "approve", &bad]).ok();
        let was = (program(&world), world.read("src/main.rs"), runs(&world));
        let said = world.run(&["self-update", &bad, "--json"]);
        assert_eq!(said.code, 5, "{said:?}");
        assert!(said.json()["why"].as_str().is_some_and(|said| said.contains(why)), "{said:?}");
        let is = (program(&world), world.read("src/main.rs"), runs(&world));
        assert!(is.0 == was.0, "{why}: the program is the very one that it was");
        assert_eq!((is.1, is.2), (was.1, was.2), "{why}: its sources, and the process");
        counts_on(&world, "2");
    }
    let process = runs(&world)[0];
    world.run(&["down"]).ok();
    gone(process.into());
}

#[test]
fn s4_09_what_was_applied_in_a_generation_runs_before_the_next_one_begins() {
    let world = team();
    let text = world.read("src/main.rs").replace("VERSION: u32 = 1", "VERSION: u32 = 2");
    let proposal = json!({
        "reason": "a better counter",
        "changes": [{ "file": "src/main.rs", "action": "modify", "content": text }],
    });
    world.write("proposal.json", &proposal.to_string());
    let steps = format!(
        "test -e go || {} changes propose proposal.json; touch proposed; while [ ! -e go ]; do sleep \
         0.01; done",
        crate::world::program()
    );
    world.write(
        "coder.toml",
        &format!(
            "[[turn]]\nsteps = [{{ run = {} }}, {{ emit = \"RESULT\", payload = {{ status = \
             \"resolved\", outputs = {{ next_topic = \"more\" }} }} }}]",
            json!(steps)
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    let flags = ["--continuous", "--max-runs", "2", "--pause", "0s", "--detach"];
    world.run(&[&["run", "Make the counter better"], &flags[..]].concat()).ok();
    until_so("it is proposed", || world.project().join("proposed").exists());
    counts_on(&world, "1");
    // A person applies it while the generation works: the program is still the old one.
    world.run(&["changes", "approve", "c1"]).ok();
    world.run(&["apply", "c1"]).ok();
    counts_on(&world, "1");
    world.write("go", "");
    counts_on(&world, "2");
    let runs = until("the second generation", || {
        let runs = world.run(&["status", "--json"]).ok().json();
        let over = |run: &serde_json::Value| run["status"] == "succeeded";
        let all = runs.as_array().is_some_and(|runs| runs.len() == 2 && runs.iter().all(over));
        all.then_some(runs)
    });
    let first = runs[1]["run"].as_str().expect("a run");
    let events = world.run(&["log", first, "--json"]).ok().lines();
    let over = events.iter().find(|event| event["event"] == "generation_handed_over");
    assert_eq!(over.expect("handed over")["action"], "restart_with_new_code");
    assert!(world.read("src/main.rs").contains("u32 = 2"), "it stays in");
}

/// Says its version for as long as it lives. Where it is told to, it kills the daemon first.
const SCRIPT: &str = r#"#!/bin/sh
[ "$(cat kill-at 2>/dev/null)" = start ] && kill -9 $PPID
while echo VERSION >> ticks; do sleep 0.02; done
"#;

/// An agent that asks, and is done with the answer.
const ASKS: &str = r#"
[[turn]]
when = { turn = 1 }
steps = [{ emit = "HANDOFF", payload = { to = "human", reason = "requires_human_decision", question = { reason = "unclear", details = "Which one?", options = ["this", "that"], blocking = true } } }]
[[turn]]
steps = [{ emit = "RESULT", payload = { status = "resolved", summary = "so be it" } }]
"#;

/// A step that kills the daemon before its work or after it, and goes on as if nothing were.
fn step(name: &str, work: &str) -> String {
    format!(
        r#"
        [ "$(cat kill-at 2>/dev/null)" = before-{name} ] && kill -9 $PPID && sleep 0.4
        {work}
        [ "$(cat kill-at 2>/dev/null)" = after-{name} ] && kill -9 $PPID && sleep 60
        exit 0
        "#
    )
}

fn scripted_team() -> World {
    let world = World::new();
    world.write("build.sh", &step("build", "cp -p source.sh bin/new && mv bin/new bin/program"));
    world.write("prove.sh", &step("proof", "sh -n bin/program || exit 1"));
    for file in ["source.sh", "bin/program"] {
        let path = world.project().join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let text = SCRIPT.replace("VERSION", "0");
        stafette_testkit::program::write(&path, &text).expect("a program");
    }
    world.write("asks.toml", ASKS);
    world.write(
        "stafette.toml",
        r#"
        workflow = { name = "own", entry = "coder" }
        agents.coder = { runner = "scripted", script = "asks.toml" }
        changes = { commit = false, own = ["source.sh"] }
        [self]
        build = ["sh", "build.sh"]
        program = "bin/program"
        prove = ["sh", "prove.sh"]
        start = ["bin/program"]
        settle = "1s"
        "#,
    );
    world.run(&["trust", "--yes"]).ok();
    world
}

/// A person proposes the next version and says yes to it.
fn next_version(world: &World, version: usize) -> String {
    let edit = json!({
        "file": "source.sh", "action": "modify", "content": SCRIPT.replace("VERSION", &version.to_string()),
    });
    let document = json!({ "codeChanges": [edit], "reason": "the next one" }).to_string();
    let said = world.run_with(&["changes", "propose", "-", "--json"], document.as_bytes(), &[]);
    let id = said.ok().json()["id"].as_str().expect("a name").to_owned();
    world.run(&["changes", "approve", &id]).ok();
    id
}

/// The version that the program, its source and the only process of it have; the daemon is up again.
fn version(world: &World, at: &str) -> String {
    // One that is still to be killed may go while it is asked.
    until_so(&format!("{at}: it is up"), || world.run(&["up"]).code == 0);
    let of = |file: &str| {
        let text = world.read(file);
        let said = text.lines().find_map(|line| line.strip_prefix("while echo "));
        said.and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned()
    };
    let ticks = || world.read("ticks").lines().map(str::to_owned).collect::<Vec<_>>();
    let from = ticks().len();
    until(&format!("{at}: one version of everything"), || {
        // Or when its runs continue.
        world.run(&["up"]);
        let (ticks, source, program) = (ticks(), of("source.sh"), of("bin/program"));
        let mut last = ticks.iter().skip(from).rev().take(3);
        let is_calm = ticks.len() > from + 3 && last.all(|tick| *tick == program);
        (is_calm && source == program && runs(world).len() == 1).then_some(program)
    })
}

#[test]
fn s4_09_a_daemon_killed_at_any_step_of_a_renewal_leaves_the_old_program_or_the_new_one() {
    let world = scripted_team();
    assert_eq!(world.run(&["run", "Ask"]).code, 3, "somebody is asked, and the run waits");
    let mut now = version(&world, "at first");
    let steps = ["before-build", "after-build", "before-proof", "after-proof", "start"];
    for (number, step) in steps.into_iter().enumerate() {
        let id = next_version(&world, number + 1);
        world.write("kill-at", step);
        let said = world.run(&["self-update", &id]);
        assert_ne!(said.code, 0, "{step}: {said:?}");
        std::fs::remove_file(world.project().join("kill-at")).expect("removed");
        assert_eq!(version(&world, step), now, "{step}: the old one is back");
    }
    // Then at every place of the daemon itself, until there is none left.
    for place in 0..40 {
        let id = next_version(&world, steps.len() + 1 + place);
        world.run(&["down"]).ok();
        let after = place.to_string();
        let said = world.run_with(&["self-update", &id], b"", &[("STAFETTE_CRASH_AFTER", &after)]);
        let at = format!("place {place}: {said:?}");
        let found = version(&world, &at);
        let next = (steps.len() + 1 + place).to_string();
        assert!(found == now || found == next, "{at}: {found}");
        now = found;
        if said.code == 0 {
            assert_eq!(now, next, "{at}");
            assert!(place >= 3, "there are places where it is killed");
            break;
        }
        assert!(place < 39, "it is never done: {at}");
    }
    // The last one is still to be killed; then the run of before all this goes on.
    world.run(&["down"]);
    world.run(&["answer", "h2", "this"]).ok();
    until_so("the run goes on", || {
        world.run(&["status", "--json"]).ok().json()[0]["status"] == "succeeded"
    });
}
