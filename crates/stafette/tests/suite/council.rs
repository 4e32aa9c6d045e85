//! A council that decides, and generations that follow each other, from the command line.

use std::collections::BTreeSet;
use std::io::BufRead as _;

use serde_json::Value;
use stafette_agents::scripted::{Event, read_ledger};
use stafette_core::wire::context::{NextActionType, OrchestratorContext};

use crate::web::Web;
use crate::world::{Said, World, gone, program, until, until_so};

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

/// Asks again until it is so.
fn told(world: &World, arguments: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
    until(&format!("{arguments:?} tells it"), || {
        let said = world.run(arguments);
        (said.code == 0).then(|| said.json()).filter(&is_so)
    })
}

fn read(world: &World) -> OrchestratorContext {
    let text = world.read(CONTEXT);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

/// What is in the file as soon as it is so: it is drawn a moment after what it shows.
fn drawn(world: &World, is_so: impl Fn(&OrchestratorContext) -> bool) -> OrchestratorContext {
    until("the picture", || {
        let there = world.project().join(CONTEXT).exists();
        there.then(|| read(world)).filter(&is_so)
    })
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
    let context = told(&world, &["context", "--json"], |context| {
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
    told(&world, &["context", "--json"], |context| {
        (&context["totalCost"], &context["humanNotes"]) == (&0.08.into(), &"Mind the tests".into())
    });
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
    drawn(&world, |file| file.run_number.get() == 3 && file.next_action.target_agent.is_none());
    world.run(&["answer", "2", "stop"]).ok();
    let view = world.run(&["resume", "--json"]).json();
    assert_eq!((&view["status"], &view["generation"]), (&"cancelled".into(), &3.into()));
}

/// A team whose Alex has something to change that needs nobody's yes.
pub(crate) fn team_with_a_change() -> World {
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

pub(crate) const TWO: [&str; 8] =
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

/// What nobody may read before everyone has voted.
const SECRET: [&str; 3] = ["it is bounded", "Alex on Grow", "A leading zero is gone"];

#[test]
fn s4_03_nobody_sees_a_blind_vote_before_everyone_has_voted() {
    let world = team(true);
    let workflow = world.read("stafette.toml");
    let blind = workflow.replace("[council]\n", "[council]\nblind_first_vote = true\n");
    world.write("stafette.toml", &blind);
    let alex = world.read("agents/Alex.toml").replace("\"agree\"", "\"disagree\"");
    let alex = alex.replace("\"Said\"", "\"A leading zero is gone\"");
    world.write("agents/Alex.toml", &alex);
    let sam = world.read("agents/Sam.toml").replace(
        "steps = [\n",
        "steps = [\n{ run = \"touch asked; while [ ! -e go ]; do sleep 0.01; done\" },\n",
    );
    world.write("agents/Sam.toml", &sam);
    world.run(&["trust", "--yes"]).ok();
    let web = Web::up(&world);
    let run = world.run(&["run", "Grow", "--detach"]).ok().out.trim().to_owned();
    let stream = web.send(
        &format!("GET /v1/runs/{run}/events?follow=true"),
        &[&web.bearer(), "Accept: text/event-stream"],
        "",
    );
    let mut stream = std::io::BufReader::new(stream).lines().map_while(Result::ok);
    told(&world, &["status", &run, "--json"], |view| {
        view["council"]["members"][0]["turns"] == 1 && world.project().join("asked").exists()
    });
    let handoff = format!("/v1/runs/{run}/handoffs/h2");
    let look = || -> Vec<(String, String)> {
        let paths =
            ["events", "handoffs", "council", "context", "briefing", "why", "why/h2", "report"];
        let mut seen: Vec<(String, String)> = paths
            .iter()
            .map(|path| ((*path).to_owned(), web.get(&format!("/v1/runs/{run}/{path}")).body))
            .collect();
        seen.push((handoff.clone(), web.get(&handoff).body));
        let state = web.get(&format!("/v1/runs/{run}?state=true"));
        let last = state.ok()["seq"].as_u64().expect("a number");
        seen.push(("state".to_owned(), state.body));
        let changed = format!("/v1/runs/{run}/events?state=true");
        seen.push(("changed".to_owned(), web.get(&changed).body));
        for at in 1..=last {
            seen.push((format!("at {at}"), web.get(&format!("/v1/runs/{run}?at={at}")).body));
        }
        for word in ["bounded", "leading"] {
            // What is found is marked.
            let found = web.get(&format!("/v1/find?q={word}")).body.replace(['[', ']'], "");
            seen.push((format!("find {word}"), found));
        }
        for command in ["status", "log", "why", "handoffs", "briefing"] {
            let said = world.run(&[command, &run]).ok();
            seen.push((command.to_owned(), said.out + &said.err));
        }
        seen.push((CONTEXT.to_owned(), world.read(CONTEXT)));
        seen
    };
    for (place, text) in look() {
        for secret in SECRET {
            assert!(!text.contains(secret), "{secret} in {place}: {text}");
        }
    }
    let view = world.run(&["status", &run, "--json"]).ok().json();
    assert_eq!((&view["council"]["sealed"], &view["council"]["agreed"]), (&true.into(), &0.into()));
    let shown = world.run(&["status", &run]).ok().out;
    assert!(shown.contains("the first vote is blind: 1 of 2 have voted"), "{shown}");
    assert!(shown.contains("Alex: has voted") && shown.contains("Sam: yet to speak"), "{shown}");
    // Whoever follows is told that somebody has voted, and how when everybody has.
    let heard = |lines: &mut dyn Iterator<Item = String>, key: &str| -> Value {
        lines
            .filter_map(|line| line.strip_prefix("data:").map(str::to_owned))
            .filter_map(|data| serde_json::from_str::<Value>(&data).ok())
            .find(|event| event["event"] == "council_heard" && event[key] == true)
            .expect("a vote")
    };
    let closed = heard(&mut stream, "sealed");
    assert_eq!((&closed["member"], &closed["vote"]), (&"Alex".into(), &Value::Null));
    world.write("go", "");
    let open = heard(&mut stream, "again");
    assert_eq!((&open["seq"], &open["vote"]["signal"]), (&closed["seq"], &"disagree".into()));
    told(&world, &["status", &run, "--json"], |view| view["council"]["sealed"] == false);
    let seen = look();
    let blind = seen.iter().filter(|(_, text)| text.contains("\"sealed\":true"));
    assert!(blind.count() > 1, "what was closed at a moment is closed in its picture");
    for place in
        ["events", "handoffs", "council", "why/h2", "report", "find leading", "state", "changed"]
    {
        let (_, text) = seen.iter().find(|(name, _)| name == place).expect("a place");
        assert!(SECRET.iter().any(|secret| text.contains(secret)), "nothing in {place}: {text}");
    }
    world.run(&["cancel", &run]);
}

/// How a member that lives in a terminal votes.
const VOTES: &str = r#"$S emit SIGNAL '{"signal":"agree","reason":"it is bounded"}'
$S emit RESULT '{"status":"resolved","summary":"Said"}'
"#;

#[test]
fn s4_03_no_member_sees_a_terminal_while_they_vote_blindly_and_a_person_does() {
    let world = World::workflow(
        "[workflow]\nname = \"team\"\nentry = \"council\"\n\
         [agents.Alex]\nrunner = \"pty\"\ncommand = [\"sh\", \"Alex.sh\"]\n\
         [agents.Sam]\nrunner = \"pty\"\ncommand = [\"sh\", \"Sam.sh\"]\n\
         [council]\nmembers = [\"Alex\", \"Sam\"]\nquorum = \"2 of 2\"\nblind_first_vote = true\n",
    );
    let start = format!("S='{}'\n{}hear\n", program(), crate::tellings::HEAR);
    // Alex has voted, and lives on: its turn is over, and it is Alex all the same.
    let looks = "while [ ! -e look ]; do sleep 0.01; done\n\
         at() { curl -s --unix-socket \"${STAFETTE_SOCKET%agents.sock}daemon.sock\" \"http://localhost/v1/$1\"; echo; }\n\
         { $S attach Sam --json; at terminals; at runs/latest/terminals/Sam/recording; } > looked 2>&1\n\
         mv looked seen; exec sleep 1000\n";
    world.write("Alex.sh", &format!("{start}echo Alex thinks aloud\n{VOTES}{looks}"));
    let waits = "echo Sam thinks aloud\nwhile [ ! -e go ]; do sleep 0.01; done\n";
    world.write("Sam.sh", &format!("{start}{waits}{VOTES}exec sleep 1000\n"));
    world.run(&["trust", "--yes"]).ok();
    let run = world.run(&["run", "Grow", "--detach"]).ok().out.trim().to_owned();
    // A person sees it.
    told(&world, &["attach", "Sam", "--json"], |shown| {
        shown.to_string().contains("Sam thinks aloud")
    });
    world.write("look", "");
    until_so("Alex has looked", || world.project().join("seen").exists());
    let seen = world.read("seen");
    assert!(!seen.contains("Sam thinks"), "{seen}");
    assert_eq!(seen.matches("This is for people").count(), 3, "{seen}");
    world.write("go", "");
    told(&world, &["status", &run, "--json"], |view| view["status"] == "succeeded");
}

/// Somebody who cannot go on before a person has said which one it should be.
fn asker() -> World {
    let world = World::workflow(
        "[workflow]\nname = \"asker\"\nentry = \"solo\"\n[generations]\npause = \"0s\"\n\
         [agents.solo]\nrunner = \"scripted\"\nscript = \"solo.toml\"\n",
    );
    world.write(
        "solo.toml",
        "[[turn]]\nwhen = { has = [\"answer\"] }\nsteps = [{ emit = \"RESULT\", payload = { status = \
         \"resolved\", summary = \"Built\" } }]\n[[turn]]\nsteps = [{ emit = \
         \"HANDOFF\", payload = { to = \"human\", summary = \"Which cache?\", question = { details = \
         \"Which cache?\", options = [\"LRU\", \"LFU\"], blocking = true } } }]\n",
    );
    world.run(&["trust", "--yes"]).ok();
    world
}

#[test]
fn s4_03_a_person_is_needed_and_what_they_say_goes_into_the_next_generation() {
    let world = asker();
    let said = world.run(&["run", "Build a cache", "--continuous", "--pause", "0s", "--json"]);
    assert_eq!(said.code, 3, "a person is needed: {said:?}");
    let views = said.lines();
    let generations: Vec<&Value> = views.iter().map(|view| &view["generation"]).collect();
    assert_eq!(generations, [1, 2], "{said:?}");
    assert_eq!(views[0]["status"], "cancelled", "its work is not done");
    let why = views[0]["why"].as_str().expect("a reason");
    assert_eq!(why, "a person is needed: solo asks: Which cache?");
    let first = views[0]["run"].as_str().expect("a run");
    let events = world.run(&["log", first, "--json"]).ok().lines();
    let over = events.iter().find(|event| event["event"] == "generation_handed_over");
    assert_eq!(over.expect("handed over")["cause"], "human_needed");
    let file = drawn(&world, |file| file.next_action.extra.contains_key("awaits"));
    assert_eq!(file.next_action.kind, NextActionType::ManualReview);
    assert_eq!(file.next_action.extra["awaits"][0]["question"], "Which cache?");

    world.run(&["note", "Keep it small"]).ok();
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    assert_eq!(inbox.as_array().map(Vec::len), Some(1), "{inbox}");
    world.run(&["answer", "2", "LFU"]).ok();
    let done = world.run(&["resume", "--json"]).ok().json();
    assert_eq!((&done["status"], &done["generation"]), (&"succeeded".into(), &2.into()));
    let second = views[1]["run"].as_str().expect("a run");
    let handoffs = world.run(&["handoffs", second, "--json"]).ok().json();
    let inputs = &handoffs[0]["handoff"]["inputs"];
    assert_eq!(inputs["answer"], "LFU", "{inputs}");
    let notes = serde_json::json!(["Keep it small", "solo asked: Which cache? — LFU"]);
    assert_eq!(inputs["human_notes"], notes, "{inputs}");
}

/// Begins a run from a context, and lets its first member speak once what was left is dealt with.
fn from_context(world: &World, context: &str) -> Said {
    let runs = || world.run(&["status", "--json"]).ok().json().as_array().map_or(0, Vec::len);
    let before = runs();
    let _ = std::fs::remove_file(world.project().join("heard"));
    std::thread::scope(|scope| {
        let said = scope.spawn(|| world.run(&["run", "--from-context", context, "--json"]));
        until_so("what was left is dealt with", || {
            let log =
                if runs() > before { world.run(&["log", "--json"]).out } else { String::new() };
            log.contains("change_proposed") || log.contains("IMPORTED_CHANGES")
        });
        world.write("heard", "");
        said.join().expect("it ends")
    })
}

#[test]
fn s4_10_what_another_orchestrator_left_pending_is_proposed_and_waits_for_a_yes() {
    let world = team(false);
    // The first to speak does so when all that was left is proposed, or was found to be no good.
    let heard = "until [ -e heard ]; do sleep 0.1; done";
    let first = format!("steps = [\n{{ run = {} }},\n", serde_json::json!(heard));
    let script = world.read("agents/Alex.toml").replace("steps = [\n", &first);
    world.write("agents/Alex.toml", &script);
    world.run(&["trust", "--yes"]).ok();
    world.write("src/old.ts", "old\n");
    let context = serde_json::json!({
        "version": "v1.0", "runNumber": 3, "startedAt": "2026-01-06T12:00:00Z",
        "lastUpdated": "2026-01-06T12:05:00Z", "currentPhase": "code_review",
        "discussionSummary": { "topic": "A cache", "keyDecisions": [], "consensusReached": false,
            "consensusSignals": {} },
        "codeChanges": [
            { "file": "src/cache.ts", "action": "create", "content": "export {}\n",
              "appliedAt": null, "validatedAt": null, "status": "pending" },
            { "file": "src/done.ts", "action": "create", "content": "x", "appliedAt": null,
              "validatedAt": null, "status": "applied" },
            { "file": "src/old.ts", "action": "modify", "content": "new\n", "appliedAt": null,
              "validatedAt": null, "status": "pending" },
        ],
        "agentStates": {}, "history": [], "totalCost": 0.0, "humanNotes": "Mind the tests",
        "nextAction": { "type": "apply_changes", "reason": "ready" },
    });
    world.write("theirs.json", &context.to_string());
    let said = from_context(&world, "theirs.json");
    assert_eq!(said.code, 3, "a person has to say yes: {said:?}");
    let changes = world.run(&["changes", "--json"]).ok().json()["changes"].clone();
    assert_eq!(changes.as_array().map(Vec::len), Some(1), "{changes}");
    assert_eq!(changes[0]["edits"].as_array().map(Vec::len), Some(2), "{changes}");
    assert_eq!(world.run(&["apply", "c1"]).code, 3, "not without a yes");
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    let details = inbox[0]["handoff"]["offer"]["question"]["details"].as_str().expect("text");
    assert!(details.contains("as another orchestrator left it"), "{details}");
    let changes = drawn(&world, |file| file.code_changes.len() >= 3).code_changes;
    assert_eq!(changes.len(), 3, "each once");
    let id = inbox[0]["handoff"]["id"].as_str().expect("an id").to_owned();
    world.run(&["answer", &id, "approve"]).ok();
    world.run(&["apply", "c1"]).ok();
    assert_eq!(world.read("src/cache.ts"), "export {}\n");
    assert_eq!(world.read("src/old.ts"), "new\n");
    assert!(!world.project().join("src/done.ts").exists());

    // What cannot be meant is told, and begins nothing worse.
    let mut bad = context;
    bad["codeChanges"][0]["file"] = "../out.ts".into();
    world.write("bad.json", &bad.to_string());
    from_context(&world, "bad.json").ok();
    assert_eq!(
        world.run(&["changes", "--json"]).ok().json()["changes"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn s4_04_ten_generations_killed_five_times_do_no_work_twice_and_lose_none() {
    let world = team(true);
    let mut chance: u64 = 7;
    for kill in 0..5 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        // Messages that come together are one step: all five fall within the fewest that there can be.
        let after = (10 + (chance >> 33) % 20).to_string();
        let pid = world.up(&[("STAFETTE_CRASH_AFTER", &after)]);
        if kill == 0 {
            let flags = ["--max-runs", "10", "--max-cost", "5usd", "--pause", "0s", "--detach"];
            let run = [&["run", "Grow", "--continuous"], &flags[..]].concat();
            // It may be killed before it has answered; then it is not known whether it has begun.
            world.run(&run);
        }
        pid.into_iter().for_each(gone);
        if world.project().join(CONTEXT).exists() {
            read(&world);
        }
    }
    world.run(&["up"]).ok();
    let context = told(&world, &["context", "--json"], |context| {
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
    drawn(&world, |file| (file.run_number.get(), file.history.len()) == (11, 10));
}
