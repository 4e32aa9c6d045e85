//! Runs with real processes, from the command line.

use serde_json::json;

use crate::world::{World, gone, until_so};

#[test]
fn s2_07_missing_inputs_come_from_research_and_from_a_person_and_are_merged() {
    let world = World::example("report");
    let said = world.run(&["run", "Write the market report"]);
    assert_eq!(said.code, 3, "a person has to decide: {said:?}");
    assert!(said.out.contains("writer needs audience (who the report is for)"), "{said:?}");
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    assert_eq!(inbox[0]["handoff"]["offer"]["missing"][0]["key"], "audience");
    world.run(&["answer", "3", "founders"]).ok();
    let view = world.run(&["resume", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded");
    let handoffs = world.run(&["handoffs", "--json"]).ok().json();
    let inputs = &handoffs[0]["handoff"]["inputs"];
    assert_eq!((&inputs["audience"], &inputs["market_size"]), (&json!("founders"), &json!("9 bn")));
    assert!(world.read("report.md").starts_with("# The market"));
}

#[test]
fn s2_04_each_refusal_is_recorded_and_named() {
    for (example, words) in [
        ("refusals/limit", "Handoff limit exceeded: `global` was handed over 3 times"),
        ("refusals/circular", "Circular handoff detected: writer → editor → writer"),
        ("refusals/unknown", "Unknown target: the workflow has no agent `editor`"),
    ] {
        let world = World::example(example);
        let said = world.run(&["run", "--foreground", "Write it"]).ok();
        assert!(said.err.contains(words), "{example}: {said:?}");
        let handoffs = world.run(&["handoffs", "--json"]).ok().json();
        let refused =
            handoffs.as_array().expect("handoffs").iter().find(|h| h["state"] == "refused");
        let id = refused.expect("a refused handoff")["id"].as_str().expect("an id").to_owned();
        assert!(world.run(&["why", &id]).ok().out.contains(words), "{example}");
    }
}

/// Two commands: what the first prints decides.
fn pair(first: &str, header: &str) -> String {
    format!(
        r#"
[workflow]
name = "pair"
entry = "a"
{header}
[agents.a]
runner = "exec"
command = ["sh", "-c", '{first}']
[agents.b]
runner = "exec"
result = "exit"
command = ["sh", "-c", "cat > given.txt; echo done"]
[[routes]]
from = "a"
to = "b"
"#
    )
}

#[test]
fn b_07_a_bare_frame_in_plain_output_only_proposes() {
    let world = World::workflow(&pair("cat >/dev/null; echo \"<<<ODEI:HANDOFF:b>>>\"", ""));
    let said = world.run(&["run", "x"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("options: allow · refuse"), "{said:?}");
    assert_eq!(world.read("given.txt"), "", "nothing has moved");
    world.run(&["answer", "2", "allow"]).ok();
    world.run(&["resume"]).ok();
    assert!(world.read("given.txt").contains('x'), "the prompt reached b on standard input");
}

#[test]
fn b_06_receipts_are_shown_by_log_why_and_handoffs() {
    let first = "cat >/dev/null; echo hm; echo \"<<<ODEI:RESULT:done>>>\"";
    let world = World::workflow(&pair(first, ""));
    world.run(&["run", "x"]).ok();
    let log = world.run(&["log", "--json"]).ok().lines();
    let steps: Vec<_> = log.iter().filter_map(|event| event["receipt"].as_str()).collect();
    assert_eq!(steps, ["delivered", "ingested", "acknowledged"]);
    assert!(world.run(&["log"]).ok().out.contains("h1/1.1  ingested"));
    let why = world.run(&["why", "h1"]).ok().out;
    let places = ["queued", "delivered", "ingested", "acknowledged"].map(|step| why.find(step));
    assert!(places.is_sorted() && places[0].is_some(), "{why}");
}

#[test]
fn b_06_who_tells_by_its_own_channel_has_acknowledged_its_turn() {
    let program = crate::world::program();
    let first =
        format!("{program} emit RESULT done; touch told; while [ ! -e seen ]; do sleep 0.01; done");
    let world = World::workflow(&pair(&first, ""));
    world.run(&["run", "x", "--detach"]).ok();
    until_so("it has told", || world.project().join("told").exists());
    let shown = world.run(&["handoffs"]).ok().out;
    world.write("seen", "");
    assert!(shown.contains("accepted") && shown.contains("acknowledged"), "{shown}");
}

#[test]
fn b_07_a_workflow_may_trust_bare_frames() {
    let first = "cat >/dev/null; echo \"<<<ODEI:HANDOFF:{\\\"to\\\":\\\"b\\\",\\\"spec\\\":\\\"s.md\\\"}>>>\"";
    let world = World::workflow(&pair(first, "trust_bare_frames = true"));
    world.run(&["run", "--foreground", "x"]).ok();
    assert!(world.read("given.txt").contains("s.md"), "{}", world.read("given.txt"));
}

#[test]
fn s2_01_a_command_may_answer_with_a_json_document() {
    let text = pair(r#"cat >/dev/null; echo "{\"to\":\"b\",\"summary\":\"over to you\"}""#, "")
        .replace("[agents.b]", "result = \"json\"\n[agents.b]");
    let world = World::workflow(&text);
    world.run(&["run", "--foreground", "x"]).ok();
    assert!(world.read("given.txt").contains("over to you"));
}

#[test]
fn s5_07_a_command_that_keeps_failing_ends_with_a_person() {
    let text = pair("echo no luck >&2; exit 1", "")
        + "[retries]\nbackoff = \"10ms\"\n[limits]\ncooldown = 0\n";
    let world = World::workflow(&text);
    let said = world.run(&["run", "x"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("no luck") && said.err.contains("attempt 3 follows"), "{said:?}");
    assert!(said.out.contains("options: retry · skip · stop"), "{said:?}");
    world.run(&["answer", "2", "stop"]).ok();
    assert_eq!(world.run(&["status", "--json"]).json()[0]["status"], "failed");
}

#[test]
fn b_05_a_budget_that_is_reached_has_its_own_exit_code() {
    let first = "cat >/dev/null; echo \"<<<ODEI:REPORT:{\\\"usd\\\":0.9}>>><<<ODEI:HANDOFF:b>>>\"";
    let world = World::workflow(&pair(first, "trust_bare_frames = true"));
    let said = world.run(&["run", "x", "--budget", "0.90usd"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("The budget is reached"), "{said:?}");
    world.run(&["answer", "3", "raise"]).ok();
    world.run(&["resume"]).ok();
}

#[test]
fn a_run_survives_the_daemon_and_goes_on_with_the_next_one() {
    let world = World::workflow(&pair(
        "cat >/dev/null; echo started > a.txt; while [ ! -e go ]; do sleep 0.05; done; \
         echo \"<<<ODEI:RESULT:done>>>\"",
        "",
    ));
    let run = world.run(&["run", "x", "--detach"]).ok();
    world.run(&["down"]).ok();
    world.write("go", "");
    let view = world.run(&["resume", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded");
    assert_eq!(json!(run.out.trim()), view["run"]);
    assert_eq!(view["tally"]["redelivered"], 1);
}

#[test]
fn a_cancelled_run_stops_its_agents() {
    let world = World::workflow(&pair("cat >/dev/null; echo $$ > pid; sleep 1000", ""));
    world.run(&["run", "x", "--detach"]).ok();
    let view = world.run(&["cancel", "--why", "not needed", "--json"]).ok().json();
    assert_eq!(view["status"], "cancelled");
    world.run(&["down"]).ok();
    if let Ok(pid) = world.read("pid").trim().parse() {
        gone(pid);
    }
}

#[test]
fn up_prints_one_line_for_programs_when_it_is_ready() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let world = World::example("refusals/unknown");
    let mut child = world
        .command(crate::world::program())
        .args(["up", "--foreground", "--listen", "127.0.0.1:0", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a daemon");
    let mut line = String::new();
    let out = child.stdout.take().expect("standard output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(ready["pid"], child.id());
    assert!(ready["url"].as_str().expect("a url").starts_with("http://127.0.0.1:"));
    world.run(&["down"]).ok();
    assert!(child.wait().expect("an end").success());
}

#[test]
fn the_log_can_be_followed_and_continued() {
    let world = World::example("refusals/unknown");
    world.run(&["run", "--foreground", "x"]).ok();
    let all = world.run(&["log", "--json", "--follow"]).ok().lines();
    let seqs: Vec<u64> = all.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let rest = world.run(&["log", "--json", "--after", "3"]).ok().lines();
    assert_eq!(rest.first(), all.get(3));
    assert!(world.run(&["log"]).ok().out.contains("handoff_refused"));
}

#[test]
fn prune_removes_old_runs_and_keeps_the_latest() {
    let world = World::example("refusals/unknown");
    for request in ["one", "two", "three"] {
        world.run(&["run", "--foreground", request]).ok();
    }
    let asked = world.run(&["prune", "--older-than", "0s", "--keep", "1"]);
    assert!(asked.code == 2 && asked.err.contains("Remove 2 ended runs"), "{asked:?}");
    let all = ["prune", "--older-than", "0s", "--keep", "1", "--yes", "--json"];
    let said = world.run(&all).ok().json();
    assert_eq!(said["removed"]["runs"], 2);
    let runs = world.run(&["status", "--json"]).ok().json();
    assert_eq!(runs[0]["request"], "three");
    assert_eq!(runs.as_array().map(Vec::len), Some(1));
}

/// An agent that speaks by its own channel, given as a shell script.
fn speaker(script: &str) -> World {
    let script = format!("cat >/dev/null; S={}; {script}", crate::world::program());
    World::workflow(&pair(&script, ""))
}

#[test]
fn b_07_emit_moves_work_that_bare_frames_only_propose() {
    let world = speaker("$S emit HANDOFF b 2>said.txt; echo \"<<<ODEI:HANDOFF:human>>>\"");
    let view = world.run(&["run", "--foreground", "x", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded");
    assert_eq!(world.read("said.txt"), "taken\n");
    assert!(world.read("given.txt").contains('x'), "b has worked");
    assert_eq!(view["tally"]["escalated"], 0, "the frame that it printed moved nothing");
}

#[test]
fn b_07_emit_hears_a_refusal_at_once_and_may_think_again() {
    let world = speaker("$S emit HANDOFF nobody 2>said.txt; echo $? >>said.txt; $S emit HANDOFF b");
    world.run(&["run", "--foreground", "x"]).ok();
    let said = world.read("said.txt");
    assert!(said.contains("Unknown target") && said.ends_with("1\n"), "{said}");
    assert!(world.read("given.txt").contains('x'));
}

#[test]
fn b_07_a_token_is_of_no_use_outside_of_its_session() {
    // The agent gives its token away; a process that is not its own tries to use it.
    let world = speaker(
        "echo $STAFETTE_TOKEN >token.tmp; echo $STAFETTE_SOCKET >>token.tmp; mv token.tmp token; \
         while [ ! -e tried ]; do sleep 0.02; done; $S emit RESULT done",
    );
    world.run(&["run", "--detach", "x"]).ok();
    until_so("it gives its token away", || !world.read("token").is_empty());
    let text = world.read("token");
    let (token, socket) = text.trim().split_once('\n').expect("two lines");
    let stolen = [("STAFETTE_TOKEN", token), ("STAFETTE_SOCKET", socket)];
    let said = world.run_with(&["emit", "HANDOFF", "b"], b"", &stolen);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("not the session"), "{said:?}");
    let made_up = [("STAFETTE_TOKEN", "0000"), ("STAFETTE_SOCKET", socket)];
    assert!(
        world.run_with(&["emit", "HANDOFF", "b"], b"", &made_up).err.contains("not the session")
    );
    world.write("tried", "");
    let view = world.run(&["resume", "--json"]).ok().json();
    assert_eq!((&view["status"], &view["tally"]["handoffs"]), (&json!("succeeded"), &json!(0)));
    assert_eq!(world.run(&["emit", "HANDOFF", "b"]).code, 2, "outside of any session");
}

#[test]
fn b_07_where_the_socket_cannot_be_reached_a_signed_frame_does() {
    let world = speaker("$S emit --print HANDOFF b; echo \"<<<ODEI:HANDOFF:human>>>\"");
    let view = world.run(&["run", "--foreground", "x", "--json"]).ok().json();
    assert_eq!((&view["status"], &view["tally"]["escalated"]), (&json!("succeeded"), &json!(0)));
    assert!(world.read("given.txt").contains('x'), "b has worked");
}

#[test]
fn b_08_each_agent_works_in_a_worktree_of_its_own_and_the_checkout_stays_as_it_is() {
    let first = "cat >/dev/null; echo one > a.txt; git add a.txt; git commit -qm a; \
                 echo two > loose.txt; echo \"<<<ODEI:HANDOFF:b>>>\"";
    let text = pair(first, "trust_bare_frames = true\nworktrees = true")
        .replace("cat > given.txt; echo done", "cat >/dev/null; cat a.txt loose.txt > both.txt");
    let world = World::workflow(&text);
    let git = |arguments: &[&str]| {
        let output = world.command("git").args(arguments).output().expect("git");
        assert!(output.status.success(), "{arguments:?} {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.name", "ada"]);
    git(&["config", "user.email", "ada@example.org"]);
    git(&["add", "stafette.toml"]);
    git(&["commit", "-qm", "first"]);
    let view = world.run(&["run", "--foreground", "x", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert_eq!(git(&["status", "--porcelain"]), "", "the user's checkout is as it was");
    assert_eq!(git(&["log", "--format=%s", "main"]), "first\n");
    let run = view["run"].as_str().expect("a run");
    let result = format!("stafette/result/{}", &run[run.len() - 8..]);
    let both = git(&["show", &format!("{result}:both.txt")]);
    assert_eq!(both, "one\ntwo\n", "b had all of a's work");
}

#[test]
fn b_17_a_secret_that_an_agent_lets_slip_is_not_stored() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let first =
        format!("cat >/dev/null; echo \"the token is {secret}\"; echo {secret} >&2; exit 1");
    let text = pair(&first, "") + "[retries]\nmax = 1\n";
    let world = World::workflow(&text);
    assert_eq!(world.run(&["run", "--foreground", "x"]).code, 3);
    let log = world.run(&["log", "--json"]).ok().out;
    assert!(log.contains("[redacted:"), "{log}");
    // The workflow itself, which its user wrote, is the only place where it may be.
    let told: Vec<&str> = log.lines().filter(|line| !line.contains("run_created")).collect();
    assert!(!told.join("").contains(secret));
}

#[test]
fn b_07_a_printed_report_books_no_cost_and_stops_no_run() {
    let first = "cat >/dev/null; echo \"<<<ODEI:REPORT:{\\\"usd\\\":1000,\\\"tokens\\\":9000000}>>>\"; \
                 echo \"<<<ODEI:RESULT:done>>>\"";
    let world = World::workflow(&pair(first, ""));
    let view = world.run(&["run", "x", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded");
    let unknown = json!({ "tokens": 1, "money": 1 });
    assert_eq!(view["purse"]["spent"], json!({ "tokens": 0, "money": 0.0, "unknown": unknown }));
}

#[test]
fn b_07_a_printed_handoff_that_makes_no_sense_fails_no_turn_and_is_seen_in_the_run() {
    let first = "cat > prompt.txt; echo \"<<<ODEI:HANDOFF:{\\\"summary\\\":\\\"to nobody\\\"}>>>\"; \
                 echo \"<<<ODEI:HANDOFF:{torn}>>>\"";
    let world = World::workflow(&pair(first, ""));
    let said = world.run(&["run", "x"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("printed frame ignored: HANDOFF: /to"), "{said:?}");
    assert!(said.out.contains("cannot be read") && said.out.contains("HANDOFF: /to"), "{said:?}");
    let prompt = world.read("prompt.txt");
    assert!(prompt.contains("HANDOFF: /to"), "it is told what was wrong: {prompt}");
    let events = world.run(&["log", "--json"]).ok().lines();
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((named("turn_failed"), named("retry_scheduled")), (0, 0));
    assert_eq!(named("frame_ignored"), 4, "two in each of two turns");
    let log = world.run(&["log"]).ok().out;
    assert!(log.contains("frame_ignored") && log.contains("not valid JSON"), "{log}");
    assert!(world.run(&["why", "h1"]).ok().out.contains("not valid JSON"));
}

#[test]
fn b_07_a_printed_error_is_shown_as_printed() {
    let first = "cat >/dev/null; echo \"<<<ODEI:ERROR:{\\\"code\\\":\\\"DISK_FULL\\\"}>>>\"; \
                 echo \"<<<ODEI:RESULT:done>>>\"";
    let world = World::workflow(&pair(first, ""));
    let said = world.run(&["run", "x"]).ok();
    assert!(said.err.contains("DISK_FULL (printed)"), "{said:?}");
    let events = world.run(&["log", "--json"]).ok().lines();
    let alert = events.iter().find(|event| event["event"] == "alert_raised").expect("an alert");
    assert_eq!(alert["printed"], true);
}
