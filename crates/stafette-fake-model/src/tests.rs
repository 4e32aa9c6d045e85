//! Tests of the model as agents use it: over a socket, in every dialect.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::ask::list;
use super::*;

/// Sends a request over a plain socket; returns the status and the body. A stream is read to its
/// end.
fn post(model: &ModelServer, path: &str, body: &Value) -> (u16, String) {
    let mut socket = TcpStream::connect(model.address).expect("a connection");
    let body = body.to_string();
    let length = body.len();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nhost: x\r\nsession-id: s\r\nauthorization: secret\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .expect("sent");
    let mut reader = BufReader::new(socket);
    let mut status = String::new();
    reader.read_line(&mut status).expect("a status");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("a body");
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
    (code, rest)
}

/// Returns what each dialect sends for a prompt, and after tool results.
fn conversation(dialect: Dialect, prompt: &str, results: usize) -> (&'static str, Value) {
    let (path, mut body, result) = match dialect {
        Dialect::Messages => (
            "/v1/messages",
            json!({
                "model": "m", "stream": true, "tools": [{ "name": "Bash" }],
                "system": [{ "type": "text", "text": "You are careful." }],
                "messages": [{ "role": "user", "content": [
                    { "type": "text", "text": "<system-reminder>be kind</system-reminder>" },
                    { "type": "text", "text": prompt },
                ]}],
            }),
            json!({ "role": "user", "content": [{ "type": "tool_result", "content": "ok" }] }),
        ),
        Dialect::Responses => (
            "/v1/responses",
            json!({
                "model": "m", "stream": true, "tools": [{ "name": "exec_command" }],
                "instructions": "You are careful.",
                "input": [
                    { "type": "message", "role": "user", "content": [
                        { "type": "input_text", "text": "<environment_context>…" }] },
                    { "type": "message", "role": "user", "content": [
                        { "type": "input_text", "text": prompt }] },
                ],
            }),
            json!({ "type": "function_call_output", "output": "ok" }),
        ),
        Dialect::Completions => (
            "/v1/chat/completions",
            json!({
                "model": "m", "stream": true, "tools": [{ "function": { "name": "make" } }],
                "messages": [
                    { "role": "system", "content": "You are careful." },
                    { "role": "user", "content": prompt },
                ],
            }),
            json!({ "role": "tool", "content": "ok" }),
        ),
        Dialect::Generation => (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({
                "tools": [{ "functionDeclarations": [{ "name": "make" }] }],
                "systemInstruction": { "parts": [{ "text": "You are careful." }] },
                "contents": [{ "role": "user", "parts": [{ "text": prompt }] }],
            }),
            json!({ "role": "user", "parts": [{ "functionResponse": { "name": "make" } }] }),
        ),
    };
    let list = match dialect {
        Dialect::Messages | Dialect::Completions => "messages",
        Dialect::Responses => "input",
        Dialect::Generation => "contents",
    };
    let messages = body[list].as_array_mut().expect("messages");
    messages.extend(std::iter::repeat_n(result, results));
    (path, body)
}

const DIALECTS: [Dialect; 4] =
    [Dialect::Messages, Dialect::Responses, Dialect::Completions, Dialect::Generation];

#[test]
fn a_turn_goes_from_a_call_to_a_text_in_every_dialect() {
    for dialect in DIALECTS {
        let script = Script::new().rule(
            Rule::when("build")
                .told("careful")
                .speaking(dialect)
                .then(Reply::call("make", json!({ "target": "all" })))
                .then(Reply::text("It is built.")),
        );
        let model = ModelServer::start(script).expect("a model");
        let (path, body) = conversation(dialect, "Please build it", 0);
        let (code, said) = post(&model, path, &body);
        assert!(code == 200 && said.contains("make"), "{dialect:?}: {said}");
        let (path, body) = conversation(dialect, "Please build it", 1);
        let (code, said) = post(&model, path, &body);
        assert_eq!(code, 200, "{dialect:?}");
        assert!(said.contains("It is b") && said.contains("uilt."), "in pieces: {said}");
        assert_eq!(model.turns("build"), 1, "{dialect:?}: one turn with two questions");
        let exchanges = model.exchanges();
        let asked: Vec<&Ask> = exchanges.iter().filter_map(|e| e.ask.as_ref()).collect();
        assert_eq!(asked.iter().map(|ask| ask.step).collect::<Vec<_>>(), [0, 1], "{dialect:?}");
        assert_eq!(asked[0].prompt, "Please build it", "{dialect:?}");
        let secret = exchanges[0].headers.iter().any(|(name, _)| name == "authorization");
        assert!(!secret, "keys are not kept");
    }
}

#[test]
fn a_rule_that_is_spent_makes_way_for_the_next() {
    for dialect in DIALECTS {
        let script = Script::new()
            .rule(Rule::when("x").once().then(Reply::limited(1_900_000_000)))
            .rule(Rule::when("x").once().then(Reply::broken(503)))
            .rule(Rule::when("x").then(Reply::text("done")));
        let model = ModelServer::start(script).expect("a model");
        let (path, body) = conversation(dialect, "x", 0);
        let codes: Vec<u16> = (0..3).map(|_| post(&model, path, &body).0).collect();
        assert_eq!(codes, [429, 503, 200], "{dialect:?}");
        let outcomes: Vec<Outcome> = model.exchanges().iter().map(|e| e.outcome).collect();
        assert_eq!(outcomes, [Outcome::Rule(0), Outcome::Rule(1), Outcome::Rule(2)]);
    }
}

#[test]
fn a_whole_answer_is_given_to_those_who_do_not_want_a_stream() {
    for dialect in DIALECTS {
        let script = Script::new().rule(Rule::when("x").then(Reply::text("all at once")));
        let model = ModelServer::start(script).expect("a model");
        let (path, mut body) = conversation(dialect, "x", 0);
        body["stream"] = false.into();
        let path = path.replace(":streamGenerateContent", ":generateContent");
        let (code, said) = post(&model, &path, &body);
        assert!(code == 200 && said.contains("all at once"), "{dialect:?}: {said}");
    }
}

#[test]
fn what_nobody_foresaw_is_refused_and_on_record() {
    let model = ModelServer::start(Script::new()).expect("a model");
    let (path, body) = conversation(Dialect::Messages, "x", 0);
    assert_eq!(post(&model, path, &body).0, 400);
    assert_eq!(post(&model, "/v1/secrets", &json!({})).0, 404);
    assert_eq!(post(&model, "/v1/messages/count_tokens", &json!({})).0, 200);
    let outcomes: Vec<Outcome> = model.exchanges().iter().map(|e| e.outcome).collect();
    assert_eq!(outcomes, [Outcome::Silent, Outcome::Unknown, Outcome::Service]);
}

#[test]
fn acts_become_calls_of_the_tools_that_are_offered() {
    let schema = |required: &[&str], others: Value| {
        let mut properties = others;
        for name in required {
            properties[name] = json!({ "type": "string" });
        }
        json!({ "properties": properties, "required": required })
    };
    let todo = ("todo_write", schema(&["todos"], json!({})));
    let agents = [
        [
            ("bash", schema(&["command", "description"], json!({}))),
            ("write", schema(&["filePath", "content"], json!({}))),
            ("stafette_handoff", json!({})),
        ],
        [
            ("run_shell_command", schema(&["command"], json!({}))),
            ("write_file", schema(&["file_path", "content"], json!({}))),
            ("mcp__stafette__handoff", json!({})),
        ],
        [
            ("developer__shell", schema(&["command"], json!({}))),
            ("developer__write", schema(&["path", "content"], json!({}))),
            ("stafette__handoff", json!({})),
        ],
    ];
    let acts = [
        Reply::shell("true"),
        Reply::write("/a/b", "text"),
        Reply::mcp("stafette", "handoff", json!({ "to": "x" })),
    ];
    for dialect in [Dialect::Completions, Dialect::Generation] {
        for tools in &agents {
            for (act, (name, schema)) in acts.iter().zip(tools) {
                let script = Script::new().rule(Rule::when("x").then(act.clone()));
                let model = ModelServer::start(script).expect("a model");
                let (path, mut body) = conversation(dialect, "x", 0);
                let offered = [&todo]
                    .into_iter()
                    .chain(tools)
                    .map(|(name, schema)| json!({ "name": name, "parameters": schema }));
                body["tools"] = match dialect {
                    Dialect::Generation => {
                        json!([{ "functionDeclarations": offered.collect::<Vec<_>>() }])
                    }
                    _ => offered.map(|tool| json!({ "function": tool })).collect(),
                };
                let (code, said) = post(&model, path, &body);
                assert_eq!(code, 200, "{dialect:?}: {said}");
                assert!(said.contains(&format!("\"name\":\"{name}\"")), "{name}: {said}");
                for field in list(&schema["required"]).filter_map(Value::as_str) {
                    assert!(said.contains(field), "{name} needs {field}: {said}");
                }
            }
        }
    }
}

#[test]
fn a_request_without_tools_for_work_that_needs_them_is_not_a_turn() {
    let script = Script::new().rule(Rule::when("x").once().then(Reply::shell("true")));
    let model = ModelServer::start(script).expect("a model");
    let (path, mut body) = conversation(Dialect::Completions, "x", 0);
    body["tools"] = json!([]);
    assert_eq!(post(&model, path, &body).0, 200);
    assert_eq!(model.exchanges()[0].outcome, Outcome::Aside);
}

#[test]
fn a_title_is_not_a_turn() {
    let script = Script::new().rule(Rule::when("x").once().then(Reply::text("the work")));
    let model = ModelServer::start(script).expect("a model");
    let (path, mut body) = conversation(Dialect::Messages, "x", 0);
    body["tools"] = json!([]);
    assert_eq!(post(&model, path, &body).0, 200);
    assert_eq!((model.turns("x"), model.exchanges()[0].outcome), (0, Outcome::Aside));
}

#[test]
fn a_stalled_answer_begins_and_ends_with_its_server() {
    for dialect in DIALECTS {
        let script = Script::new().rule(Rule::when("x").then(Reply::stall()));
        let model = ModelServer::start(script).expect("a model");
        let (path, body) = conversation(dialect, "x", 0);
        std::thread::scope(|scope| {
            let (model_ref, body) = (&model, &body);
            let asking = scope.spawn(move || {
                let address = model_ref.address;
                let mut socket = TcpStream::connect(address).expect("a connection");
                let text = body.to_string();
                let length = text.len();
                write!(
                    socket,
                    "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{text}"
                )
                .expect("sent");
                let mut start = [0; 15];
                socket.read_exact(&mut start).expect("a beginning");
                start
            });
            assert!(model.wait(Duration::from_secs(60), |all| turns(all, "x") == 1));
            assert_eq!(&asking.join().expect("asked"), b"HTTP/1.1 200 OK");
        });
        drop(model);
    }
}

#[test]
fn a_conversation_in_circles_is_stopped() {
    let script = Script::new().rule(Rule::when("x").then(Reply::shell("true")));
    let model = ModelServer::start(script).expect("a model");
    let (path, body) = conversation(Dialect::Messages, "x", 1);
    let codes: Vec<u16> = (0..REQUESTS + 2).map(|_| post(&model, path, &body).0).collect();
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), REQUESTS - 1);
    let exchanges = model.exchanges();
    assert_eq!(exchanges.len(), REQUESTS);
    assert_eq!(exchanges.last().map(|last| last.outcome), Some(Outcome::Runaway));
}
