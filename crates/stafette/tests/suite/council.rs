//! A council that decides, and generations that follow each other, from the command line.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;
use stafette_agents::scripted::{Event, read_ledger};
use stafette_core::wire::context::OrchestratorContext;

use crate::world::{Said, World, gone};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(180);

const CONTEXT: &str = "data/state/orchestrator-context.json";

/// A council of two who agree at once, at two cents a turn, and always know what is next.
fn team(next: bool) -> World {
    let world = World::new();
    let members = ["Alex", "Sam"];
    let agents: String = members
        .iter()
        .map(|name| {
            format!("[agents.{name}]\nrunner = \"scripted\"\nscript = \"agents/{name}.toml\"\n")
        })
        .collect();
    world.write(
        "stafette.toml",
        &format!(
            "[workflow]\nname = \"team\"\nentry = \"council\"\n{agents}\
             [council]\nmembers = [\"Alex\", \"Sam\"]\nquorum = \"2 of 2\"\n\
             [generations]\npause = \"0s\"\n[limits]\ncooldown = \"0s\"\n\
             [retries]\nbackoff = \"1ms\"\n"
        ),
    );
    let topic = if next { ", next_topic = \"{request}+\"" } else { "" };
    for name in members {
        world.write(
            &format!("agents/{name}.toml"),
            &format!(
                "ledger = \"{name}.jsonl\"\n[[turn]]\nsteps = [\n\
                 {{ report = {{ tokens = 10, usd = 0.02 }} }},\n\
                 {{ emit = \"SIGNAL\", payload = {{ signal = \"agree\", reason = \"it is bounded\", \
                 key_decisions = [\"{name} on {{request}}\"]{topic} }} }},\n\
                 {{ emit = \"RESULT\", payload = {{ status = \"resolved\", summary = \"Said\" }} }},\n]\n"
            ),
        );
    }
    world.run(&["trust", "--yes"]).ok();
    world
}

/// Asks again until it is so; the clock is only looked at.
fn until(world: &World, arguments: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let said: Said = world.run(arguments);
        if said.code == 0 && is_so(&said.json()) {
            return said.json();
        }
        assert!(since.elapsed() < PATIENCE, "it never came: {said:?}");
    }
}

fn read(world: &World) -> OrchestratorContext {
    let text = world.read(CONTEXT);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["event"] == name).count()
}

#[test]
fn s4_03_a_council_agrees_and_why_and_the_context_tell_it() {
    let world = team(false);
    let said = world.run(&["run", "Build a cache"]).ok();
    assert!(said.err.contains("◇ Alex: agree  it is bounded"), "{said:?}");
    assert!(said.err.contains("◆ consensus: 2 of 2 agree, 2 are needed"), "{said:?}");
    let why = world.run(&["why", "h1"]).ok().out;
    assert!(why.contains("Alex agree; Sam agree; consensus: 2 of 2 agree"), "{why}");
    let context = until(&world, &["context", "--json"], |context| {
        context["history"].as_array().is_some_and(|history| history.len() == 1)
    });
    assert_eq!(context["discussionSummary"]["consensusSignals"]["Sam"], "agree");
    assert_eq!(context["agentStates"]["Alex"]["timesProcessed"], 1);
    assert_eq!(context["totalCost"], 0.04);
    assert_eq!(context["nextAction"]["type"], "manual_review");
    world.run(&["note", "Mind the tests"]).ok();
    let briefing = world.run(&["briefing"]).ok().out;
    assert!(briefing.contains("BRIEFING FOR GENERATION 2"), "{briefing}");
    assert!(briefing.contains("Mind the tests") && briefing.len() <= 2048, "{briefing}");

    let copy = world.home().join("context.json");
    std::fs::write(&copy, world.run(&["context"]).ok().out).expect("written");
    let file = copy.to_str().expect("UTF-8");
    let view = world.run(&["run", "--from-context", file, "--json"]).ok().json();
    assert_eq!((&view["generation"], &view["request"]), (&2.into(), &"Build a cache".into()));
    let told = world.run(&["context", "--json"]).ok().json();
    assert_eq!((&told["totalCost"], &told["humanNotes"]), (&0.08.into(), &"Mind the tests".into()));
}

#[test]
fn s4_04_generations_follow_until_the_limit_the_ceiling_or_a_check_in() {
    let world = team(true);
    let flags = ["--max-cost", "5usd", "--pause", "0s", "--json"];
    let run =
        |more: &[&str]| world.run(&[&["run", "Grow", "--continuous"], &flags[..], more].concat());
    let said = run(&["--max-runs", "3"]).ok();
    let requests: Vec<Value> = said.lines().iter().map(|view| view["request"].clone()).collect();
    assert_eq!(requests, ["Grow", "Grow+", "Grow++"]);
    assert!(said.err.contains("the limit of 3 generations is reached"), "{said:?}");

    let said =
        world.run(&["run", "Spend", "--continuous", "--max-cost", "0.06usd", "--pause", "0s"]);
    assert_eq!(said.code, 4, "what is left does not pay for the next turn: {said:?}");
    world.run(&["cancel"]).ok();

    let said = run(&["--max-runs", "9", "--check-in-every", "2"]);
    assert_eq!(said.code, 3, "a person is asked: {said:?}");
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    let question = &inbox[0]["handoff"]["offer"]["question"];
    assert_eq!(question["reason"], "check_in", "{inbox}");
    assert_eq!(read(&world).next_action.target_agent, None);
    world.run(&["answer", "2", "stop"]).ok();
    let view = world.run(&["resume", "--json"]).json();
    assert_eq!((&view["status"], &view["generation"]), (&"cancelled".into(), &3.into()));
}

/// A team whose Alex has something to change that needs nobody's yes.
fn team_with_a_change() -> World {
    let world = team(true);
    world.write("notes.txt", "old\n");
    let script = world.read("agents/Alex.toml").replace(
        "[[turn]]\nsteps = [\n",
        "[[turn]]\nsteps = [\n{ emit = \"CHANGE\", payload = { reason = \"it was old\", changes = [\n\
         { file = \"notes.txt\", action = \"modify\", content = \"new\\n\" } ] } },\n",
    );
    world.write("agents/Alex.toml", &script);
    world.run(&["trust", "--yes"]).ok();
    world
}

const TWO: [&str; 8] =
    ["run", "Grow", "--continuous", "--max-runs", "2", "--pause", "0s", "--json"];

#[test]
fn s4_03_changes_that_are_ready_are_in_the_project_before_the_next_generation_begins() {
    let world = team_with_a_change();
    let said = world.run(&TWO).ok();
    assert_eq!(said.lines().len(), 2, "two generations: {said:?}");
    assert_eq!(world.read("notes.txt"), "new\n");
    let changes = world.run(&["changes", "--json"]).ok().json();
    let status = changes["changes"][0]["status"].as_str().expect("a status");
    assert!(["applied", "validated"].contains(&status), "{changes}");
    let second = &said.lines()[1]["run"];
    let begun = world.run(&["status", second.as_str().expect("a run"), "--json"]).ok().json();
    let applied = changes["changes"][0]["applied_at"].as_str().expect("a time");
    assert!(applied <= begun["created_at"].as_str().expect("a time"), "{changes} {begun}");
}

#[test]
fn b_10_a_generation_leaves_alone_what_somebody_has_locked() {
    let world = team_with_a_change();
    world.run(&["lock", "notes.txt"]).ok();
    world.run(&TWO).ok();
    assert_eq!(world.read("notes.txt"), "old\n");
    assert_eq!(world.run(&["changes", "--json"]).ok().json()["changes"][0]["status"], "pending");
}

#[test]
fn s4_04_ten_generations_killed_five_times_do_no_work_twice_and_lose_none() {
    let world = team(true);
    let mut chance: u64 = 7;
    for kill in 0..5 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let after = (12 + (chance >> 33) % 40).to_string();
        // It may be killed before it has said that it is up.
        world.run_with(&["up", "--json"], b"", &[("STAFETTE_CRASH_AFTER", &after)]);
        let pid = world.daemon();
        if kill == 0 {
            let flags = ["--max-runs", "10", "--max-cost", "5usd", "--pause", "0s", "--detach"];
            let run = [&["run", "Grow", "--continuous"], &flags[..]].concat();
            // It may be killed before it has answered; then it is not known whether it has begun.
            world.run(&run);
        }
        gone(pid);
        if world.project().join(CONTEXT).exists() {
            read(&world);
        }
    }
    let context = until(&world, &["context", "--json"], |context| {
        context["history"].as_array().is_some_and(|history| history.len() == 10)
    });
    assert_eq!(context["runNumber"], 11);
    let runs = world.run(&["status", "--json"]).ok().json();
    let runs = runs.as_array().expect("runs");
    let numbers: BTreeSet<u64> = runs.iter().filter_map(|run| run["generation"].as_u64()).collect();
    assert_eq!((runs.len(), numbers), (10, (1..=10).collect()), "each generation once");

    let (mut cost, mut turns) = (0.0, BTreeSet::new());
    for run in runs {
        let id = run["run"].as_str().expect("an id");
        let events = world.run(&["log", id, "--json"]).ok().lines();
        assert_eq!(count(&events, "generation_handed_over"), 1);
        assert_eq!((count(&events, "council_heard"), count(&events, "turn_finished")), (2, 2));
        for event in events.iter().filter(|event| event["event"] == "turn_finished") {
            cost += event["result"]["usage"]["money"].as_f64().expect("money");
            assert!(turns.insert(event["turn"].as_str().expect("a turn").to_owned()), "once");
        }
    }
    let total = context["totalCost"].as_f64().expect("money");
    assert!((total - cost).abs() < 1e-9 && (total - 0.4).abs() < 1e-9, "{total} and {cost}");
    // What the agents themselves wrote down: no turn but those that counted.
    let ledgers = ["Alex", "Sam"].map(|name| world.project().join(format!("agents/{name}.jsonl")));
    let entries = ledgers.iter().flat_map(|path| read_ledger(path).expect("a ledger"));
    let finished: BTreeSet<String> =
        entries.filter(|entry| entry.event == Event::Finished).map(|e| e.key.to_string()).collect();
    assert_eq!(finished, turns);
    let file = read(&world);
    assert_eq!((file.run_number.get(), file.history.len()), (11, 10));
}
