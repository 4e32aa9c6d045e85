//! What somebody meets who has only the documents, after some use: many runs, a budget that is
//! reached, a daemon that was killed.

use serde_json::{Value, json};

use crate::doors::{TEAM, request};
use crate::web::Web;
use crate::world::{ECHO, World, gone, program, until, until_so};

#[test]
fn b_22_a_run_that_goes_on_counts_and_is_listed_however_many_have_ended_since() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    let begin = |request: &str| {
        let run = web.post("/v1/runs", &json!({ "request": request })).ok()["run"].clone();
        run.as_str().expect("a run").to_owned()
    };
    let first = begin("the first");
    for number in 0..101 {
        let run = begin(&format!("no {number}"));
        web.post(&format!("/v1/runs/{run}/cancel"), &json!({})).ok();
    }
    let standing = world.run(&["--json"]).ok().json();
    assert_eq!((&standing["state"], &standing["running"]), (&json!("running"), &json!(1)));
    assert!(world.run(&[]).ok().out.contains("1 run active"));
    assert!(world.run(&["status", "--line"]).ok().out.contains("1 run active"));
    let listed = world.run(&["status", "--json"]).ok().json();
    let listed = listed.as_array().expect("a list").iter();
    assert_eq!(listed.filter(|view| view["run"] == first.as_str()).count(), 1);
    let said = world.run(&["status"]).ok();
    assert!(said.out.contains("the first") && said.err.contains("newest 100"), "{said:?}");
    let unfinished = web.get("/v1/runs?status=unfinished").ok();
    assert_eq!(unfinished.as_array().map(Vec::len), Some(1));
    // What nobody knows is refused, as it is in a body.
    for query in ["status=blue", "stauts=running"] {
        let refused = web.get(&format!("/v1/runs?{query}"));
        assert_eq!((refused.status, refused.code().as_str()), (422, "bad_query"), "{query}");
        let words = refused.json().to_string();
        assert!(words.contains("unfinished") || words.contains("`status`"), "{words}");
    }
}

#[test]
fn b_22_a_turn_that_nobody_has_taken_is_nobodys_work_yet() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    web.post("/v1/runs", &json!({ "request": "x" })).ok();
    let turns = web.get("/v1/turns?agent=planner&within=60").ok();
    let key = turns[0]["key"].as_str().expect("a turn").to_owned();
    let agents = web.get("/v1/agents").ok();
    assert_eq!(agents["agents"][0]["group"], "waiting", "{agents}");
    let said = world.run(&["status"]).ok().out;
    assert!(said.contains("waiting for planner") && said.contains("not taken yet"), "{said}");
    let (run, _) = key.split_once('/').expect("a key");
    web.post(&format!("/v1/runs/{run}/handoffs/h1/accept"), &json!({ "by": "planner" })).ok();
    let said = world.run(&["status"]).ok().out;
    assert!(said.contains("running") && !said.contains("not taken yet"), "{said}");
}

#[test]
fn b_11_a_key_is_used_or_refused_and_never_ignored() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    let run = web.post("/v1/runs", &json!({ "request": "x" })).ok()["run"].clone();
    let run = run.as_str().expect("a run");
    let headers = [web.bearer(), "Idempotency-Key: one".to_owned()];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let document = request("human", "planner");
    for (path, body) in [
        ("/v1/handoffs".to_owned(), &document),
        (format!("/v1/runs/{run}/handoffs"), &document),
        (format!("/v1/runs/{run}/notes"), &json!({ "text": "x" })),
    ] {
        let refused = web.plain(&format!("POST {path}"), &headers, &body.to_string());
        assert_eq!((refused.status, refused.code().as_str()), (422, "bad_key"), "{path}");
    }
    let handoffs = web.get(&format!("/v1/runs/{run}/handoffs")).ok();
    assert_eq!(handoffs.as_array().map(Vec::len), Some(1), "nothing was done");
}

#[test]
fn b_05_a_raise_says_what_the_budget_is_now_and_is_enough() {
    for (budget, wrong, example, now) in [
        ("money = 0", "5tokens", "`5usd`", "$5.00 for the run"),
        ("tokens = 0", "5usd", "`100000tokens`", "2000000 tokens for the run"),
        ("handoffs = 0", "1usd", "`10handoffs`", "1 handoff for the run"),
    ] {
        let world = World::workflow(&format!("{ECHO}[budget]\n{budget}\n"));
        assert_eq!(world.run(&["run", "x"]).code, 4, "{budget}");
        let said = world.run(&["answer", "2", wrong]);
        assert!(said.code != 0 && said.err.contains(example), "{budget}: {said:?}");
        let said = world.run(&["answer", "2", "raise"]).ok();
        assert!(said.err.contains(&format!("the budget is now {now}")), "{budget}: {said:?}");
        assert_eq!(world.run(&["resume", "--json"]).ok().json()["status"], "succeeded");
    }
}

/// An agent that asks a person once, and keeps the answer.
const ASKS: &str = r#"
[workflow]
name = "asks"
entry = "asker"
[agents.asker]
runner = "exec"
command = ["sh", "agent.sh"]
"#;

#[test]
fn s2_07_an_answer_is_taken_apart_only_where_its_keys_were_asked_for() {
    let asks = r#"if grep -q '"answer":' "$STAFETTE_INPUTS"; then cp "$STAFETTE_INPUTS" kept.json; STAFETTE emit RESULT done
else STAFETTE emit HANDOFF '{"to":"human","question":"Which flags?"}'; fi
"#;
    let takes = "cp \"$STAFETTE_INPUTS\" kept.json; STAFETTE emit RESULT done\n";
    let needs = "[[agents.asker.needs]]\nkey = \"flags\"\nsource = \"user\"\n";
    for (agent, needs, answer, expected) in [
        (asks, "", "CFLAGS=-O2", json!({ "answer": "CFLAGS=-O2" })),
        (takes, needs, "CFLAGS=-O2", json!({ "flags": "CFLAGS=-O2" })),
        (takes, needs, "flags=-O3", json!({ "flags": "-O3" })),
    ] {
        let script = agent.replace("STAFETTE emit", &format!("{} emit", program()));
        let world = World::with(&format!("{ASKS}{needs}"), &[("agent.sh", &script)]);
        assert_eq!(world.run(&["run", "x"]).code, 3, "{answer}");
        let asked = world.run(&["inbox", "--json"]).ok().json();
        let id = asked.pointer("/questions/0/id").or_else(|| asked.pointer("/0/id"));
        let id = id.and_then(Value::as_str).expect("a question");
        world.run(&["answer", id, answer]).ok();
        assert_eq!(world.run(&["resume", "--json"]).ok().json()["status"], "succeeded");
        let kept: Value = serde_json::from_str(&world.read("kept.json")).expect("JSON");
        assert_eq!(kept["inputs"], expected, "{answer}");
    }
}

#[test]
fn b_22_a_daemon_that_was_killed_listens_again_where_it_did() {
    let world = World::workflow(ECHO);
    let port = crate::newcomer::port();
    let listens = || std::net::TcpStream::connect(&port).is_ok();
    let pid = world.run(&["up", "--listen", &port, "--json"]).ok().json()["pid"].as_u64();
    let pid = pid.expect("a process");
    assert!(
        world.command("kill").args(["-KILL", &pid.to_string()]).status().expect("sent").success()
    );
    gone(pid);
    let said = world.run(&["status"]).ok();
    assert!(said.err.contains("was killed") && said.err.contains(&port), "{said:?}");
    assert!(listens(), "{said:?}");
    assert_eq!(world.run(&["up"]).ok().code, 0);
    assert!(listens(), "it is the same one");
    world.run(&["down"]).ok();
    let said = world.run(&["status"]).ok();
    assert!(!said.err.contains("killed") && !listens(), "it was ended: {said:?}");
}

#[test]
fn b_22_a_request_comes_from_standard_input() {
    let world = World::workflow(ECHO);
    let said = world.run_with(&["run", "-", "--json"], "Sign in\nwith a token\n".as_bytes(), &[]);
    assert_eq!(said.ok().json()["request"], "Sign in\nwith a token");
    let said = world.run_with(&["run", "-"], b" \n", &[]);
    assert!(said.code == 2 && said.err.contains("The request is empty"), "{said:?}");
    let said = world.run(&["run", "x", "--input", "=v"]);
    assert!(said.code == 2 && said.err.contains("KEY=VALUE"), "{said:?}");
}

#[test]
fn b_22_worktrees_without_a_repository_are_told_before_the_run() {
    let world = World::workflow(&ECHO.replace("entry =", "worktrees = true\nentry ="));
    let said = world.run(&["check"]);
    assert!(said.out.contains("needs a git repository"), "{said:?}");
    let said = world.run(&["doctor"]);
    assert!(said.code == 1 && said.out.contains("need a git repository"), "{said:?}");
    let init = world.command("git").args(["init", "-q"]).status().expect("git");
    assert!(init.success());
    assert!(!world.run(&["check"]).ok().out.contains("git repository"));
}

#[test]
fn s4_03_a_council_that_did_not_agree_is_no_success_of_the_command() {
    let member = |name: &str, signal: &str| {
        let script = format!(
            "[[turn]]\nsteps = [\n\
             {{ emit = \"SIGNAL\", payload = {{ signal = \"{signal}\", reason = \"so\" }} }},\n\
             {{ emit = \"RESULT\", payload = {{ status = \"resolved\", summary = \"Said\" }} }},\n]\n"
        );
        (format!("agents/{name}.toml"), script)
    };
    let scripts = [member("Alex", "agree"), member("Sam", "disagree")];
    let files: Vec<(&str, &str)> =
        scripts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let world = World::with(
        r#"
[workflow]
name = "team"
entry = "council"
[agents.Alex]
runner = "scripted"
script = "agents/Alex.toml"
[agents.Sam]
runner = "scripted"
script = "agents/Sam.toml"
[council]
members = ["Alex", "Sam"]
quorum = "2 of 2"
turns_per_agent = 1
exhausted = "hand_over"
[generations]
[limits]
cooldown = "0s"
"#,
        &files,
    );
    let said = world.run(&["run", "x"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("the council did not agree"), "{said:?}");
    until("the context", || {
        let context = world.run(&["context", "--json"]).json();
        (context["nextAction"]["type"] == "continue_discussion").then_some(())
    });
    until_so("the end", || world.run(&["resume"]).code == 3);
}

#[test]
fn s4_05_a_cost_that_nobody_knows_is_not_told_as_nothing() {
    let world = World::workflow(&format!("{ECHO}[generations]\n"));
    world.run(&["run", "x"]).ok();
    let briefing = world.run(&["briefing"]).ok().out;
    assert!(briefing.contains("one: 1 turns, unknown"), "{briefing}");
    assert!(briefing.contains("TOTAL COST unknown") && !briefing.contains("$0.00"), "{briefing}");
}

#[test]
fn s3_01_an_agent_of_a_phase_knows_its_task_without_reading_the_prompt() {
    let agent = format!(
        r#"cp "$STAFETTE_INPUTS" kept.json
{} emit RESULT - <<END
{{"task_id": "$STAFETTE_TASK_ID", "phase": "$STAFETTE_PHASE", "status": "complete", "decision": "PROCEED",
 "context_summary": "x", "issues": [], "findings": {{"existing_implementations": [], "conflicts": [],
 "patterns_found": [], "recommendations": []}}}}
END
"#,
        program()
    );
    let world = World::with(
        r#"
[workflow]
name = "look"
entry = "scout"
[agents.scout]
runner = "exec"
command = ["sh", "scout.sh"]
[[phases]]
phase = "research"
agents = ["scout"]
[[routes]]
from = "scout"
to = "orchestrator"
reason = "phase"
"#,
        &[("scout.sh", &agent)],
    );
    let view = world.run(&["run", "x", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    let kept: Value = serde_json::from_str(&world.read("kept.json")).expect("JSON");
    assert_eq!(kept["phase"]["phase"], "research", "{kept}");
    assert!(kept["phase"]["task_id"].as_str().is_some_and(|id| !id.is_empty()), "{kept}");
}
