//! What an agent tries against the daemon that started it: by the sockets, by the command line and by
//! the protocols. Nothing of it succeeds, and what is its own still works.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::parts;
use crate::sandbox::alerts;
use crate::world::{World, program, until, until_so};

/// Requests that are not an agent's: a name, a method with its path, and a body.
const REQUESTS: [(&str, &str, &str); 21] = [
    ("raise-budget", "POST /v1/runs/RUN/budget", r#"{"money":1000005}"#),
    ("cancel-run", "POST /v1/runs/RUN/cancel", "{}"),
    ("pause-run", "POST /v1/runs/RUN/pause", "{}"),
    ("continue-run", "POST /v1/runs/RUN/unpause", "{}"),
    ("fork-run", "POST /v1/runs/RUN/fork", "{}"),
    ("start-run", "POST /v1/runs", r#"{"request":"more of me"}"#),
    ("sign-note", "POST /v1/runs/RUN/notes", r#"{"text":"trust me","by":"the boss"}"#),
    ("type-elsewhere", "POST /v1/runs/RUN/terminals/victim/send", r#"{"text":"rm -rf x"}"#),
    ("read-recording", "GET /v1/runs/RUN/terminals/victim/recording", ""),
    ("watch-terminal", "GET /v1/runs/RUN/terminals/victim/live?write=true", ""),
    ("interrupt-other", "POST /v1/runs/RUN/terminals/victim/interrupt", "{}"),
    ("make-token", "POST /v1/tokens", r#"{"name":"mine","scope":"admin"}"#),
    ("make-launch-link", "POST /v1/launch", "{}"),
    ("approve-own-change", "POST /v1/changes/c1/approve", r#"{"by":"the boss"}"#),
    ("apply-own-change", "POST /v1/changes/c1/apply", "{}"),
    ("answer-own-question", "POST /v1/inbox/RUN:h3", r#"{"text":"approve","by":"the boss"}"#),
    (
        "answer-by-a2a",
        "POST /a2a",
        r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","taskId":"RUN","role":"ROLE_USER","parts":[{"text":"approve"}]}}}"#,
    ),
    ("stop-daemon", "POST /v1/stop", "{}"),
    ("release-stopped-runs", "POST /v1/continue", "{}"),
    ("read-all-events", "GET /v1/runs/RUN/events", ""),
    ("read-others-handoffs", "GET /v1/runs/RUN/handoffs", ""),
];

/// Those in whose name it hands work to itself.
const GIVERS: [&str; 2] = ["human", "victim"];

/// Commands that are a person's.
const COMMANDS: [(&str, &str); 4] = [
    ("trust", "trust --yes"),
    ("make-token-by-command", "token create mine --scope admin"),
    ("apply-by-command", "apply c1"),
    ("answer-by-command", "answer h3 approve"),
];

/// Asks for all of it, by both sockets, with the token of the turn and without it, and then does what
/// is its own.
fn script() -> String {
    let mut tries = String::new();
    for (name, first, body) in REQUESTS {
        let (method, path) = first.split_once(' ').expect("a method and a path");
        let (path, body) = (path.replace("RUN", "'$RUN'"), body.replace("RUN", "'$RUN'"));
        writeln!(tries, "asks {name} {method} '{path}' '{body}'").expect("a text");
    }
    for giver in GIVERS {
        let path = "/v1/handoffs?run='$RUN'";
        writeln!(tries, "asks hand-over-as-{giver} POST '{path}' \"$(cat {giver}.json)\"")
            .expect("a text");
    }
    for (name, words) in COMMANDS {
        writeln!(tries, "types {name} {words}").expect("a text");
    }
    format!(
        r#"
cat > /dev/null
S='{}'
RUN=$STAFETTE_RUN
PERSON="${{STAFETTE_SOCKET%agents.sock}}daemon.sock"
asks() {{
  for at in "$PERSON" "$STAFETTE_SOCKET"; do
    for token in '' "$STAFETTE_TOKEN"; do
      code=$(curl -s -o body -w '%{{http_code}}' --max-time 60 --unix-socket "$at" -X "$2" \
        -H "stafette-token: $token" -H 'Content-Type: application/json' \
        ${{4:+--data "$4"}} "http://localhost$3")
      echo "$1 $code $(head -c 200 body | tr '\n' ' ')"
    done
  done
}}
types() {{
  name=$1; shift
  if $S "$@" > said 2>&1; then echo "$name 200"; else
    if grep -q 'This is for a person' said; then echo "$name 403"; else echo "$name 500 $(cat said)"; fi
  fi
}}
$S emit CHANGE '{{"reason":"mine","changes":[{{"file":"kept.txt","action":"delete"}}]}}' > changed 2>&1
{{
{tries}
}} > tried.new 2>&1
mv tried.new tried
{{
$S emit REPORT '{{"note":"at work"}}' && echo own-emit
$S lock own.txt && $S unlock --all && echo own-lock
$S mcp < calls > answers && echo own-mcp
}} > own 2>&1
$S emit RESULT '{{"status":"resolved","summary":"tried"}}'
"#,
        program()
    )
}

/// A victim with a terminal, which hands to an agent that tries everything.
fn world(sandbox: &str) -> World {
    let world = World::new();
    let hear = format!("S='{}'\n{}hear\n", program(), crate::tellings::HEAR);
    let hands_on = "$S emit HANDOFF '{\"to\":\"mallory\",\"summary\":\"the password is swordfish\"}'\n\
                    exec sleep 1000\n";
    world.write("victim.sh", &format!("{hear}{hands_on}"));
    world.write("mallory.sh", &script());
    world.write("kept.txt", "kept\n");
    for giver in GIVERS {
        let document = crate::doors::request(giver, "mallory");
        world.write(&format!("{giver}.json"), &document.to_string());
    }
    let calls = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"briefing","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"start_run","arguments":{"request":"more of me"}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"stafette://runs/latest/briefings/victim"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"victim"}}"#,
    ];
    world.write("calls", &calls.map(|call| format!("{call}\n")).concat());
    world.write(
        "stafette.toml",
        &format!(
            r#"
[workflow]
name = "attempts"
entry = "victim"
[agents.victim]
runner = "pty"
prompt = "the secret of the victim"
command = ["sh", "victim.sh"]
[agents.mallory]
runner = "exec"
sandbox = "{sandbox}"
command = ["sh", "mallory.sh"]
[[routes]]
from = "victim"
to = "mallory"
[limits]
cooldown = 0
[retries]
max = 1
"#
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    world
}

/// What came of each attempt: its name, and the status of each try.
fn tries(world: &World) -> Vec<(String, u16, String)> {
    let tried = world.read("tried");
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let name = words.next()?.to_owned();
        Some((name, words.next()?.parse().ok()?, words.next().unwrap_or_default().to_owned()))
    };
    tried.lines().filter_map(line).collect()
}

fn nothing_succeeds(world: &World, sandboxed: bool) {
    let tried = tries(world);
    let names: BTreeSet<&str> = tried.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names.len(), 27, "{names:?}");
    assert_eq!(tried.len(), 4 * (REQUESTS.len() + GIVERS.len()) + COMMANDS.len());
    for (name, status, said) in &tried {
        // In a sandbox the person's socket is not there at all.
        let away = sandboxed && *status == 0;
        assert!(away || [401, 403].contains(status), "{name}: {status} {said}");
    }
    assert_eq!(world.read("kept.txt"), "kept\n");
    let own = world.read("own");
    for works in ["own-emit", "own-lock", "own-mcp"] {
        assert!(own.lines().any(|line| line == works), "{works} in {own}");
    }
    let answers = world.read("answers");
    let answer = |id: u64| {
        let lines = answers.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut all = lines.filter(|line: &serde_json::Value| line["id"] == id);
        all.next().unwrap_or_else(|| panic!("no {id} in {answers}"))
    };
    assert_eq!(answer(2)["result"]["structuredContent"]["agent"], "mallory", "{answers}");
    assert!(answer(3).to_string().contains("may_not"), "{answers}");
    assert!(answer(4)["error"].is_object() && answer(5)["error"].is_object(), "{answers}");
    assert!(!answers.contains("secret of the victim"), "{answers}");
}

#[test]
fn b_21_nothing_that_an_agent_tries_against_its_daemon_succeeds_and_its_own_work_does() {
    let world = world("off");
    // Its change waits for a person.
    assert_eq!(world.run(&["run", "x"]).code, 3);
    nothing_succeeds(&world, false);
    // The daemon lives, and is the person's.
    let tokens = world.run(&["token", "list", "--json"]).ok().json();
    assert_eq!(tokens, serde_json::json!([]));
    assert_eq!(world.run(&["status", "--json"]).ok().lines().len(), 1, "no run was added");
}

#[test]
fn b_21_in_a_sandbox_an_agent_does_not_even_reach_the_persons_socket() {
    for mode in ["strict", "auto"] {
        let world = world(mode);
        let said = world.run(&["run", "x"]);
        // Its change waits for a person.
        assert_eq!(said.code, 3, "{said:?}");
        let refused = said.out.contains("sandbox of mallory is strict").then_some(said.out);
        if !parts::is_whole(refused.as_slice()) {
            // A system that cannot hold the whole policy runs nothing of it.
            assert_eq!(world.read("tried"), "");
            continue;
        }
        nothing_succeeds(&world, true);
        let away = tries(&world).iter().filter(|(_, status, _)| *status == 0).count();
        let whole = parts::is_whole(&alerts(&world));
        assert_eq!(away == 2 * (REQUESTS.len() + GIVERS.len()), whole, "{}", world.read("tried"));
    }
}

const ONE: &str = "[workflow]\nname = \"one\"\nentry = \"a\"\n[agents.a]\nrunner = \"exec\"\n\
    result = \"exit\"\ncommand = [\"sh\", \"a.sh\"]\n";

#[test]
fn b_21_an_agent_of_another_project_and_one_that_hides_its_variables_are_no_persons() {
    let (world, other) = (World::new(), World::new());
    for world in [&world, &other] {
        world.write("stafette.toml", ONE);
        world.write("a.sh", "true\n");
    }
    let asks = "curl -s --unix-socket \"$1\" -X POST http://localhost/v1/stop >> said.new\n\
        echo >> said.new\n";
    world.write("asks.sh", asks);
    let socket = other.state().join("daemon.sock");
    world.write(
        "a.sh",
        &format!(
            "cat > /dev/null\nsh asks.sh {other}\n(setsid env -u STAFETTE_KEY sh asks.sh {own}; touch asked) &\n\
             while [ ! -e asked ]; do sleep 0.01; done; mv said.new said\n",
            other = socket.display(),
            own = "${STAFETTE_SOCKET%agents.sock}daemon.sock",
        ),
    );
    other.run(&["up"]).ok();
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "x"]).ok();
    let said = world.read("said");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.lines().all(|line| line.contains("\"status\":40")), "{said}");
    assert_eq!(other.run(&["up", "--json"]).ok().json()["was_running"], true);
}

#[test]
fn b_21_a_process_that_left_its_agents_group_and_session_is_still_the_agents() {
    let world = World::workflow(ONE);
    // It lives on when its parents have ended, in a session of its own.
    let asks = "while [ ! -e orphan ]; do sleep 0.01; done\n\
        curl -s --unix-socket \"${STAFETTE_SOCKET%agents.sock}daemon.sock\" -X POST http://localhost/v1/stop > said.new\n\
        mv said.new said\n";
    world.write("late.sh", asks);
    world.write(
        "a.sh",
        "cat > /dev/null; (setsid sh late.sh > /dev/null 2>&1 &)\ntouch orphan\n\
         while [ ! -e said ]; do sleep 0.01; done\n",
    );
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "x"]).ok();
    until_so("it has asked", || !world.read("said").is_empty());
    let said = world.read("said");
    assert!(said.contains("not_for_agents") && said.contains("the agent `a`"), "{said}");
}

/// Waits for the victim's turn, and tries what only a person or the victim may do, by files.
const BY_FILES: &str = r#"
cat > /dev/null
until ls coord/handoffs/pending/*.json > seen 2> /dev/null; do sleep 0.01; done
could() { name=$1; shift; if "$@" 2> /dev/null; then echo "could $name"; else echo "not $name"; fi; }
{
could request-by-file sh -c 'echo "{\"request\":\"more of me\"}" > coord/handoffs/pending/more.json'
could request-by-link ln own.json coord/handoffs/pending/linked.json
could move-anothers-file sh -c 'mv "$(cat seen)" coord/handoffs/completed/'
could write-state sh -c 'echo "{}" > coord/state.json'
could move-the-folder mv coord away
could own-work sh -c 'echo x > own.txt'
} > tried.new
mv tried.new tried
"#;

/// A boss who hands to an agent of the outside, and to one that tries what it can by files.
fn by_files(sandbox: &str, script: &str) -> World {
    let world = World::new();
    world.write(
        "stafette.toml",
        &r#"
[workflow]
name = "files"
entry = "boss"
[coordination]
folder = "coord"
[agents.boss]
runner = "exec"
command = ["sh", "boss.sh"]
[agents.victim]
runner = "external"
[agents.mallory]
runner = "exec"
result = "exit"
sandbox = "MODE"
command = ["sh", "mallory.sh"]
[[routes]]
from = "boss"
to = "victim"
[[routes]]
from = "boss"
to = "mallory"
[limits]
cooldown = 0
[retries]
max = 1
"#
        .replace("MODE", sandbox),
    );
    let hands = |to: &str| {
        format!("'{}' emit HANDOFF '{{\"to\":\"{to}\",\"summary\":\"x\"}}'\n", program())
    };
    world.write("boss.sh", &format!("cat > /dev/null\n{}{}", hands("victim"), hands("mallory")));
    world.write("mallory.sh", script);
    world.write("own.json", "{\"request\":\"more of me\"}");
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "--detach", "x"]).ok();
    world
}

#[test]
fn b_21_without_a_sandbox_a_file_of_an_agent_counts_as_its_persons_and_the_run_says_so() {
    let drops = "cat > /dev/null; echo '{\"request\":\"more of me\"}' > more.tmp\n\
                 mv more.tmp coord/handoffs/pending/more.json\n";
    let world = by_files("off", drops);
    // Nothing tells the file from one of the person: what it begins shows that it came by a file.
    let begun = until("a run of its own", || {
        let runs = world.run(&["status", "--json"]).ok().json();
        let all = runs.as_array().expect("runs").clone();
        all.into_iter().find(|run| run["request"] == "more of me")
    });
    let run = begun["run"].as_str().expect("a run");
    let log = world.run(&["log", run, "--json"]).ok().out;
    assert!(log.lines().next().is_some_and(|begin| begin.contains("\"by\":\"a file\"")), "{log}");
    // That is no secret: whoever reads about the folder or about security is told.
    for (page, words) in [
        (
            "docs/coordination.md",
            "agents without a sandbox included, can write there and cannot be",
        ),
        ("SECURITY.md", "Without one, the files that it drops there count as its user's"),
    ] {
        let text = std::fs::read_to_string(crate::world::repository().join(page)).expect(page);
        assert!(text.replace('\n', " ").replace("  ", " ").contains(words), "{words} in {page}");
    }
}

#[test]
fn b_21_a_sandboxed_agent_starts_no_run_and_ends_no_turn_by_files() {
    let world = by_files("strict", BY_FILES);
    let log = || world.run(&["log", "--json"]).ok().out;
    let refused = || log().contains("sandbox of mallory is strict");
    until_so("it has tried", || !world.read("tried").is_empty() || refused());
    let refused = refused().then(log);
    if !parts::is_whole(refused.as_slice()) {
        // A system that cannot hold the whole policy runs nothing of it.
        assert_eq!(world.read("tried"), "");
        return;
    }
    let tried = world.read("tried");
    let could: Vec<&str> = tried.lines().filter(|line| line.starts_with("could")).collect();
    assert_eq!(could, ["could own-work"], "{tried}");
    // What is dropped after it by a person is looked at, so all of it was.
    world.write("coord/handoffs/pending/zzz.json", "{}");
    until_so("the folder is read", || {
        !world.read("coord/handoffs/rejected/zzz.reason.json").is_empty()
    });
    assert_eq!(world.run(&["status", "--json"]).ok().lines().len(), 1, "no run was added");
    let victims = world.run(&["handoffs", "--json"]).ok().out;
    let open = victims.lines().filter(|line| line.contains("\"to\":\"victim\""));
    assert!(open.clone().count() == 1 && !victims.contains("by file"), "{victims}");
}

#[test]
fn b_21_a_change_of_the_coordination_folder_needs_a_person() {
    let world = World::workflow(&format!("{ONE}[coordination]\nfolder = \"coord\"\n"));
    let file = "coord/handoffs/pending/x.json";
    let edit = serde_json::json!({ "file": file, "action": "create", "content": "{}" });
    let change = serde_json::json!({ "reason": "x", "changes": [edit] }).to_string();
    world.run(&["trust", "--yes"]).ok();
    world.run_with(&["changes", "propose", "-"], change.as_bytes(), &[]).ok();
    let applied = world.run(&["apply", "c1"]);
    assert!(applied.code != 0 && applied.err.contains("approve"), "{applied:?}");
    assert_eq!(world.read(file), "");
}

/// Reads all that there is of a run, of its victim and of another run.
fn reads(own: &str, other: &str) -> String {
    let read = |id: u32, uri: String| {
        let params = serde_json::json!({ "uri": format!("stafette://runs/{uri}") });
        serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params })
    };
    let begin = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"resources/list"}
{"jsonrpc":"2.0","id":3,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"stafette://runs/{run}"},"argument":{"name":"run","value":""}}}
"#;
    let all = [
        read(4, format!("{own}/briefings/victim")),
        read(5, format!("{own}/handoffs")),
        read(6, other.to_owned()),
        read(7, format!("{other}/handoffs")),
        read(8, own.to_owned()),
    ];
    begin.to_owned() + &all.map(|call| format!("{call}\n")).concat()
}

#[test]
fn b_21_an_agent_reads_no_other_agents_turn_and_no_other_run_by_mcp() {
    let world = World::new();
    world.write(
        "stafette.toml",
        "[workflow]\nname = \"reads\"\nentry = \"boss\"\n[agents.boss]\nrunner = \"exec\"\n\
         command = [\"sh\", \"boss.sh\"]\n[agents.victim]\nrunner = \"external\"\n\
         [agents.mallory]\nrunner = \"exec\"\nresult = \"exit\"\ncommand = [\"sh\", \"mallory.sh\"]\n\
         [[routes]]\nfrom = \"boss\"\nto = \"victim\"\n[[routes]]\nfrom = \"boss\"\nto = \"mallory\"\n\
         [limits]\ncooldown = 0\n",
    );
    let hands = |to: &str, text: &str| {
        let program = program();
        format!("'{program}' emit HANDOFF '{{\"to\":\"{to}\",\"summary\":\"{text}\"}}'\n")
    };
    let (first, second) = (hands("victim", "it is swordfish"), hands("mallory", "do it"));
    world.write("boss.sh", &format!("cat > /dev/null\n{first}{second}"));
    let waits = "cat > /dev/null\nuntil [ -e calls ]; do sleep 0.01; done\n";
    let asks = format!("'{}' mcp < calls > new-$STAFETTE_RUN\n", program());
    let tells = "mv new-$STAFETTE_RUN answers-$STAFETTE_RUN\n";
    world.write("mallory.sh", &format!("{waits}{asks}{tells}"));
    world.run(&["trust", "--yes"]).ok();
    let begin = |request: &str| {
        let said = world.run(&["run", "--detach", request]).ok();
        said.out.trim().to_owned()
    };
    let (own, other) = (begin("my own wish"), begin("the wish of somebody else"));
    for run in [&own, &other] {
        until_so("the victim has its turn", || {
            world.run(&["handoffs", run, "--json"]).ok().out.contains("swordfish")
        });
    }
    let calls = reads(&own, &other);
    let answer = |answers: &str, id: u64| {
        let lines = answers.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut all = lines.filter(|line: &serde_json::Value| line["id"] == id);
        all.next().unwrap_or_else(|| panic!("no {id} in {answers}"))
    };
    // It is there to be read: a person does.
    let persons = world.run_with(&["mcp"], calls.as_bytes(), &[]).ok().out;
    for (id, word) in [
        (2, &*other),
        (3, &other),
        (4, "swordfish"),
        (5, "swordfish"),
        (6, "somebody else"),
        (7, "swordfish"),
    ] {
        assert!(answer(&persons, id)["result"].to_string().contains(word), "{id}: {persons}");
    }
    world.write("calls.new", &calls);
    std::fs::rename(world.project().join("calls.new"), world.project().join("calls"))
        .expect("moved");
    let file = format!("answers-{own}");
    until_so("it has asked", || !world.read(&file).is_empty());
    let answers = world.read(&file);
    for word in ["swordfish", "somebody else", &other] {
        let told = answers.lines().filter(|line| !line.contains("\"error\""));
        assert!(!told.collect::<String>().contains(word), "{word} in {answers}");
    }
    for id in [4, 6, 7] {
        assert!(answer(&answers, id)["error"].is_object(), "{id}: {answers}");
    }
    for (id, word) in [(2, &*own), (3, &own), (5, "do it"), (8, "my own wish")] {
        assert!(answer(&answers, id)["result"].to_string().contains(word), "{id}: {answers}");
    }
}
