//! `stafette mcp` as a process: how it begins, ends and dies, and who it speaks for.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::OUTSIDE;
use crate::world::{PATIENCE, World, program, until, until_so};

/// A client with nothing but lines of JSON.
pub(crate) struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
}

impl Talk {
    pub(crate) fn new(world: &World, env: &[(&str, &str)]) -> Self {
        let mut command = world.command(program());
        command.arg("mcp").envs(env.iter().copied());
        let mut talk = Self::over(command);
        let client = json!({ "name": "talk", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        assert_eq!(talk.ask("initialize", hello)["result"]["serverInfo"]["name"], "stafette");
        talk.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        talk
    }

    fn over(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("standard output"));
        let (tell, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).expect("nothing but JSON is printed");
                let _ = tell.send(value);
            }
        });
        let input = child.stdin.take();
        Talk { child, input, lines, next: 1 }
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("standard input");
        writeln!(input, "{message}").and_then(|()| input.flush()).expect("written");
    }

    /// Asks and does not wait; the id of the question.
    fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next line for which this holds.
    fn hears(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line in time");
            if holds(&line) {
                return line;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.hears(|line| line["id"] == id)
    }

    /// Calls a tool; what came back, or what it said went wrong.
    pub(crate) fn call(&mut self, name: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": arguments }));
        let result = &answer["result"];
        match result["isError"] == true {
            false => Ok(result["structuredContent"].clone()),
            true => Err(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// Begins a wait that lasts, and returns once it has told so.
    fn waits(&mut self) {
        let arguments = json!({ "agent": "reviewer", "within_seconds": 600 });
        let meta = json!({ "progressToken": "p" });
        self.begin("tools/call", json!({ "name": "wait", "arguments": arguments, "_meta": meta }));
        self.hears(|line| line["method"] == "notifications/progress");
    }

    /// How it ended, and what it said about that.
    fn ends(mut self) -> (Option<i32>, String) {
        let since = Instant::now();
        loop {
            if self.child.try_wait().expect("a child").is_some() {
                break;
            }
            assert!(since.elapsed() < PATIENCE, "it does not end");
            // Whatever it still says is read meanwhile.
            let _ = self.lines.recv_timeout(Duration::from_millis(10));
        }
        let output = self.child.wait_with_output().expect("it ended");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn kill(signal: &str, pid: u32) {
    let killed = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(killed.expect("kill starts").success());
}

#[test]
fn b_11_it_starts_the_daemon_and_ends_with_its_input_after_the_last_answer() {
    let world = World::workflow(OUTSIDE);
    let mut talk = Talk::new(&world, &[]);
    let id = talk.begin("tools/call", json!({ "name": "status", "arguments": {} }));
    drop(talk.input.take());
    assert_eq!(talk.hears(|line| line["id"] == id)["result"]["isError"], false);
    assert_eq!(talk.ends(), (Some(0), String::new()));
}

#[test]
fn b_11_it_ends_at_once_when_it_is_told_to() {
    let world = World::workflow(OUTSIDE);
    for signal in ["-INT", "-TERM"] {
        let mut talk = Talk::new(&world, &[]);
        talk.waits();
        kill(signal, talk.child.id());
        assert_eq!(talk.ends(), (Some(0), String::new()), "{signal}");
    }
}

#[test]
fn b_11_it_says_so_when_the_daemon_dies() {
    let world = World::workflow(OUTSIDE);
    let mut talk = Talk::new(&world, &[]);
    talk.waits();
    let up = world.run(&["up", "--json"]).ok().json();
    let pid = up["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
    kill("-KILL", pid);
    let (code, said) = talk.ends();
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains("The daemon went away"), "{said}");
}

#[test]
fn b_11_inside_a_session_it_starts_no_daemon() {
    let world = World::workflow(OUTSIDE);
    let nowhere = world.home().join("nowhere.sock").display().to_string();
    let said = world.run_with(&["mcp"], b"", &[("STAFETTE_SOCKET", &nowhere)]);
    assert_eq!(said.code, 7, "{said:?}");
    assert!(!world.state().join("daemon.sock").exists());
}

#[test]
fn b_11_a_question_goes_to_a_person_and_the_answer_comes_back() {
    let world = World::workflow(OUTSIDE);
    let mut talk = Talk::new(&world, &[]);
    let run = talk.call("start_run", json!({ "request": "Add a login" })).expect("a run");
    let run = run["run"].clone();
    let take = |talk: &mut Talk| {
        let offered =
            talk.call("wait", json!({ "run": run, "within_seconds": 120 })).expect("work");
        let handoff = &offered["offered"][0]["handoff"];
        talk.call("accept", json!({ "run": run, "handoff": handoff })).expect("a turn")
    };
    let turn = take(&mut talk)["turn"].clone();
    let question = json!({
        "run": run, "turn": turn, "question": "JWT or sessions?", "options": ["JWT", "sessions"],
    });
    let asked = talk.call("escalate", question).expect("it is taken");
    assert!(asked["next"].as_str().is_some_and(|next| next.contains("`complete`")), "{asked}");
    let end = json!({ "run": run, "turn": turn, "status": "partial", "summary": "I need to know" });
    talk.call("complete", end).expect("the turn ends");
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    assert_eq!(inbox[0]["handoff"]["offer"]["question"]["details"], "JWT or sessions?");
    world.run(&["answer", inbox[0]["id"].as_str().expect("an id"), "JWT"]).ok();
    let again = take(&mut talk);
    assert_ne!(again["turn"], turn, "the next turn of the same handoff");
    let answer = again["inputs"].to_string() + &again["answers"].to_string();
    assert!(answer.contains("JWT"), "{again}");
    let why = "There is no compiler here";
    let end = json!({ "run": run, "turn": again["turn"], "why": why });
    talk.call("reject", end).expect("it is given back");
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    assert!(inbox.to_string().contains(why), "a person decides what follows: {inbox}");
}

#[test]
fn b_10_a_lock_is_for_a_turn_and_ends_with_it() {
    let world = World::workflow(OUTSIDE);
    let mut talk = Talk::new(&world, &[]);
    let run = talk.call("start_run", json!({ "request": "Add a login" })).expect("a run");
    let run = run["run"].clone();
    let offered = talk.call("wait", json!({ "run": run, "within_seconds": 120 })).expect("work");
    let handoff = &offered["offered"][0]["handoff"];
    let turn = talk.call("accept", json!({ "run": run, "handoff": handoff })).expect("a turn");
    let turn = turn["turn"].clone();
    let ours = json!({ "patterns": ["src/**"], "run": run, "turn": turn });
    let lock = talk.call("lock", ours.clone()).expect("it is free");
    assert_eq!(lock["patterns"], json!(["src/**"]));

    // Somebody else waits in line, and gives up.
    let theirs = json!({ "patterns": ["src/login.rs"], "wait_seconds": 0 });
    let refused = talk.call("lock", theirs).expect_err("it is locked");
    assert!(refused.contains("builder"), "{refused}");
    let theirs = json!({ "patterns": ["src/login.rs"], "wait_seconds": 600 });
    let meta = json!({ "progressToken": 1 });
    let id =
        talk.begin("tools/call", json!({ "name": "lock", "arguments": theirs, "_meta": meta }));
    talk.hears(|line| line["method"] == "notifications/progress");
    let places = || {
        let list = world.run(&["locks", "--json"]).ok().json();
        list["locks"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(places(), 2, "one has it and one waits");
    let cancelled = json!({ "requestId": id, "reason": "enough" });
    talk.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    until_so("the place in the line is given up", || places() == 1);

    let name = lock["lock"].clone();
    let mine = json!({ "lock": name, "run": run, "turn": turn });
    assert_eq!(talk.call("unlock", mine).expect("given back")["unlocked"], name);
    talk.call("lock", ours).expect("it is free again");
    talk.call("complete", json!({ "summary": "Done", "run": run, "turn": turn })).expect("an end");
    let theirs = json!({ "patterns": ["src/login.rs"], "wait_seconds": 120 });
    talk.call("lock", theirs).expect("the turn is over, and its lock with it");
}

#[test]
fn s4_06_an_agent_of_the_outside_proposes_a_change_and_revises_it() {
    let world = World::workflow(OUTSIDE);
    world.write("old.txt", "still here\n");
    let mut talk = Talk::new(&world, &[]);
    let run = talk.call("start_run", json!({ "request": "Clean up" })).expect("a run");
    let run = run["run"].clone();
    let take = |talk: &mut Talk| {
        let offered =
            talk.call("wait", json!({ "run": run, "within_seconds": 120 })).expect("work");
        let handoff = &offered["offered"][0]["handoff"];
        talk.call("accept", json!({ "run": run, "handoff": handoff })).expect("a turn")
    };
    let turn = take(&mut talk)["turn"].clone();
    let set = |turn: &Value, edits: Value| json!({ "run": run, "turn": turn, "reason": "Clean up", "changes": edits });
    let out = set(&turn, json!([{ "file": "../x", "action": "create", "content": "" }]));
    let refused = talk.call("propose_change", out).expect_err("it leads out");
    assert!(refused.contains("../x"), "{refused}");
    let deletion = set(&turn, json!([{ "file": "old.txt", "action": "delete" }]));
    let proposed = talk.call("propose_change", deletion.clone()).expect("it is kept");
    assert_eq!(proposed["change"], "c1");
    assert_eq!(proposed["needs_yes"], "deletes old.txt");
    assert_eq!(talk.call("propose_change", deletion).expect("the same")["change"], "c1");
    let end = json!({ "run": run, "turn": turn, "status": "resolved", "summary": "Proposed" });
    talk.call("complete", end).expect("the turn ends");
    world.run(&["changes", "comment", "c1", "Keep it, but empty it"]).ok();
    let back = take(&mut talk);
    assert!(back.to_string().contains("Keep it, but empty it"), "{back}");
    let edit = json!([{ "file": "old.txt", "action": "modify", "content": "" }]);
    let revised = talk.call("propose_change", set(&back["turn"], edit)).expect("it is kept");
    assert_eq!((&revised["change"], &revised["revision"]), (&json!("c1"), &json!(2)));
    let late = talk.call("propose_change", set(&turn, json!([]))).expect_err("that turn is over");
    assert!(late.contains("over"), "{late}");
}

/// An agent that is only a shell script: it speaks the protocol by itself.
const SHELL: &str = r#"
    [workflow]
    name = "shell"
    entry = "builder"
    [agents.builder]
    runner = "exec"
    command = ["sh", "-c", "cat > prompt; echo $STAFETTE_SOCKET $STAFETTE_TOKEN > keys; $PROGRAM mcp < calls > answers; while test -e stay; do :; done"]
    env = ["PROGRAM"]
    [agents.reviewer]
    runner = "external"
    [[routes]]
    from = "builder"
    to = "reviewer"
    [limits]
    cooldown = 0
    accept_timeout = "10m"
"#;

#[test]
fn b_07_a_session_speaks_for_its_own_agent_and_nobody_else_does() {
    let world = World::workflow(SHELL);
    let call = |id: u64, name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let client = json!({ "name": "sh", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client });
    let calls = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        call(2, "accept", json!({})),
        call(3, "handoff", json!({ "to": "reviewer", "summary": "Built" })),
        call(4, "start_run", json!({ "request": "Another one" })),
        call(5, "briefing", json!({ "turn": "h9/1.1" })),
    ];
    world.write("calls", &calls.map(|call| format!("{call}\n")).concat());
    world.write("stay", "");
    let path = [("PROGRAM", program())];
    world.run_with(&["run", "Add a login", "--detach"], b"", &path).ok();
    // The last line may come in pieces.
    let whole = |text: &String| text.lines().count() == 5 && text.ends_with('\n');
    let answers = until("five answers", || Some(world.read("answers")).filter(whole));
    let answer = |id: u64| {
        let lines = answers.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.into_iter().find(|line| line["id"] == id).expect("an answer")["result"].clone()
    };
    assert_eq!(answer(2)["structuredContent"]["agent"], "builder");
    assert_eq!(answer(3)["structuredContent"]["taken"], true);
    assert!(answer(4).to_string().contains("may_not"));
    assert!(answer(5).to_string().contains("not_yours"));

    // Somebody else has found the token: it opens nothing, for they are not of the family.
    let keys = world.read("keys");
    let (socket, token) = keys.trim().split_once(' ').expect("both");
    let stolen = [("STAFETTE_SOCKET", socket), ("STAFETTE_TOKEN", token)];
    let thief = world.run_with(&["mcp"], b"", &stolen);
    assert!(thief.code == 1 && thief.err.contains("not the session"), "{thief:?}");

    // The agent ends, and its handoff goes out.
    std::fs::remove_file(world.project().join("stay")).expect("removed");
    let mut talk = Talk::new(&world, &[]);
    let work = talk.call("wait", json!({ "agent": "reviewer", "within_seconds": 120 }));
    assert_eq!(work.expect("work")["offered"][0]["summary"], "Built");
}

#[test]
fn s2_10_the_context_of_a_trace_goes_by_mcp_both_ways() {
    let theirs = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let with = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments, "_meta": { "traceparent": theirs } });
    let context = |answer: &Value| {
        let said = answer["result"]["_meta"]["traceparent"].as_str()?;
        let parts: Vec<String> = said.split('-').map(str::to_owned).collect();
        Some((parts[1].clone(), parts[2].clone()))
    };
    let world = World::workflow(&format!("{OUTSIDE}[telemetry]\notlp = \"http://127.0.0.1:9\"\n"));
    let mut talk = Talk::new(&world, &[]);
    let begun = talk.ask("tools/call", with("start_run", json!({ "request": "x" })));
    let (trace, whole) = context(&begun).expect("the run's context");
    assert_eq!(trace, &theirs[3..35], "it is a part of what the caller does");
    let offered = talk.call("wait", json!({ "within_seconds": 120 })).expect("an offer");
    let offer = &offered["offered"][0];
    let taken = json!({ "run": offer["run"], "handoff": offer["handoff"] });
    let accepted = talk.ask("tools/call", with("accept", taken));
    let (inside, turn) = context(&accepted).expect("the turn's context");
    assert_eq!(inside, trace);
    assert_ne!(turn, whole);
    let brief = &accepted["result"]["structuredContent"];
    let report = json!({ "run": brief["run"], "turn": brief["turn"], "note": "on it" });
    let reported = talk.ask("tools/call", with("report", report));
    assert_eq!(context(&reported), Some((trace, turn)), "in every answer about it");

    let world = World::workflow(OUTSIDE);
    let mut talk = Talk::new(&world, &[]);
    let begun = talk.ask("tools/call", with("start_run", json!({ "request": "x" })));
    assert_eq!(context(&begun), None, "nobody would know the parent");
}

/// Takes the next turn of a run that is offered.
pub(crate) fn next_turn(talk: &mut Talk, run: &Value) -> Value {
    let offered = talk.call("wait", json!({ "run": run, "within_seconds": 120 })).expect("work");
    let handoff = &offered["offered"][0]["handoff"];
    talk.call("accept", json!({ "run": run, "handoff": handoff })).expect("a turn")["turn"].clone()
}

#[test]
fn s4_03_members_of_a_council_vote_by_their_tool() {
    let world = World::workflow(
        "[workflow]\nname = \"two\"\nentry = \"council\"\n\
         [agents.alex]\nrunner = \"external\"\n[agents.sam]\nrunner = \"external\"\n\
         [council]\nmembers = [\"alex\", \"sam\"]\nquorum = \"1 of 2\"\nturns_per_agent = 1\n\
         [limits]\ncooldown = 0\n",
    );
    let mut talk = Talk::new(&world, &[]);
    let run = talk.call("start_run", json!({ "request": "Tabs or spaces?" })).expect("a run");
    let run = run["run"].clone();
    let turn = next_turn(&mut talk, &run);
    let unknown = talk.call("vote", json!({ "run": run, "turn": turn, "signal": "perhaps" }));
    unknown.expect_err("no such stance");
    let vote = json!({
        "run": run, "turn": turn, "signal": "agree", "reason": "one width for all",
        "key_decisions": ["spaces"],
    });
    talk.call("vote", vote).expect("it is taken");
    let end = json!({ "run": run, "turn": turn, "status": "resolved", "summary": "Spaces" });
    talk.call("complete", end).expect("the turn ends");
    let events = world.run(&["log", "--json"]).ok().lines();
    let heard = events.iter().find(|event| event["event"] == "council_heard").expect("a word");
    assert_eq!(heard["vote"]["signal"], "agree", "{heard}");
    assert!(heard.to_string().contains("one width for all"), "{heard}");
    let concluded = events.iter().find(|event| event["event"] == "council_concluded");
    assert!(concluded.expect("an end").to_string().contains("spaces"), "{events:?}");
}

#[test]
fn s1_11_agents_read_and_write_what_is_known_by_their_tools_as_far_as_their_role_may() {
    let world = World::workflow(
        "[workflow]\nname = \"stages\"\nentry = \"discuss\"\n\
         [agents.discuss]\nrunner = \"external\"\n[knowledge]\n[limits]\ncooldown = 0\n",
    );
    let mut talk = Talk::new(&world, &[]);
    let run = talk.call("start_run", json!({ "request": "Four days a week?" })).expect("a run");
    let run = run["run"].clone();
    let turn = next_turn(&mut talk, &run);
    let with = |mut more: Value| {
        more["run"] = run.clone();
        more["turn"] = turn.clone();
        more
    };
    let body = "It saves money only if support stays reachable";
    let said = talk.call("history_append", with(json!({ "title": "Four days", "body": body })));
    let said = said.expect("it is kept");
    let found = talk.call("history_search", with(json!({ "words": "support reach" })));
    let found = found.expect("it is found");
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(1), "{found}");
    assert!(found.to_string().contains(said["thread_id"].as_str().expect("a thread")), "{found}");
    let read = talk.call("history_read", with(json!({ "thread_id": said["thread_id"] })));
    assert!(read.expect("it is read").to_string().contains(body));
    let goals = talk.call("odei.neo4j.goals.list.v1", with(json!({}))).expect("its role may");
    assert!(goals.is_object(), "{goals}");
    let insight = json!({
        "id": "me", "pattern": "I am always right", "confidence": 1.0, "evidence": "none", "topic": "me",
    });
    let learned = talk.call("odei.neo4j.insights.create.v1", with(insight));
    let refused = learned.expect_err("who discusses does not say what was learned");
    assert!(refused.contains("discuss"), "{refused}");
}
