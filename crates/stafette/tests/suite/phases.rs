//! Phases with real processes, from the command line.

use std::fmt::Write as _;

use crate::world::World;

#[test]
fn s3_06_research_write_and_validate_run_from_one_command_without_any_agent() {
    let world = World::new();
    world.run(&["init", "--template", "phases", "--scripted", "--yes"]).ok();
    world.run(&["check"]).ok();
    let said = world
        .run(&["run", "Add JWT sign-in", "--input", "task_id=auth-001", "--input", "feature=jwt"])
        .ok();
    assert!(said.err.contains("research  PROCEED"), "{said:?}");
    assert!(said.err.contains("847 used (typically ~1500)"), "{said:?}");
    assert!(said.err.contains("% saved"), "{said:?}");
    assert!(world.read("src/lib/jwt.ts").contains("sign"));
    let run = said.out.trim();
    let view = world.run(&["show", run, "--json"]).ok().json();
    assert_eq!(view["phases"]["task_id"], "auth-001");
    assert!(view["phases"]["phases"][0]["tokens"]["request"].as_u64() > Some(50), "{view}");
    assert!(world.run(&["show", run]).ok().err.contains("% saved"));
    let handoffs = world.run(&["handoffs", "--json"]).ok().json();
    let summary = &handoffs[1]["handoff"]["offer"]["summary"];
    assert!(summary.as_str().is_some_and(|summary| summary.starts_with("Sessions are kept in")));

    let cost = world.run(&["cost", "--by", "agent", "--json"]).ok().json();
    assert_eq!(cost["lines"][0]["of"], "research");
    assert_eq!((&cost["total"]["turns"], &cost["total"]["money"]), (&3.into(), &0.05.into()));
    for by in ["run", "day"] {
        let cost = world.run(&["cost", "--by", by, "--json"]).ok().json();
        assert_eq!(cost["lines"].as_array().map(Vec::len), Some(1), "{by}");
        assert_eq!(cost["lines"][0]["money"], cost["total"]["money"], "{by}");
    }
    assert!(world.run(&["cost"]).ok().out.contains("Add JWT sign-in"));
}

/// One phase of one agent, which answers each turn with the next of these payloads.
fn scout(turns: &[String]) -> World {
    let world = World::new();
    world.write(
        "stafette.toml",
        r#"
        workflow = { name = "one", entry = "scout" }
        agents.scout = { runner = "scripted", script = "scout.toml" }
        phases = [{ phase = "research", agents = ["scout"] }]
        limits = { cooldown = 0 }
        retries = { backoff = 0 }
        "#,
    );
    let mut script = String::new();
    for turn in turns {
        let _ = writeln!(script, "[[turn]]\n{turn}");
    }
    world.write("scout.toml", &script);
    world.run(&["trust", "--yes"]).ok();
    world
}

fn answer(when: &str, decision: &str, summary: &str, conflicts: &str) -> String {
    format!(
        "when = {{ {when} }}\nsteps = [{{ emit = \"RESULT\", payload = {{ task_id = \"{{task_id}}\", \
         phase = \"research\", status = \"complete\", decision = \"{decision}\", context_summary = \
         \"{summary}\", issues = [\"JWT or sessions?\"], options = [\"JWT\", \"sessions\"], findings = \
         {{ existing_implementations = [], conflicts = {conflicts}, patterns_found = [], \
         recommendations = [] }} }} }}]"
    )
}

#[test]
fn s3_04_a_summary_of_501_tokens_is_refused_and_one_of_500_accepted() {
    // ` word` is one token, and so is `word`.
    let words = |count: usize| vec!["word"; count].join(" ");
    let world = scout(&[
        answer("turn = 1", "PROCEED", &words(501), "[]"),
        answer("turn = 2", "PROCEED", &words(500), "[]"),
    ]);
    let said = world.run(&["run", "Look"]).ok();
    let count = "/context_summary: it has 501 tokens, and 500 are allowed";
    assert_eq!(said.err.matches(count).count(), 1, "{said:?}");
    let log = world.run(&["log", "--json"]).ok().lines();
    let ended = log.iter().filter(|event| event["event"] == "turn_finished");
    let summary = |event: &serde_json::Value| event["result"]["measured"]["summary"].as_u64();
    let counts: Vec<_> = ended.map(summary).collect();
    assert_eq!(counts, [Some(501), Some(500)]);
}

#[test]
fn s3_04_whoever_tells_too_long_a_summary_hears_it_at_once_and_loses_no_turn() {
    let world = World::new();
    let program = crate::world::program();
    let emit = |file: &str| format!("{program} emit RESULT \\\"$(cat {file})\\\"");
    world.write(
        "stafette.toml",
        &format!(
            r#"
            workflow = {{ name = "one", entry = "scout" }}
            agents.scout = {{ runner = "exec", command = ["sh", "-c", "{} 2> said.txt || {}"] }}
            phases = [{{ phase = "research", agents = ["scout"] }}]
            "#,
            emit("long.json"),
            emit("short.json")
        ),
    );
    for (file, words) in [("long.json", 501), ("short.json", 500)] {
        let document = serde_json::json!({
            "task_id": "t-1", "phase": "research", "status": "complete", "decision": "PROCEED",
            "context_summary": vec!["word"; words].join(" "),
            "findings": {
                "existing_implementations": [], "conflicts": [], "patterns_found": [],
                "recommendations": [],
            },
        });
        world.write(file, &document.to_string());
    }
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "Look", "--input", "task_id=t-1"]).ok();
    let said = world.read("said.txt");
    assert!(said.contains("it has 501 tokens, and 500 are allowed"), "{said}");
    let log = world.run(&["log", "--json"]).ok().lines();
    assert_eq!(log.iter().filter(|event| event["event"] == "turn_ordered").count(), 1);
}

#[test]
fn s3_03_a_wrong_shape_comes_back_to_the_agent_with_its_path() {
    let world = scout(&[
        answer("attempt = 1", "PROCEED", "x", "\"none\""),
        answer("attempt = 2", "PROCEED", "x", "[]"),
    ]);
    world.run(&["run", "Look"]).ok();
    let log = world.run(&["log", "--json"]).ok().lines();
    let failed = log.iter().find(|event| event["event"] == "turn_failed").expect("a failure");
    let message = failed["failure"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("/findings/conflicts: "), "{message}");
}

#[test]
fn s3_02_clarify_asks_in_the_inbox_and_stop_ends_the_run() {
    let world = scout(&[
        answer("lacks = [\"answer\"]", "CLARIFY", "Two ways are open", "[]"),
        answer("has = [\"answer\"]", "STOP", "It exists already", "[]"),
    ]);
    let said = world.run(&["run", "Look"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("JWT or sessions?"), "{said:?}");
    world.run(&["answer", "2", "JWT"]).ok();
    let said = world.run(&["resume"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("scout says STOP"), "{said:?}");
}

#[test]
fn b_05_one_dollar_at_thirty_cents_a_turn_is_three_turns_and_never_a_fifth() {
    let world = World::new();
    world.write(
        "stafette.toml",
        r#"
        workflow = { name = "chat", entry = "ping" }
        agents.ping = { runner = "scripted", script = "ping.toml" }
        agents.pong = { runner = "scripted", script = "pong.toml" }
        routes = [{ from = "ping", to = "pong" }, { from = "pong", to = "ping" }, { from = "ping", to = "orchestrator" }]
        loops = [{ name = "chat", between = ["ping", "pong"], max_rounds = 20 }]
        limits = { cooldown = 0, handoffs_per_item = 50, handoffs_per_run = 50 }
        budget = { money = "1usd" }
        "#,
    );
    for (name, to) in [("ping", "pong"), ("pong", "ping")] {
        let script = format!(
            "ledger = \"{name}.jsonl\"\n[[turn]]\nsteps = [{{ append = \"work.txt\", text = \"x\" }}, \
             {{ report = {{ usd = 0.30 }} }}, {{ emit = \"HANDOFF\", payload = {{ to = \"{to}\" }} }}]"
        );
        world.write(&format!("{name}.toml"), &script);
    }
    world.run(&["trust", "--yes"]).ok();
    let said = world.run(&["run", "Talk"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("$0.90 of $1.00 spent, $0.30 needed"), "{said:?}");
    assert_eq!(world.read("work.txt"), "xxx", "three turns were taken");
    let cost = world.run(&["cost", "--json"]).ok().json();
    assert_eq!((&cost["total"]["turns"], &cost["total"]["money"]), (&3.into(), &0.9.into()));
    // The reservation of the turn that is not allowed is not left behind.
    assert_eq!(cost["total"]["reserved"]["money"], 0.0);
}

/// Three who look at once, each of whom is content, is not, or breaks.
fn side_by_side(world: &World, rule: &str, parts: [&str; 3]) {
    let names = ["types", "tests", "security"];
    let mut workflow = format!(
        "workflow = {{ name = \"side\", entry = \"types\" }}\nlimits = {{ cooldown = 0 }}\n\
         retries = {{ max = 1, backoff = 0 }}\nphases = [{{ phase = \"parallel\", agents = \
         [\"types\", \"tests\", \"security\"], rule = \"{rule}\" }}]\n"
    );
    for (name, part) in names.iter().zip(parts) {
        let _ =
            writeln!(workflow, "[agents.{name}]\nrunner = \"scripted\"\nscript = \"{name}.toml\"");
        let says = |passed: bool| {
            format!(
                "[[turn]]\nsteps = [{{ emit = \"RESULT\", payload = {{ task_id = \"{{task_id}}\", phase = \
                 \"validate\", status = \"complete\", decision = \"PROCEED\", context_summary = \
                 \"{name} looked\", issues = [], findings = {{ checks = {{}}, overall_passed = \
                 {passed}, blocking_issues = [], warnings = [] }} }} }}]\n"
            )
        };
        let script = match part {
            "passes" => says(true),
            "fails" => says(false),
            _ => "[[turn]]\nsteps = [{ exit = 9 }]\n".to_owned(),
        };
        world.write(&format!("{name}.toml"), &script);
    }
    world.write("stafette.toml", &workflow);
    world.run(&["trust", "--yes"]).ok();
}

#[test]
fn s3_05_several_look_at_once_and_each_rule_decides_from_one_command() {
    let world = World::new();
    let mut cost_is_known = false;
    for (rule, parts, code) in [
        ("all", ["passes", "passes", "passes"], 0),
        ("all", ["passes", "fails", "passes"], 1),
        ("any", ["fails", "breaks", "passes"], 0),
        ("any", ["fails", "fails", "fails"], 1),
        ("majority", ["passes", "fails", "passes"], 0),
        ("majority", ["passes", "fails", "breaks"], 1),
        ("2 of 3", ["breaks", "passes", "passes"], 0),
        ("2 of 3", ["passes", "fails", "fails"], 1),
    ] {
        side_by_side(&world, rule, parts);
        let said = world.run(&["run", "Look", "--json"]);
        assert_eq!(said.code, code, "{rule} {parts:?}: {said:?}");
        let run = said.json()["run"].as_str().expect("a run").to_owned();
        let events = world.run(&["log", &run, "--json"]).ok().lines();
        let begun = events.iter().position(|event| event["event"] == "phase_begun");
        let finished = events.iter().position(|event| event["event"] == "turn_finished");
        let ordered = events.iter().filter(|event| event["event"] == "turn_ordered");
        let first: Vec<_> = ordered.take(3).map(|event| event["seq"].as_u64()).collect();
        assert!(begun < finished, "{rule}");
        let third = first[2].expect("three turns") as usize;
        // The first run of the project shows what a turn of each costs; until then each is alone.
        let together = finished.is_none_or(|at| third <= at);
        assert_eq!(together, cost_is_known, "{rule}: all three are asked before one answers");
        cost_is_known = true;
        let ended = events.iter().find(|event| event["event"] == "phase_ended").expect("its end");
        assert_eq!(ended["rule"], rule);
        let passed = parts.iter().filter(|part| **part == "passes").count();
        let why = format!("{passed} of 3 parts passed, and the rule is {rule}");
        assert!(ended["why"].as_str().is_some_and(|said| said.ends_with(&why)), "{ended}");
        // Which parts did not make it is seen, also when the rule is content.
        let summary = ended["summary"].as_str().expect("a summary");
        for (name, part) in ["types", "tests", "security"].iter().zip(parts) {
            let word = if part == "passes" { "passed" } else { "failed" };
            assert!(summary.contains(&format!("{name} {word}")), "{summary}");
        }
    }
}

#[test]
fn s3_05_the_templates_parallel_phase_works_when_its_signs_are_taken_away() {
    let world = World::new();
    world.run(&["init", "--template", "phases", "--scripted", "--yes"]).ok();
    let text = world.read("stafette.toml");
    let from = text.find("# [agents.types]").expect("the block");
    let until = text.find("# Phases are given out").expect("its end");
    let bare = |line: &str| format!("{}\n", line.trim_start_matches('#').trim_start());
    let block: String = text[from..until].lines().map(bare).collect();
    world.write("stafette.toml", &format!("{}{block}{}", &text[..from], &text[until..]));
    for name in ["types", "security"] {
        world.write(&format!("scripts/{name}.toml"), &world.read("scripts/validate.toml"));
    }
    world.run(&["trust", "--yes"]).ok();
    world.run(&["check"]).ok();
    let said = world.run(&["run", "Add JWT sign-in", "--input", "task_id=auth-001"]).ok();
    assert!(said.err.contains("2 of 2 parts passed"), "{said:?}");
    assert!(said.err.contains("% saved"), "{said:?}");
}
