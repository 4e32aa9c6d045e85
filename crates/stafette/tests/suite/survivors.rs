//! Agents that outlive their daemon: what they report is kept, and nothing of it is done twice.

use std::process::Command;

use crate::world::{World, gone, program, until_so};

/// An agent that runs `first` and may hand to another one; each of them leaves a line in a ledger.
fn world(first: &str) -> World {
    let workflow = r#"
[workflow]
name = "pair"
entry = "a"
[agents.a]
runner = "exec"
command = ["sh", "a.sh"]
[agents.b]
runner = "exec"
result = "exit"
command = ["sh", "-c", "cat >/dev/null; echo b >> ledger"]
[[routes]]
from = "a"
to = "b"
[limits]
cooldown = 0
"#;
    let script = format!("S='{}'\necho a >> ledger\n{first}\n", program());
    World::with(workflow, &[("a.sh", &script)])
}

/// Kills the daemon as a power loss would, though its agents stay.
fn kill_daemon(world: &World) {
    let pid = world.run(&["up", "--json"]).ok().json()["pid"].as_u64().expect("a process");
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill").success());
    gone(pid);
}

fn succeeded(world: &World) {
    until_so("the run succeeds", || {
        world.run(&["status", "--json"]).ok().json()[0]["status"] == "succeeded"
    });
}

#[test]
fn b_19_an_agent_that_survives_its_daemon_reports_to_the_next_one() {
    let world = world(
        "cat >/dev/null; touch begun; while [ ! -e go ]; do sleep 0.02; done
         $S emit HANDOFF b >/dev/null 2>said; echo $? > code",
    );
    world.run(&["run", "--detach", "x"]).ok();
    until_so("a is at work", || world.project().join("begun").exists());
    kill_daemon(&world);
    // It reports while nobody is there, and waits for somebody.
    world.write("go", "");
    until_so("it waits for a daemon", || world.read("said").contains("waiting for the daemon"));
    assert!(!world.project().join("code").exists(), "what is not stored is not acknowledged");
    world.run(&["up"]).ok();
    succeeded(&world);
    assert_eq!((world.read("code").trim(), world.read("ledger").as_str()), ("0", "a\nb\n"));
}

#[test]
fn b_19_what_a_turn_has_reported_is_its_result_whatever_becomes_of_it() {
    let world = world("cat >/dev/null; $S emit HANDOFF b; touch reported; exec sleep 98761");
    world.run(&["run", "--detach", "x"]).ok();
    until_so("a has reported", || world.project().join("reported").exists());
    kill_daemon(&world);
    let ended = world.command("pkill").args(["-KILL", "-f", "sleep 98761"]).status();
    assert!(ended.expect("pkill").success(), "it dies with its daemon");
    world.run(&["up"]).ok();
    succeeded(&world);
    assert_eq!(world.read("ledger"), "a\nb\n", "neither of them has worked twice");
}

#[test]
fn b_19_a_report_that_nobody_stores_fails_and_is_not_printed() {
    let world = world("");
    let session = [
        ("STAFETTE_SOCKET", "/nowhere/stafette.sock"),
        ("STAFETTE_TOKEN", "0000"),
        ("STAFETTE_LEASE_MS", "300"),
    ];
    let said = world.run_with(&["emit", "HANDOFF", "b"], b"", &session);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.out.is_empty() && said.err.contains("it is not stored"), "{said:?}");
}

#[test]
fn b_19_an_agents_order_is_whole_before_it_starts() {
    let world = world("[ -s /dev/stdin ] && $S emit HANDOFF b");
    world.run(&["run", "--foreground", "x"]).ok();
    assert_eq!(world.read("ledger"), "a\nb\n");
}

#[test]
fn b_22_looking_at_stopped_runs_starts_nothing() {
    let world = world("cat >/dev/null; touch begun; exec sleep 98762");
    let begun = world.project().join("begun");
    world.run(&["run", "--detach", "x"]).ok();
    until_so("a is at work", || begun.exists());
    world.run(&["down"]).ok();
    std::fs::remove_file(&begun).expect("it was there");
    for look in
        [&["status"][..], &["inbox"], &["log"], &["why"], &["find", "x"], &["status", "--json"]]
    {
        let said = world.run(look).ok();
        assert!(said.err.contains("1 run is stopped: `stafette up` continues it"), "{said:?}");
    }
    let listed = world.run(&["status"]).ok();
    assert!(listed.out.contains("stopped") && !listed.out.contains("running"), "{listed:?}");
    let view = &world.run(&["status", "--json"]).ok().json()[0];
    assert_eq!((&view["status"], &view["stopped"]), (&"stopped".into(), &true.into()), "{view}");
    assert_eq!(view["working"], serde_json::json!([]), "{view}");
    world.run(&["cancel"]).ok();
    let view = &world.run(&["status", "--json"]).ok().json()[0];
    assert_eq!((&view["status"], begun.exists()), (&"cancelled".into(), false), "{view}");
}

#[test]
fn b_22_a_stopped_run_continues_when_somebody_says_so() {
    let world = world("cat >/dev/null; touch begun; exec sleep 98763");
    let begun = world.project().join("begun");
    world.run(&["run", "--detach", "x"]).ok();
    until_so("a is at work", || begun.exists());
    world.run(&["down"]).ok();
    std::fs::remove_file(&begun).expect("it was there");
    world.run(&["status"]).ok();
    let up = world.run(&["up"]).ok();
    assert!(up.err.contains("1 stopped run continues"), "{up:?}");
    until_so("a is at work again", || begun.exists());
    let status = world.run(&["status"]).ok();
    assert!(!status.err.contains("stopped") && status.out.contains("running"), "{status:?}");
}

#[test]
fn b_22_somebody_who_has_looked_can_still_work_in_the_foreground() {
    let world = world("cat >/dev/null; $S emit HANDOFF b");
    world.run(&["status"]).ok();
    world.run(&["run", "--foreground", "x"]).ok();
    assert_eq!(world.read("ledger"), "a\nb\n");
}

/// A run that is followed in a process of its own, and what it says there.
fn followed(world: &World, arguments: &[&str]) -> std::process::Child {
    let mut command = world.command(program());
    command.args(arguments).stderr(std::process::Stdio::piped());
    command.spawn().expect("it starts")
}

fn interrupt(child: std::process::Child) -> (Option<i32>, String) {
    tell("-INT", child)
}

fn tell(signal: &str, child: std::process::Child) -> (Option<i32>, String) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn b_22_ctrl_c_detaches_from_a_run_and_stops_one_in_the_foreground() {
    let world = world("cat >/dev/null; touch begun; exec sleep 98764");
    let begun = world.project().join("begun");
    let child = followed(&world, &["run", "x"]);
    until_so("a is at work", || begun.exists());
    let (code, said) = interrupt(child);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("detached, and the run continues"), "{said}");
    assert_eq!(world.run(&["status", "--json"]).ok().json()[0]["status"], "running");
    world.run(&["cancel"]).ok();
    world.run(&["down"]).ok();
    std::fs::remove_file(&begun).expect("it was there");
    let child = followed(&world, &["run", "--foreground", "y"]);
    until_so("a is at work", || begun.exists());
    let (code, said) = interrupt(child);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("stopped; `stafette resume` continues the run"), "{said}");
}

#[test]
fn b_22_a_terminal_that_closes_detaches_or_stops_like_ctrl_c() {
    let world = world("cat >/dev/null; touch begun; exec sleep 98765");
    let begun = world.project().join("begun");
    for (foreground, signal, line) in [
        (false, "-TERM", "detached, and the run continues"),
        (false, "-HUP", "detached, and the run continues"),
        (true, "-HUP", "stopped; `stafette resume` continues the run"),
    ] {
        let child = match foreground {
            true => followed(&world, &["run", "--foreground", "x"]),
            false => followed(&world, &["run", "x"]),
        };
        until_so("a is at work", || begun.exists());
        let (code, said) = tell(signal, child);
        assert_eq!(code, Some(130), "{said}");
        assert!(said.contains(line), "{said}");
        world.run(&["cancel"]).ok();
        world.run(&["down"]).ok();
        std::fs::remove_file(&begun).expect("it was there");
    }
}

#[test]
fn b_19_a_turn_that_only_asks_in_plain_words_is_no_success() {
    let world = world("cat >> prompts; echo 'Shall I write it to specs/?'");
    let said = world.run(&["run", "x"]);
    assert_eq!(said.code, 3, "{said:?}");
    // It was asked once more for what is missing, and then a person is asked.
    assert_eq!(world.read("ledger"), "a\na\n");
    assert!(world.read("prompts").contains("ended without a handoff, a result or a question"));
    let inbox = world.run(&["inbox"]).ok();
    assert!(inbox.out.contains("Shall I write it to specs/?"), "{inbox:?}");
    world.run(&["answer", "2", "stop"]).ok();
}

#[test]
fn b_19_a_tool_that_is_missing_is_no_success() {
    let world = world("cat >/dev/null; no-such-tool emit HANDOFF b 2>/dev/null; exit 0");
    assert_eq!(world.run(&["run", "x"]).code, 3);
    assert_eq!(world.read("ledger"), "a\na\n", "b never got the work");
}

#[test]
fn b_19_a_plain_command_answers_by_its_exit_status_where_the_workflow_says_so() {
    let text = |result: &str| {
        format!(
            "[workflow]\nname = \"one\"\nentry = \"a\"\n\
             [agents.a]\nrunner = \"exec\"\n{result}command = [\"sh\", \"-c\", \"echo built\"]\n"
        )
    };
    let world = World::workflow(&text("result = \"exit\"\n"));
    let view = world.run(&["run", "--json", "x"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert!(!world.run(&["check"]).out.contains("no-answer"));
    world.write("stafette.toml", &text(""));
    let check = world.run(&["check"]);
    assert!(
        check.out.contains("no-answer") && check.out.contains("result = \"exit\""),
        "{check:?}"
    );
}

#[test]
fn b_22_a_clock_that_goes_forward_by_a_day_fails_nobody() {
    let world = world(
        "cat >/dev/null; touch begun; while [ ! -e go ]; do sleep 0.02; done; $S emit HANDOFF b",
    );
    let shift = world.project().join("shift");
    let clock = [(stafette_engine::clock::VARIABLE, shift.to_str().expect("a path"))];
    world.run_with(&["run", "--detach", "x"], b"", &clock).ok();
    until_so("a is at work", || world.project().join("begun").exists());
    world.write("shift", "86400000");
    // The daemon has noticed once something of the day after is recorded.
    until_so("it is tomorrow", || {
        let log = world.run(&["log", "--json"]).ok().lines();
        log.iter().any(|event| event["by"].as_str().is_some_and(|by| by.contains("went forward")))
    });
    world.write("go", "");
    succeeded(&world);
    let log = world.run(&["log", "--json"]).ok().lines();
    assert!(log.iter().all(|event| event["event"] != "turn_failed"), "{log:#?}");
    assert_eq!(world.read("ledger"), "a\nb\n");
}
