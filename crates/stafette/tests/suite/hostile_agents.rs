//! Agents that die, hang, leave children behind and write without end, under the real daemon: each
//! ends as documented, nothing of it is left, and the daemon stays small.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::world::{World, until, until_so};

/// What the daemon may take at most, whatever its agents write.
const MEMORY: u64 = 160 * 1024 * 1024;

/// One agent, which is this script; `more` is the rest of the workflow.
fn world(runner: &str, script: &str, more: &str) -> World {
    let patient = if more.contains("accept_timeout") { "" } else { "accept_timeout = \"5m\"" };
    let workflow = format!(
        r#"
[workflow]
name = "one"
entry = "a"
[agents.a]
runner = "{runner}"
result = "exit"
prompt_via = "{}"
command = ["sh", "a.sh"]
[limits]
cooldown = 0
{patient}
{more}
"#,
        if runner == "acp" { "stdin" } else { "argument" }
    );
    World::with(&workflow, &[("a.sh", script)])
}

/// The processes of a run that still live, whatever group, session or parent they have now.
fn alive(run: &str) -> Vec<String> {
    let wanted = format!("STAFETTE_RUN={run}");
    let mut alive = Vec::new();
    for process in fs::read_dir("/proc").expect("the table of processes").flatten() {
        let read = |name: &str| fs::read(process.path().join(name)).unwrap_or_default();
        let carries = read("environ").split(|byte| *byte == 0).any(|v| v == wanted.as_bytes());
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        if carries && !stat.contains(") Z ") {
            alive.push(stat);
        }
    }
    alive
}

fn run(world: &World, arguments: &[&str]) -> Value {
    let said = world.run(&[arguments, &["--json"]].concat());
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    said.json()
}

fn id(view: &Value) -> &str {
    view["run"].as_str().expect("a run")
}

/// Why turns failed, in their order.
fn failures(world: &World) -> Vec<String> {
    let log = world.run(&["log", "--json"]).ok().lines();
    let failed = log.iter().filter(|event| event["event"] == "turn_failed");
    failed.map(|event| event["failure"]["message"].as_str().expect("a text").to_owned()).collect()
}

/// The most memory that the daemon ever had, in bytes.
fn peak(world: &World) -> u64 {
    let project = fs::canonicalize(world.project()).expect("a project");
    let is_daemon = |process: &PathBuf| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&b"--foreground".as_slice())
            && words.contains(&project.as_os_str().as_encoded_bytes())
    };
    let processes = fs::read_dir("/proc").expect("the table of processes").flatten();
    let daemon = processes.map(|entry| entry.path()).find(is_daemon).expect("a daemon");
    let status = fs::read_to_string(daemon.join("status")).expect("its status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its peak");
    let kilobytes = line.split_whitespace().nth(1).expect("a number");
    kilobytes.parse::<u64>().expect("a number") * 1024
}

/// The agent of a run that says who it is and then stays.
const STAYS: &str = "if [ -e second ]; then echo done; exit 0; fi; touch second\n\
                     sleep 1000 & setsid sleep 1000 & echo $$ > pid.new; mv pid.new pid; wait\n";

#[test]
fn s1_15_an_agent_killed_in_the_middle_of_its_turn_is_tried_again_and_leaves_nothing() {
    for runner in ["exec", "pty"] {
        let world = world(runner, STAYS, "[retries]\nbackoff = \"10ms\"");
        world.run(&["run", "x", "--detach"]).ok();
        let pid = until("it starts", || Some(world.read("pid")).filter(|pid| !pid.is_empty()));
        let killed = Command::new("kill").args(["-KILL", pid.trim()]).status();
        assert!(killed.expect("kill").success());
        let view = run(&world, &["resume"]);
        assert_eq!(view["status"], "succeeded", "{runner}: {view}");
        let failures = failures(&world);
        assert_eq!(failures.len(), 1, "{runner}: {failures:?}");
        assert!(failures[0].starts_with("killed by signal 9"), "{runner}: {failures:?}");
        until_so("no orphan", || alive(id(&view)).is_empty());
    }
}

#[test]
fn b_02_an_agent_that_hangs_is_ended_when_its_time_is_up_though_it_will_not_listen() {
    for runner in ["exec", "pty"] {
        let script = "trap '' TERM INT HUP; echo working; while :; do sleep 1000; done";
        // None may be longer than the last, and it has to be there before they are over.
        let clocks =
            ["accept_timeout", "lease", "finish_timeout"].map(|c| format!("{c} = \"12s\""));
        let world = world(runner, script, &clocks.join("\n"));
        let view = run(&world, &["run", "x"]);
        assert_eq!(view["waiting_on"], "human", "{runner}: {view}");
        assert_eq!(failures(&world), ["not finished within 12s"], "{runner}");
        until_so("no orphan", || alive(id(&view)).is_empty());
        world.run(&["answer", "2", "stop"]).ok();
    }
}

#[test]
fn b_02_children_that_are_left_behind_go_with_the_turn_whatever_they_did_to_get_away() {
    let script = "echo working\n\
                  sleep 1000 &\n\
                  nohup sleep 1000 >/dev/null 2>&1 &\n\
                  setsid sleep 1000 &\n\
                  (setsid sh -c 'sleep 1000 & exec sleep 1000' >/dev/null 2>&1 < /dev/null &)\n\
                  setsid sh -c 'trap \"\" TERM; : > up; while :; do sleep 1000; done' >/dev/null 2>&1 &\n\
                  while [ ! -e up ]; do :; done; echo done\n";
    for runner in ["exec", "pty"] {
        let world = world(runner, script, "");
        let view = run(&world, &["run", "x"]);
        assert_eq!(view["status"], "succeeded", "{runner}: {view}");
        // Nothing is left when the result is told, or, of a terminal, shortly after.
        match runner {
            "exec" => assert_eq!(alive(id(&view)), Vec::<String>::new()),
            _ => until_so("no orphan", || alive(id(&view)).is_empty()),
        }
    }
}

#[test]
fn a_gibibyte_of_output_leaves_the_daemon_small() {
    let flood = "head -c 1073741824 /dev/zero | tr '\\0' x";
    // An agent that speaks the protocol: each answer carries the number of its question. What it
    // says in messages is costly to read without optimisation, so most of it goes aside.
    let acp = format!(
        r#"id() {{ read -r line; id=$(printf %s "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/'); }}
id; echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":1,"agentCapabilities":{{}}}}}}'
id; echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"sessionId":"s"}}}}'
id; {flood} >&2
text=$(head -c 16384 /dev/zero | tr '\0' x)
yes '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"'$text'"}}}}}}}}' | head -n 2048
echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"stopReason":"end_turn"}}}}'
cat >/dev/null"#
    );
    let plain = format!("{flood}; echo; echo done");
    for (runner, script) in [("exec", plain.as_str()), ("acp", acp.as_str())] {
        let world = world(runner, script, "");
        let view = run(&world, &["run", "x"]);
        let peak = peak(&world);
        assert_eq!(view["status"], "succeeded", "{runner}: {view} {:?}", failures(&world));
        assert!(peak < MEMORY, "{runner}: {peak} bytes");
        assert_eq!(alive(id(&view)), Vec::<String>::new(), "{runner}");
    }
}

#[test]
fn a_message_without_end_fails_the_turn_and_leaves_the_daemon_small() {
    let world = world("acp", "head -c 1073741824 /dev/zero | tr '\\0' x", "[retries]\nmax = 1");
    let view = run(&world, &["run", "x"]);
    assert_eq!(view["waiting_on"], "human", "{view}");
    assert_eq!(failures(&world), ["it wrote a line of more than 8 MiB"]);
    assert!(peak(&world) < MEMORY);
    assert_eq!(alive(id(&view)), Vec::<String>::new());
}

#[test]
fn s1_16_a_flood_through_a_terminal_leaves_the_daemon_small() {
    let script = "yes 'some line that an agent prints over and over' | head -c 6291456; echo done";
    let world = world("pty", script, "");
    let view = run(&world, &["run", "x"]);
    let peak = peak(&world);
    assert_eq!(view["status"], "succeeded", "{view} {:?}", failures(&world));
    assert!(peak < MEMORY, "{peak} bytes");
    until_so("no orphan", || alive(id(&view)).is_empty());
}

#[test]
fn s5_07_an_agent_that_exits_at_once_ten_times_ends_with_a_person() {
    let script = "echo x >> lives; echo no key found >&2; exit 4";
    let more = "[retries]\nmax = 10\nbackoff = \"1ms\"\nmax_backoff = \"5ms\"";
    let world = world("exec", script, more);
    let view = run(&world, &["run", "x"]);
    assert_eq!(view["waiting_on"], "human", "{view}");
    assert_eq!(world.read("lives").lines().count(), 10);
    let failures = failures(&world);
    assert_eq!(failures.len(), 10);
    assert!(failures.iter().all(|why| why == "exit status 4: no key found"), "{failures:?}");
    assert_eq!(alive(id(&view)), Vec::<String>::new());
    world.run(&["answer", "2", "stop"]).ok();
    assert_eq!(world.run(&["status", "--json"]).json()[0]["status"], "failed");
}
