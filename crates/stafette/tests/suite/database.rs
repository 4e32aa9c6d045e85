//! Runs that are kept in PostgreSQL.

use std::collections::BTreeSet;
use std::process::Command;

use stafette_agents::scripted::{Event, read_ledger};
use stafette_testkit::postgres::{Postgres, Shared};

use crate::world::{Said, World, gone, lives, until_so};

const TEAM: [&str; 4] = ["planner", "builder", "reviewer", "writer"];

/// Four agents in a line, each of whom writes down what it has done.
fn line(header: &str) -> World {
    let world = World::new();
    let mut workflow = format!(
        "[workflow]\nname = \"line\"\nentry = \"planner\"\n[limits]\ncooldown = \"0s\"\n\
         [retries]\nbackoff = \"1ms\"\n{header}\n"
    );
    for (n, name) in TEAM.iter().enumerate() {
        workflow += &format!("[agents.{name}]\nrunner = \"scripted\"\nscript = \"{name}.toml\"\n");
        let step = match TEAM.get(n + 1) {
            Some(next) => {
                workflow += &format!("[[routes]]\nfrom = \"{name}\"\nto = \"{next}\"\n");
                format!("emit = \"HANDOFF\", payload = {{ to = \"{next}\", summary = \"A café\" }}")
            }
            None => "emit = \"RESULT\", payload = { status = \"resolved\", summary = \"Built\" }"
                .to_owned(),
        };
        let script = format!("ledger = \"{name}.jsonl\"\n[[turn]]\nsteps = [{{ {step} }}]\n");
        world.write(&format!("{name}.toml"), &script);
    }
    world.write("stafette.toml", &workflow);
    world.run(&["trust", "--yes"]).ok();
    world
}

/// The turns that the agents themselves wrote down as done.
fn finished(world: &World) -> BTreeSet<String> {
    let ledgers = TEAM.map(|name| world.project().join(format!("{name}.jsonl")));
    let entries = ledgers.iter().flat_map(|path| read_ledger(path).unwrap_or_default());
    let done = entries.filter(|entry| entry.event == Event::Finished);
    done.map(|entry| entry.key.to_string()).collect()
}

fn kill_9(pid: u64) {
    // One that is dead already cannot be killed, which is as good.
    let _ = Command::new("kill").args(["-9", &pid.to_string()]).output();
    gone(pid);
}

#[test]
fn b_01_a_run_in_postgres_killed_again_and_again_ends_once() {
    let server = Shared::get().expect("a server");
    let (world, url) = (line(""), server.fresh());
    let on = |arguments: &[&str]| world.run_with(arguments, b"", &[("STAFETTE_STORE", &url)]);
    // The last of them waits until the daemon was killed once, so that the run is not over by then.
    let waits = r#"steps = [{ run = "while [ ! -e go ]; do sleep 0.02; done" }, "#;
    world.write("writer.toml", &world.read("writer.toml").replace("steps = [", waits));
    world.run(&["trust", "--yes"]).ok();
    // The first is late enough for the run to have begun.
    for (kill, after) in ["10", "4", "4"].into_iter().enumerate() {
        let env = [("STAFETTE_STORE", url.as_str()), ("STAFETTE_CRASH_AFTER", after)];
        let pid = world.up(&env);
        if kill == 0 {
            on(&["run", "Add a login", "--detach"]);
        }
        // Messages that come together are one step, so that there may be fewer than it waits for.
        let last = if kill == 0 { TEAM.len() - 1 } else { TEAM.len() };
        let dead = || pid.is_none_or(|pid| !lives(pid));
        until_so("the run goes on", || dead() || finished(&world).len() >= last);
        pid.into_iter().for_each(kill_9);
        world.write("go", "");
    }
    kill_9(world.up(&[("STAFETTE_STORE", &url)]).expect("a daemon"));
    assert_eq!(on(&["resume", "--json"]).ok().json()["status"], "succeeded");

    let runs = on(&["status", "--json"]).ok().json();
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
    let events = on(&["log", "--json"]).ok().lines();
    let turns: BTreeSet<String> = events
        .iter()
        .filter(|event| event["event"] == "turn_finished")
        .map(|event| event["turn"].as_str().expect("a turn").to_owned())
        .collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((turns.len(), count("turn_finished"), count("run_finished")), (4, 4, 1));
    assert!(count("run_adopted") > 0, "it was killed in the middle");
    assert_eq!(finished(&world), turns, "what the agents did is what counts");

    // Search, upkeep and the check-up are where the runs are.
    let hits = on(&["find", "cafe", "--json"]).ok().json();
    assert!(hits.to_string().contains("[café]"), "{hits}");
    let page = on(&["doctor", "--json"]).out;
    assert!(page.contains("1 run, "), "{page}");
    on(&["down"]).ok();
    let pruned = on(&["prune", "--older-than", "0s", "--keep", "0", "--yes"]).ok();
    assert!(pruned.err.contains("1 run, "), "{pruned:?}");
    assert!(!world.state().join("store.db").exists(), "there is no file");
}

#[test]
fn a_second_daemon_on_one_database_is_refused_and_the_first_is_not_harmed() {
    let server = Shared::get().expect("a server");
    let (one, other, url) = (line(""), line(""), server.fresh());
    let on = |world: &World, arguments: &[&str]| -> Said {
        world.run_with(arguments, b"", &[("STAFETTE_STORE", &url)])
    };
    on(&one, &["up"]).ok();
    let refused = on(&other, &["up"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("another daemon works on postgres://"), "{refused:?}");
    assert!(refused.err.contains("?schema=NAME"), "{refused:?}");
    on(&one, &["run", "Add a login"]).ok();
    on(&one, &["down"]).ok();
    // Who was not told of the database does not begin again in a file.
    let lost = one.run(&["status"]);
    assert!(lost.err.contains("The runs of this project are elsewhere"), "{lost:?}");
}

#[test]
fn a_workflow_names_the_variable_and_never_the_address() {
    let server = Shared::get().expect("a server");
    let (world, url) = (line("[store]\nurl_env = \"TEAM_DATABASE\""), server.fresh());
    let lost = world.run(&["run", "Add a login"]);
    assert!(lost.err.contains("names the environment variable TEAM_DATABASE"), "{lost:?}");
    let on = |arguments: &[&str]| world.run_with(arguments, b"", &[("TEAM_DATABASE", &url)]);
    on(&["run", "Add a login"]).ok();
    assert_eq!(on(&["status", "--json"]).ok().json()[0]["status"], "succeeded");
    let bad = world.run(&["up", "--store", "mysql://ada:s3cret@localhost/x"]);
    assert_eq!(bad.code, 0, "a daemon runs already: {bad:?}");
    on(&["down"]).ok();
    let bad = world.run(&["up", "--store", "mysql://ada:s3cret@localhost/x"]);
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(bad.err.contains("it does not begin with postgres://"), "{bad:?}");
    assert!(!bad.err.contains("s3cret") && !world.kept("daemon.log").contains("s3cret"));
}

#[test]
fn a_database_beyond_this_machine_is_reached_by_tls_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Postgres::start_with_tls(folder.path()).expect("a server");
    let url = server.url().replace("127.0.0.1", "localhost");
    let (world, secured) = (line(""), format!("{url}?sslmode=require"));
    let on = |url: &str, env: &[(&str, &str)]| {
        let said = world.run_with(&["up"], b"", &[&[("STAFETTE_STORE", url)], env].concat());
        (said.code, said.err)
    };
    let (code, why) = on(&url, &[]);
    assert!(code == 1 && why.contains("does not allow it"), "in the open: {why}");
    let (code, why) = on(&secured, &[]);
    assert!(code == 1 && why.contains("can prove to be it"), "nobody vouches: {why}");
    let trusted = folder.path().join("ca.pem").display().to_string();
    let elsewhere = secured.replace("localhost", "127.0.0.1");
    let (code, why) = on(&elsewhere, &[("SSL_CERT_FILE", &trusted)]);
    assert!(code == 1 && why.contains("can prove to be it"), "another's name: {why}");
    let (code, why) = on(&secured, &[("SSL_CERT_FILE", &trusted)]);
    assert_eq!(code, 0, "{why}");
    world.run(&["run", "Add a login"]).ok();
    world.run(&["down"]).ok();
}
