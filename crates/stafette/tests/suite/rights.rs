//! Every operation of every interface, tried by every kind of caller, against what `stafette rights`
//! says.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::web::{Response, Web};
use crate::world::{PATIENCE, World, program, until, until_so};

/// An agent that asks for what `asks` lists, by both sockets, and one of the outside.
const TEAM: &str = r#"
[workflow]
name = "team"
entry = "solo"
[agents.solo]
runner = "exec"
result = "exit"
command = ["sh", "solo.sh"]
[agents.helper]
runner = "external"
[[routes]]
from = "solo"
to = "helper"
[limits]
cooldown = 0
accept_timeout = "10m"
"#;

const SOLO: &str = r#"
cat > /dev/null
echo "$STAFETTE_SOCKET" > socket.new; mv socket.new socket
[ -e asks ] || exit 0
asks() {
  curl -s -o /dev/null -w '%{http_code}' --globoff --max-time 60 --unix-socket "$1" -X "$2" \
    -H "$4" -H 'Content-Type: application/json' --data "$5" "http://localhost$3"
}
while read -r name method path body; do
  echo "$name $(asks "$STAFETTE_SOCKET" "$method" "$path" "stafette-token: $STAFETTE_TOKEN" "$body") \
$(asks "${STAFETTE_SOCKET%agents.sock}daemon.sock" "$method" "$path" 'X-None: 1' "$body") \
$(asks "$STAFETTE_SOCKET" "$method" "$path" 'X-None: 1' "$body")"
done < asks > answers.new
mv answers.new answers
"#;

/// A body that no operation takes, so that nothing happens when the caller may ask.
const ODD: &str = r#"{"?":0}"#;

/// An operation as `stafette rights` lists it.
struct Operation {
    interface: String,
    name: String,
    /// The method and a path that leads to it.
    first: String,
    body: String,
    may: BTreeMap<String, bool>,
}

impl Operation {
    fn of(listed: &Value) -> Self {
        let text = |key: &str| listed[key].as_str().expect("a text").to_owned();
        let (interface, name) = (text("interface"), text("name"));
        let first = match interface.as_str() {
            "http" => text("route").replace("ANY", "GET").replace("{*path}", "tasks"),
            _ => "POST /a2a".to_owned(),
        };
        let first = first.replace("{question}", "ffffffff:h9").replace(['{', '}'], "");
        let body = match interface.as_str() {
            "a2a" => json!({ "jsonrpc": "2.0", "id": 1, "method": name, "params": {} }).to_string(),
            _ if first.starts_with("GET") => String::new(),
            _ => ODD.to_owned(),
        };
        let may = listed["may"].as_object().expect("the callers").iter();
        let may = may.map(|(caller, may)| (caller.clone(), *may == true)).collect();
        Operation { interface, name, first, body, may }
    }

    /// Whether a signature is wanted, which nobody has here.
    fn is_signed(&self) -> bool {
        self.name == "deliverWebhook"
    }

    /// Whether trying it would end the daemon, which has to answer the others first.
    fn ends_the_daemon_for(&self, column: &str) -> bool {
        self.name == "stopDaemon" && self.may[column]
    }

    /// Holds what came of a request against the table.
    fn check(&self, caller: &str, column: &str, status: u16) {
        if self.is_signed() {
            assert_eq!(status, 401, "{caller}: the signature decides, not the caller");
            return;
        }
        let refused = [401, 403].contains(&status);
        let may = self.may[column];
        assert_eq!(!refused, may, "{caller}: {} {} is {status}", self.interface, self.name);
    }
}

/// Every operation.
fn operations(world: &World) -> Vec<Operation> {
    let listed = world.run(&["rights", "--json"]).ok().json();
    listed.as_array().expect("operations").iter().map(Operation::of).collect()
}

/// An answer by a Unix socket.
fn by_socket(socket: &str, first: &str, body: &str) -> u16 {
    let mut stream = UnixStream::connect(socket.trim()).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let head = format!(
        "{first} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer in time");
    text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status")
}

/// The session of a browser that followed a launch link.
pub(crate) fn session(web: &Web<'_>) -> String {
    let link = web.post("/v1/launch", &json!({})).ok();
    let key = link["url"].as_str().and_then(|link| link.split_once("#key=")).expect("a key").1;
    let entered = web.plain("POST /v1/session", &[], &json!({ "key": key }).to_string()).ok();
    entered["session"].as_str().expect("a session").to_owned()
}

#[test]
fn b_21_every_operation_answers_every_caller_as_the_table_says() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    let all = operations(&world);
    assert!(all.len() > 120, "{}", all.len());
    let routed: Vec<&Operation> = all.iter().filter(|op| op.interface != "mcp").collect();
    // What each tool answers is in `mcp_rights.rs`.
    let mut asks = String::new();
    for op in &routed {
        asks.push_str(&format!("{} {} {}\n", op.name, op.first, op.body));
    }
    world.write("asks", &asks);
    world.write("solo.sh", SOLO);
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "x", "--detach"]).ok();

    // Programs with tokens, a browser, and nobody.
    let token = |name: &str, more: &[&str]| {
        let made = world.run(&[&["token", "create", name], more].concat()).ok();
        format!("Authorization: Bearer {}", made.out.trim())
    };
    let page = format!("Authorization: Bearer {}", session(&web));
    let origin = format!("Origin: http://127.0.0.1:{}", web.port);
    let callers = [
        ("admin token", "person", vec![web.bearer()]),
        ("page", "person", vec![page, origin]),
        ("act token", "act", vec![token("act", &["--scope", "act"])]),
        ("assist token", "assistant", vec![token("assist", &["--scope", "assist"])]),
        ("observe token", "observe", vec![token("observe", &["--scope", "observe"])]),
        ("agent's token", "agent's token", vec![token("h1", &["--agent", "helper"])]),
        (
            "agent's observe token",
            "agent's token, observe",
            vec![token("h2", &["--agent", "helper", "--scope", "observe"])],
        ),
        ("nobody", "nobody", vec![]),
    ];
    for (caller, column, headers) in &callers {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        for op in routed.iter().filter(|op| !op.ends_the_daemon_for(column)) {
            let Response { status, body, .. } = web.plain(&op.first, &headers, &op.body);
            op.check(caller, column, status);
            assert_eq!(body.contains("bad_signature"), op.is_signed(), "{caller}: {}", op.name);
            if op.name.starts_with("follow") && !op.may[*column] {
                let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
                let headers = [headers.as_slice(), &[upgrade]].concat();
                op.check(caller, column, web.plain(&op.first, &headers, "").status);
            }
        }
    }

    // A person at their own socket, and an agent at both.
    let socket = until("the agent is there", || {
        Some(world.read("socket")).filter(|socket| !socket.is_empty())
    });
    let own = socket.trim().replace("agents.sock", "daemon.sock");
    for op in routed.iter().filter(|op| !op.ends_the_daemon_for("person")) {
        op.check("person", "person", by_socket(&own, &op.first, &op.body));
    }
    until_so("the agent has asked", || !world.read("answers").is_empty());
    let answers = world.read("answers");
    let told: Vec<Vec<&str>> = answers.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(told.len(), routed.len(), "{answers}");
    for (op, said) in routed.iter().zip(&told) {
        assert_eq!(said[0], op.name);
        let status = |place: usize| said[place].parse().expect("a status");
        op.check("agent", "agent", status(1));
        op.check("agent at the person's socket", "agent", status(2));
        op.check("agent without its token", "nobody", status(3));
    }

    assert_eq!(by_socket(&own, "POST /v1/stop", ODD), 200, "a person may stop it");
}

#[test]
fn b_21_an_agent_takes_part_in_its_own_turn_and_in_no_others() {
    let world = World::workflow(TEAM);
    world.write("solo.sh", SOLO);
    // Another run, whose agent has ended.
    world.run(&["trust", "--yes"]).ok();
    let first = world.run(&["run", "x", "--json"]).ok().json()["run"].clone();
    let first = first.as_str().expect("a run");
    let person = crate::doors::request("human", "helper");
    let helper = crate::doors::request("helper", "human");
    let turn = json!({ "turn": "1.1", "why": "no" });
    let asks = [
        format!("accept-elsewhere POST /v1/runs/{first}/handoffs/h1/accept {{}}"),
        format!("reject-elsewhere POST /v1/runs/{first}/handoffs/h1/reject {turn}"),
        format!("propose-elsewhere POST /v1/handoffs?run={first} {helper}"),
        format!("from-human POST /v1/handoffs {person}"),
        format!("from-helper POST /v1/handoffs {helper}"),
        "own-turns GET /v1/turns {}".to_owned(),
    ];
    world.write("asks", &asks.map(|ask| format!("{ask}\n")).concat());
    world.run(&["run", "y"]).ok();
    for line in world.read("answers").lines() {
        let said: Vec<&str> = line.split_whitespace().collect();
        let expected = if said[0] == "own-turns" { "200" } else { "403" };
        assert_eq!(said[1..], [expected, expected, "401"], "{line}");
    }
    assert_eq!(world.read("answers").lines().count(), 6);
}

#[test]
fn b_21_a_command_lists_who_may_do_what() {
    let world = World::new();
    let shown = world.run(&["rights"]).ok().out;
    for part in ["startRun", "mcp start_run", "a2a SendMessage", "ASSISTANT", "decide"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let listed = world.run(&["rights", "--json"]).ok().json();
    let approve = listed.as_array().expect("operations").iter();
    let approve: Vec<&Value> = approve.filter(|op| op["name"] == "approveChange").collect();
    let may = &approve.first().expect("it is listed")["may"];
    assert_eq!(
        (&may["person"], &may["assistant"], &may["agent"]),
        (&json!(true), &json!(false), &json!(false))
    );
}

#[test]
fn b_21_an_assistant_answers_agents_and_decides_nothing() {
    let world = World::workflow(
        "[workflow]\nname = \"one\"\nentry = \"a\"\n[agents.a]\nrunner = \"exec\"\n\
         command = [\"sh\", \"a.sh\"]\n[budget]\nmoney = \"5usd\"\n[retries]\nmax = 1\n",
    );
    let asks = format!(
        "if grep -q 'the blue one'; then exit 1; fi\n'{}' emit HANDOFF '{{\"to\":\"human\",\"summary\":\"Which?\"}}'\n",
        program()
    );
    world.write("a.sh", &asks);
    world.run(&["trust", "--yes"]).ok();
    let web = Web::up(&world);
    let made = world.run(&["token", "create", "helper", "--scope", "assist"]).ok();
    let token = format!("Authorization: Bearer {}", made.out.trim());
    let post = |path: &str, body: &str| web.plain(&format!("POST {path}"), &[&token], body);
    let rich = post("/v1/runs", r#"{"request":"x","budget":1000000000}"#);
    assert_eq!(rich.status, 403, "{rich:?}");
    for more in ["{}", r#"{"max_runs":8,"max_cost":100000,"check_in_every":0}"#] {
        let body = format!("{{\"request\":\"x\",\"continuous\":{more}}}");
        let endless = post("/v1/runs", &body);
        assert_eq!(endless.status, 403, "the workflow allows no generations: {endless:?}");
    }
    let run = post("/v1/runs", r#"{"request":"x","by":"the boss"}"#).ok()["run"].clone();
    let question = |about: &str| {
        until(about, || {
            let open = web.get("/v1/inbox").ok();
            let open = open.as_array().expect("questions").first().cloned()?;
            open.to_string().contains(about).then(|| open["id"].clone())
        })
    };
    let address = |id: &Value| {
        format!("/v1/inbox/{}:{}", run.as_str().expect("a run"), id.as_str().expect("an id"))
    };
    let asked = question("Which?");
    let said = post(&address(&asked), r#"{"text":"the blue one","by":"the boss"}"#);
    assert_eq!(said.status, 200, "an agent's question: {said:?}");
    let failed = question("could not do its work");
    for word in ["retry", "stop"] {
        let said = post(&address(&failed), &format!("{{\"text\":\"{word}\"}}"));
        assert_eq!(said.status, 403, "{word} decides: {said:?}");
    }
    // Nor does a token that decides sign as somebody else.
    let made = world.run(&["token", "create", "deputy", "--scope", "act"]).ok();
    let deputy = format!("Authorization: Bearer {}", made.out.trim());
    let path = format!("POST /v1/runs/{}/cancel", run.as_str().expect("a run"));
    web.plain(&path, &[&deputy], r#"{"by":"the boss"}"#).ok();
    let log = world.run(&["log", "--json"]).ok().out;
    assert!(!log.contains("the boss"), "{log}");
    for signed in ["\"by\":\"helper\"", "cancelled by deputy"] {
        assert!(log.contains(signed), "{signed}: {log}");
    }
}
