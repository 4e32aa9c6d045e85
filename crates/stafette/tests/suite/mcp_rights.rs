//! Every tool of MCP, called by every kind of caller at every door, against a table that was written by
//! hand.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::rights::session;
use crate::web::{Response, Web};
use crate::world::{World, program, repository, until_so};

/// An agent that calls what lies in `calls`, at both sockets, and one of the outside. With knowledge,
/// so that all tools are there.
const TEAM: &str = r#"
[workflow]
name = "team"
entry = "solo"
[knowledge]
graph = "sqlite"
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
PERSON="${STAFETTE_SOCKET%agents.sock}daemon.sock"
calls() {
  for call in calls/*; do
    method=tools/call; name=${call#calls/}
    [ "$name" = list ] && method=tools/list
    curl -s --max-time 60 --unix-socket "$2" -H "$3" -H 'Content-Type: application/json' \
      -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
      -H "Mcp-Method: $method" -H "Mcp-Name: $name" -w '\n%{http_code}' \
      --data @"$call" http://localhost/mcp > "said-$1-$name"
  done
}
calls own "$STAFETTE_SOCKET" "stafette-token: $STAFETTE_TOKEN"
calls persons "$PERSON" "stafette-token: $STAFETTE_TOKEN"
calls unsaid "$PERSON" 'X-None: 1'
calls nobody "$STAFETTE_SOCKET" 'X-None: 1'
$S mcp < lines > spoken
touch asked
"#;

/// What each tool says to each kind of caller: `yes`, `no` or `401`.
type Table = BTreeMap<String, BTreeMap<String, String>>;

fn table() -> Table {
    let text = std::fs::read_to_string(repository().join("fixtures/rights/mcp.md"));
    let text = text.expect("a table");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = text.lines().filter(|line| line.starts_with('|')).map(cells);
    let (head, _) = (lines.next().expect("a head"), lines.next());
    let row = |line: Vec<String>| {
        let said = head.iter().skip(1).cloned().zip(line.iter().skip(1).cloned());
        (line[0].clone(), said.collect())
    };
    lines.map(row).collect()
}

/// A message of MCP, in a session or on its own.
fn message(method: &str, tool: &str, in_session: bool) -> Value {
    let mut params = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    if in_session {
        params = json!({});
    }
    if method == "tools/call" {
        params["name"] = tool.into();
        // No tool takes it, so nothing happens where the caller may call.
        params["arguments"] = json!({ "?": 0 });
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// The answer to the message with this number, however the body holds it.
fn answer(body: &str, id: u64) -> Value {
    let lines = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let mut all = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("no answer {id} in {body}"))
}

/// What a tool said to its caller, in the words of the table.
fn word(status: u16, body: &str) -> String {
    if status != 200 {
        assert!(status == 401 || body.is_empty(), "{status}: {body}");
        return status.to_string();
    }
    heard(&answer(body, 1))
}

fn heard(answer: &Value) -> String {
    let problem = &answer["result"]["_meta"]["stafette/problem"]["code"];
    match problem.as_str() {
        Some("mistaken") => "yes".to_owned(),
        Some("may_not") => "no".to_owned(),
        _ => answer.to_string(),
    }
}

/// The tools that a list offers.
fn offered(answer: &Value) -> BTreeSet<String> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

fn offered_in(table: &Table, column: &str) -> BTreeSet<String> {
    let may = table.iter().filter(|(_, row)| row[column] == "yes");
    may.map(|(tool, _)| tool.clone()).collect()
}

/// A session of the protocol's older revisions, opened by whoever these headers show.
fn opened(web: &Web<'_>, headers: &[&str]) -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    } });
    let accept = "Accept: application/json, text/event-stream";
    let headers = [headers, &[accept]].concat();
    let said = web.plain("POST /mcp", &headers, &hello.to_string());
    let id = said.header("mcp-session-id").unwrap_or_else(|| panic!("{said:?}"));
    let session = format!("Mcp-Session-Id: {id}");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    web.plain("POST /mcp", &[&*headers, &[&session]].concat(), &ready.to_string());
    session
}

#[test]
fn b_21_every_tool_answers_every_caller_as_the_table_by_hand_says() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    let expected = table();

    // The table by hand is that of the server: the same tools, callers and rights.
    let listed = world.run(&["rights", "--json"]).ok().json();
    let tools = listed.as_array().expect("operations").iter();
    let tools = tools.filter(|operation| operation["interface"] == "mcp");
    let declared: BTreeMap<String, BTreeMap<String, bool>> = tools
        .map(|tool| {
            let may = tool["may"].as_object().expect("callers").iter();
            let may = may.map(|(caller, may)| (caller.clone(), *may == true));
            (tool["name"].as_str().expect("a name").to_owned(), may.collect())
        })
        .collect();
    let by_hand: BTreeMap<String, BTreeMap<String, bool>> = expected
        .iter()
        .map(|(tool, row)| {
            let may = row.iter().map(|(caller, said)| (caller.clone(), said == "yes"));
            (tool.clone(), may.collect())
        })
        .collect();
    assert_eq!(declared, by_hand, "fixtures/rights/mcp.md");

    // Programs with tokens, a browser, and nobody, by TCP: each with every tool.
    let token = |name: &str, more: &[&str]| {
        let made = world.run(&[&["token", "create", name], more].concat()).ok();
        format!("Authorization: Bearer {}", made.out.trim())
    };
    let page = format!("Authorization: Bearer {}", session(&web));
    let origin = format!("Origin: http://127.0.0.1:{}", web.port);
    let callers = [
        ("person", vec![web.bearer()]),
        ("person", vec![page, origin]),
        ("act", vec![token("act", &["--scope", "act"])]),
        ("assistant", vec![token("assist", &["--scope", "assist"])]),
        ("observe", vec![token("observe", &["--scope", "observe"])]),
        ("agent's token", vec![token("h1", &["--agent", "helper"])]),
        ("agent's token, observe", vec![token("h2", &["--agent", "helper", "--scope", "observe"])]),
        ("nobody", vec![]),
    ];
    // Of a person: to everybody else it is not there.
    let persons = opened(&web, &[&web.bearer()]);
    for (column, headers) in &callers {
        let own: Vec<&str> = headers.iter().map(String::as_str).collect();
        let opened = (*column != "nobody").then(|| opened(&web, &own));
        let ask = |method: &str, tool: &str, session: Option<&str>| -> Response {
            let accept = "Accept: application/json, text/event-stream";
            let method_of = format!("Mcp-Method: {method}");
            let name_of = format!("Mcp-Name: {tool}");
            let more = match session {
                Some(session) => vec![accept, session],
                None => vec![accept, "MCP-Protocol-Version: 2026-07-28", &method_of, &name_of],
            };
            let body = message(method, tool, session.is_some()).to_string();
            web.plain("POST /mcp", &[&*own, &*more].concat(), &body)
        };
        for (tool, row) in &expected {
            for session in [None, opened.as_deref()] {
                let said = ask("tools/call", tool, session);
                assert_eq!(word(said.status, &said.body), row[*column], "{column}: {tool}");
            }
        }
        for session in [None, opened.as_deref()] {
            let said = ask("tools/list", "list", session);
            match *column {
                "nobody" => assert_eq!(said.status, 401, "{said:?}"),
                _ => assert_eq!(
                    offered(&answer(&said.body, 1)),
                    offered_in(&expected, column),
                    "{column}"
                ),
            }
        }
        if headers[..] != [web.bearer()] {
            let refused = if *column == "nobody" { 401 } else { 404 };
            assert_eq!(ask("tools/list", "list", Some(&persons)).status, refused, "{column}");
            let ended = web.plain("DELETE /mcp", &[&*own, &[&*persons]].concat(), "");
            assert_eq!(ended.status, refused, "{column}: {ended:?}");
        }
    }
    let said = web.plain(
        "POST /mcp",
        &[&web.bearer(), "Accept: application/json, text/event-stream", &persons],
        &message("tools/list", "", true).to_string(),
    );
    assert_eq!(said.status, 200, "it is still there: {said:?}");

    // An agent in its turn, at its own socket and at the person's, and without its token.
    for tool in expected.keys() {
        world.write(&format!("calls/{tool}"), &message("tools/call", tool, false).to_string());
    }
    world.write("calls/list", &message("tools/list", "", false).to_string());
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    } });
    let mut lines = vec![
        hello,
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ];
    lines.extend(expected.keys().enumerate().map(|(place, tool)| {
        let params = json!({ "name": tool, "arguments": { "?": 0 } });
        json!({ "jsonrpc": "2.0", "id": place + 10, "method": "tools/call", "params": params })
    }));
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.write("lines", &lines);
    world.write("solo.sh", &format!("S='{}'\n{SOLO}", program()));
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "x", "--detach"]).ok();
    until_so("the agent has called", || world.project().join("asked").exists());
    for (door, column) in
        [("own", "agent"), ("persons", "agent"), ("unsaid", "agent"), ("nobody", "nobody")]
    {
        let said = |name: &str| {
            let said = world.read(&format!("said-{door}-{name}"));
            let (body, status) = said.rsplit_once('\n').expect("a status");
            (status.parse::<u16>().expect("a number"), body.to_owned())
        };
        for (tool, row) in &expected {
            let (status, body) = said(tool);
            assert_eq!(word(status, &body), row[column], "{door}: {tool}");
        }
        let (status, body) = said("list");
        match column {
            "nobody" => assert_eq!(status, 401, "{body}"),
            _ => assert_eq!(offered(&answer(&body, 1)), offered_in(&expected, column), "{door}"),
        }
    }

    // By lines: `stafette mcp` of a person, and of an agent.
    let spoken = world.run_with(&["mcp"], lines.as_bytes(), &[]).ok().out;
    for (column, spoken) in [("assistant", spoken), ("agent", world.read("spoken"))] {
        for (place, (tool, row)) in (10..).zip(&expected) {
            assert_eq!(heard(&answer(&spoken, place)), row[column], "{column}: {tool}");
        }
        assert_eq!(offered(&answer(&spoken, 2)), offered_in(&expected, column), "{column}");
    }
}
