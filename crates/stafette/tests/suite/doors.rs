//! Taking part by HTTP: people with a browser, programs with a token, agents that nobody starts.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::web::{CLOSE, Web, frame, switched};
use crate::world::{World, repository};

pub(crate) const TEAM: &str = r#"
[workflow]
name = "team"
entry = "planner"
[agents.planner]
runner = "external"
[agents.builder]
runner = "external"
[[routes]]
from = "planner"
to = "builder"
[limits]
cooldown = 0
"#;

fn wire(name: &str) -> Value {
    let path = repository().join("fixtures/wire").join(name);
    let text = std::fs::read_to_string(path).expect("a document");
    serde_json::from_str(&text).expect("JSON")
}

/// The contract's request, between these two.
pub(crate) fn request(from: &str, to: &str) -> Value {
    let mut document = wire("handoff-request.json");
    document["sourceAgent"] = from.into();
    document["handoffTo"] = to.into();
    document["sourceContext"]["documentType"] = Value::Null;
    document["sourceContext"].as_object_mut().expect("an object").remove("documentType");
    document
}

/// Waits for an agent's turn and takes it; where it is, and its key.
fn turn_of(web: &Web<'_>, agent: &str) -> (String, String) {
    let offered = web.get(&format!("/v1/turns?agent={agent}&within=60")).ok();
    let key = offered[0]["key"].as_str().unwrap_or_else(|| panic!("{offered}")).to_owned();
    let parts: Vec<&str> = key.split('/').collect();
    let place = format!("/v1/runs/{}/handoffs/{}", parts[0], parts[1]);
    let order = web.post(&format!("{place}/accept"), &json!({ "by": agent })).ok();
    assert_eq!(order["key"], key);
    (place, key)
}

#[test]
fn b_11_agents_take_part_by_http_alone_in_the_words_of_the_contract() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    let start = json!({ "request": "Write the brief" });
    let begin = |key: &str, body: &Value| {
        let headers = [web.bearer(), format!("Idempotency-Key: {key}")];
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        web.plain("POST /v1/runs", &headers, &body.to_string())
    };
    let run = begin("one", &start).ok()["run"].clone();
    let again = begin("one", &start).ok();
    assert_eq!((&again["run"], &again["repeated"]), (&run, &json!(true)));
    let other = begin("one", &json!({ "request": "Write another one" }));
    assert_eq!((other.status, other.code().as_str()), (422, "key_reused"));
    assert_eq!(web.get("/v1/runs").ok().as_array().map(Vec::len), Some(1));

    let (place, key) = turn_of(&web, "planner");
    let taken = web.post(&format!("{place}/accept"), &json!({ "by": "somebody else" }));
    assert_eq!((taken.status, taken.code().as_str()), (409, "taken"));
    let refused = web.post("/v1/handoffs", &request("planner", "nobody"));
    assert_eq!((refused.status, refused.code().as_str()), (409, "refused"));
    let answer = &refused.json()["answer"];
    assert_eq!(answer["traceId"], request("a", "b")["traceId"], "in the words it came in");
    assert_eq!(answer["status"], "failed");
    assert!(answer["failureReason"].as_str().is_some_and(|why| why.contains("nobody")));
    let proposed = web.post("/v1/handoffs", &request("planner", "builder")).ok();
    assert_eq!((&proposed["dialect"], &proposed["turn"]), (&json!("contract"), &json!(key)));
    web.post(&format!("{place}/report"), &json!({ "turn": key, "note": "nearly" })).ok();
    let ended = web.post(&format!("{place}/complete"), &json!({ "turn": key })).ok();
    assert_eq!(ended["admitted"], json!(["h3"]), "{ended}");
    let again = web.post(&format!("{place}/complete"), &json!({ "turn": key })).ok();
    assert_eq!(again, ended, "the same again hears the same");
    let other = json!({ "turn": key, "summary": "otherwise" });
    let late = web.post(&format!("{place}/complete"), &other);
    assert_eq!((late.status, late.code().as_str()), (409, "late"));
    assert!(late.json()["title"].as_str().is_some_and(|it| it.contains("handed over to builder")));

    let nothing_yet = web.get("/v1/runs/latest/handoffs/h3/answer?within=0").ok();
    assert_eq!(nothing_yet["answered"], false);
    let (place, key) = turn_of(&web, "builder");
    let mut response = wire("handoff-response-resolved.json");
    response["respondingAgent"] = "planner".into();
    let body = json!({ "turn": "1.1", "document": response });
    let refused = web.post(&format!("{place}/complete"), &body);
    assert_eq!((refused.status, refused.code().as_str()), (422, "mistaken"));
    let why = "/respondingAgent: it is `planner`, and the handoff went to `builder`";
    assert!(refused.json()["title"].as_str().is_some_and(|it| it.contains(why)), "{refused:?}");
    response["respondingAgent"] = "builder".into();
    let body = json!({ "turn": "1.1", "document": response });
    web.post(&format!("{place}/complete"), &body).ok();
    let answered = web.get("/v1/runs/latest/handoffs/h3/answer?within=60").ok();
    assert_eq!((&answered["answered"], &answered["dialect"]), (&json!(true), &json!("contract")));
    assert_eq!(answered["document"]["status"], "resolved", "{answered}");
    let nonsense = web.post(&format!("{place}/reject"), &json!({ "turn": "x", "why": "no" }));
    assert_eq!((nonsense.status, nonsense.code().as_str()), (422, "not_a_turn"), "{key}");

    // The planner waited for that, and goes on with it.
    let (place, key) = turn_of(&web, "planner");
    web.post(&format!("{place}/complete"), &json!({ "turn": key, "summary": "done" })).ok();
    let settled = web.get("/v1/runs/latest/settled?within=60").ok();
    assert_eq!(settled["status"], "succeeded", "{settled}");
}

#[test]
fn s5_06_a_turn_is_accepted_before_anything_is_done_in_it() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    web.post("/v1/runs", &json!({ "request": "Write the brief" })).ok();
    let offered = web.get("/v1/turns?agent=planner&within=60").ok();
    let key = offered[0]["key"].as_str().expect("a key").to_owned();
    let place = "/v1/runs/latest/handoffs/h1";
    for refused in [
        web.post("/v1/handoffs", &request("planner", "builder")),
        web.post(&format!("{place}/report"), &json!({ "turn": key })),
        web.post(&format!("{place}/complete"), &json!({ "turn": key })),
    ] {
        assert_eq!((refused.status, refused.code().as_str()), (409, "not_taken"), "{refused:?}");
        assert!(refused.json()["fix"].as_str().is_some_and(|fix| fix.contains("accept")));
    }
    let order = web.post(&format!("{place}/accept"), &json!({ "by": "planner" })).ok();
    assert!(order["trace_id"].as_str().is_some_and(|id| id.len() == 36), "{order}");
    web.post(&format!("{place}/complete"), &json!({ "turn": key, "outcome": "resolved" })).ok();
}

#[test]
fn s5_06_what_an_agent_says_has_one_name_at_every_door() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    web.post("/v1/runs", &json!({ "request": "Write the brief" })).ok();
    let (place, key) = turn_of(&web, "planner");
    let asks = json!({ "to": "human", "question": "Which one?", "options": ["a", "b"] });
    let body = json!({ "turn": key, "summary": "so far", "handoffs": [asks] });
    web.post(&format!("{place}/complete"), &body).ok();
    let inbox = web.get("/v1/inbox").ok();
    let question = &inbox[0]["handoff"]["offer"]["question"];
    assert_eq!(
        (&question["details"], &question["options"][1]),
        (&"Which one?".into(), &"b".into())
    );
    world.run(&["answer", "2", "a"]).ok();
    let (place, key) = turn_of(&web, "planner");
    let body = json!({ "turn": key, "status": "partial", "summary": "as far as it goes" });
    web.post(&format!("{place}/complete"), &body).ok();
    let ended = web.get("/v1/runs/latest/handoffs/h1").ok();
    assert_eq!(ended["state"], "partial", "{ended}");
}

#[test]
fn b_19_a_turn_ends_only_with_what_says_something() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    web.post("/v1/runs", &json!({ "request": "Write the brief" })).ok();
    let (place, key) = turn_of(&web, "planner");
    let ends = |body: &Value| {
        let mut body = body.clone();
        body["turn"] = key.clone().into();
        web.post(&format!("{place}/complete"), &body)
    };
    for (silent, why) in [
        (json!({}), "it says nothing"),
        (json!({ "summary": " ", "failure": "", "outputs": {} }), "it says nothing"),
        (json!({ "handoffs": [{ "to": "human" }] }), "a person is asked nothing"),
        (json!({ "handoffs": [{ "to": "human", "wait": true, "summary": " " }] }), "asked nothing"),
        (json!({ "handoffs": [{ "to": "orchestrator" }] }), "the orchestrator is told nothing"),
        (
            json!({ "handoffs": [{ "to": "human", "wait": false, "summary": "Which?" }] }),
            "nobody would see the question",
        ),
    ] {
        let refused = ends(&silent);
        assert_eq!((refused.status, refused.code().as_str()), (422, "mistaken"), "{silent}");
        let problem = refused.json();
        assert!(problem["title"].as_str().is_some_and(|it| it.contains(why)), "{problem}");
        assert!(problem["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{problem}");
    }
    // The turn is still open. A person who is asked is in the inbox, and the planner goes on.
    ends(&json!({ "handoffs": [{ "to": "human", "summary": "Which one?" }] })).ok();
    let inbox = web.get("/v1/inbox").ok();
    assert!(inbox.to_string().contains("Which one?"), "{inbox}");
    let settled = web.get("/v1/runs/latest/settled?within=0").ok();
    assert_eq!(settled["status"], "waiting", "{settled}");
}

#[test]
fn b_01_what_is_too_large_is_refused_at_every_way_to_begin_a_run() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    for bytes in [1_100_000, 1_900_000] {
        let large = "x".repeat(bytes);
        for begun in
            [json!({ "request": large }), json!({ "request": "go", "inputs": { "text": large } })]
        {
            let refused = web.post("/v1/runs", &begun);
            assert_eq!((refused.status, refused.code().as_str()), (413, "too_large"));
            let problem = refused.json();
            let said = problem["title"].as_str().expect("a title");
            assert!(said.contains("1048576") && said.contains(&bytes.to_string()[..3]), "{said}");
            assert!(problem["fix"].as_str().is_some_and(|fix| fix.contains("files")), "{problem}");
        }
    }
    let refused = web.post("/v1/runs", &json!({ "request": "x".repeat(2_200_000) }));
    assert_eq!((refused.status, refused.code().as_str()), (413, "too_large"));
    assert!(
        refused.json()["detail"].as_str().is_some_and(|it| it.contains("22000")),
        "{refused:?}"
    );
    assert_eq!(web.get("/v1/runs").ok().as_array().map(Vec::len), Some(0));
}

#[test]
fn b_11_messages_and_phases_are_recognised_by_their_shape() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    web.post("/v1/runs", &json!({ "request": "Sign-in" })).ok();
    let (place, key) = turn_of(&web, "planner");
    let proposed = web.post("/v1/runs/latest/handoffs", &wire("message-task-handoff.json")).ok();
    assert_eq!(proposed["dialect"], "message");
    web.post(&format!("{place}/complete"), &json!({ "turn": key })).ok();
    let (place, key) = turn_of(&web, "builder");
    let summary = json!({ "turn": key, "summary": "built" });
    let phase = wire("phase-request-write.json");
    let which = web.post("/v1/handoffs", &phase);
    assert_eq!((which.status, which.code().as_str()), (422, "which_run"));
    let nobody = web.post("/v1/handoffs?run=latest", &phase);
    assert_eq!((nobody.status, nobody.code().as_str()), (409, "refused"), "{nobody:?}");
    assert_eq!(nobody.json()["answer"]["phase"], "write", "in the words of phases");
    web.post(&format!("{place}/complete"), &summary).ok();
    let answer = web.get("/v1/runs/latest/handoffs/h2/answer?within=60").ok();
    assert_eq!(answer["dialect"], "message");
    let message = &answer["document"];
    assert_eq!((&message["from"], &message["to"]), (&json!("builder"), &json!("planner")));
    assert_eq!(message["type"], "completion", "{answer}");
    for nonsense in [json!({}), json!({ "task_id": 1, "phase": "write" })] {
        let refused = web.post("/v1/handoffs", &nonsense);
        assert_eq!((refused.status, refused.code().as_str()), (422, "not_a_document"));
    }
}

#[test]
fn a_launch_link_lets_the_browser_in_once() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    let link = world.run(&["open", "--print"]).ok().out;
    let (door, key) = link.trim().split_once("/#key=").expect("a key that stays in the browser");
    assert_eq!(door, format!("http://127.0.0.1:{}", web.port));
    let key = json!({ "key": key }).to_string();
    let entered = web.plain("POST /v1/session", &[], &key);
    assert_eq!((entered.status, entered.header("set-cookie")), (200, None), "{entered:?}");
    let again = web.plain("POST /v1/session", &[], &key);
    assert_eq!((again.status, again.code().as_str()), (403, "launch_key"));
    let session = entered.json()["session"].as_str().expect("a session").to_owned();
    let page = format!("Authorization: Bearer {session}");
    web.plain("GET /v1/runs", &[&page, "Sec-Fetch-Site: same-origin"], "").ok();
    let cookie = format!("Cookie: stafette-{}={session}", web.port);
    assert_eq!(web.plain("GET /v1/runs", &[&cookie], "").status, 401);
    let start = json!({ "request": "x" }).to_string();
    web.plain("POST /v1/runs", &[&page], &start).ok();
}

#[test]
fn tokens_are_made_listed_and_taken_back() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    let made = world.run(&["token", "create", "ci", "--scope", "observe", "--expires", "30d"]);
    let bearer = format!("Authorization: Bearer {}", made.ok().out.trim());
    web.plain("GET /v1/runs", &[&bearer], "").ok();
    let start = json!({ "request": "x" }).to_string();
    let refused = web.plain("POST /v1/runs", &[&bearer], &start);
    assert_eq!((refused.status, refused.code().as_str()), (403, "scope"));
    let listed = world.run(&["token", "list", "--json"]).ok().json();
    assert_eq!((&listed[1]["name"], &listed[1]["scope"]), (&json!("ci"), &json!("observe")));
    assert!(
        !world.kept("tokens.json").contains(bearer.trim_start_matches("Authorization: Bearer "))
    );
    assert_eq!(world.run(&["token", "create", "ci", "--scope", "act"]).code, 1);
    world.run(&["token", "revoke", "ci"]).ok();
    let gone = web.plain("GET /v1/runs", &[&bearer], "");
    assert_eq!((gone.status, gone.code().as_str()), (401, "bad_token"));
}

#[test]
fn beyond_this_machine_it_takes_tls_and_a_token() {
    let world = World::workflow(TEAM);
    let up = |more: &[&str]| {
        let said =
            world.run(&[&["up", "--foreground", "--listen", "0.0.0.0:0", "--json"], more].concat());
        assert_eq!(said.code, 2, "{said:?}");
        said.json()["error"].clone()
    };
    let plain = up(&[]);
    assert!(plain["why"].as_str().is_some_and(|why| why.contains("TLS")), "{plain}");
    let fixture = |name: &str| repository().join("fixtures/tls").join(name).display().to_string();
    let (cert, key) = (fixture("cert.pem"), fixture("key.pem"));
    let tls = ["--tls-cert", &cert, "--tls-key", &key];
    let open = up(&tls);
    assert!(open["why"].as_str().is_some_and(|why| why.contains("token")), "{open}");
    let half = up(&tls[..2]);
    assert!(half["fix"].as_str().is_some_and(|fix| fix.contains("--tls-key")), "{half}");
}

#[test]
fn events_go_on_where_a_reader_stopped() {
    let world = World::example("refusals/unknown");
    let web = Web::up(&world);
    web.post("/v1/runs", &json!({ "request": "x" })).ok();
    web.get("/v1/runs/latest/settled").ok();
    let all: Vec<Value> = world.run(&["log", "--json"]).ok().lines();
    let last = all.last().expect("an event")["position"].as_u64().expect("a position");

    // Server-sent events: what was missed since the last one that was heard, and nothing else.
    let headers = [web.bearer(), "Accept: text/event-stream".into(), "Last-Event-ID: 2".into()];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let stream = web.send("GET /v1/events", &headers, "");
    let mut ids = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.expect("a line in time");
        if let Some(id) = line.strip_prefix("id: ") {
            ids.push(id.parse::<u64>().expect("a number"));
        }
        if ids.last() == Some(&last) {
            break;
        }
    }
    assert_eq!(ids, (3..=last).collect::<Vec<_>>());

    // A WebSocket of one run tells the same and ends with the run.
    let upgrade = [
        web.bearer(),
        "Connection: Upgrade".into(),
        "Upgrade: websocket".into(),
        "Sec-WebSocket-Version: 13".into(),
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==".into(),
    ];
    let upgrade: Vec<&str> = upgrade.iter().map(String::as_str).collect();
    let stream = web.send("GET /v1/runs/latest/events/live?after=1", &upgrade, "");
    assert_eq!(texts(BufReader::new(stream)), all[1..]);
    let bare = web.get("/v1/events/live");
    assert_eq!((bare.status, bare.code().as_str()), (426, "not_a_websocket"));
}

#[test]
fn b_12_a_run_is_shown_after_any_event_and_each_event_says_what_it_changed() {
    let world = World::example("refusals/limit");
    let web = Web::up(&world);
    web.post("/v1/runs", &json!({ "request": "x" })).ok();
    web.get("/v1/runs/latest/settled").ok();
    // What stands between the lines is how long each piece of the answer is.
    let lines = web.get("/v1/runs/latest/events?state=true").body;
    let lines = lines.lines().filter(|line| line.starts_with('{'));
    let events: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut known = json!({});
    for event in &events {
        merge(&mut known, &event["changed"]);
        let shown = web.get(&format!("/v1/runs/latest?at={}", event["seq"])).ok();
        assert_eq!(known, shown, "after {}", event["event"]);
    }
    assert_eq!(web.get("/v1/runs/latest?state=true").ok(), known);
    assert_eq!(known["status"], "succeeded");
    // Without being asked, nobody is told more than before.
    assert_eq!(web.get("/v1/runs/latest").ok()["handoffs"], Value::Null);
    let plain = web.get("/v1/runs/latest/events").body;
    assert!(!plain.contains("\"changed\""), "{plain}");
    for (wrong, code) in
        [("0", "no_event"), (&*(events.len() + 1).to_string(), "no_event"), ("x", "bad_query")]
    {
        let answer = web.get(&format!("/v1/runs/latest?at={wrong}"));
        assert_eq!(answer.code(), code, "{wrong}");
        let last = format!("numbered from 1 to {}", events.len());
        assert!(code != "no_event" || answer.body.contains(&last), "{}", answer.body);
    }
}

/// Takes over the fields that changed; those that are null go.
fn merge(known: &mut Value, changed: &Value) {
    for (name, value) in changed.as_object().expect("fields") {
        let fields = known.as_object_mut().expect("fields");
        match name.as_str() {
            _ if value.is_null() => drop(fields.remove(name)),
            "handoffs" | "changes" => {
                let all = fields.entry(name.clone()).or_insert_with(|| json!({}));
                for (id, changed) in value.as_object().expect("by id") {
                    let all = all.as_object_mut().expect("by id");
                    merge(all.entry(id.clone()).or_insert_with(|| json!({})), changed);
                }
            }
            _ => drop(fields.insert(name.clone(), value.clone())),
        }
    }
}

/// The JSON messages of a WebSocket, until it closes.
fn texts(mut stream: impl BufRead) -> Vec<Value> {
    switched(&mut stream);
    let frames = std::iter::repeat_with(|| frame(&mut stream));
    let texts = frames.take_while(|(kind, _)| *kind != CLOSE).filter(|(kind, _)| *kind == 1);
    texts.map(|(_, body)| serde_json::from_slice(&body).expect("JSON")).collect()
}

#[test]
fn whatever_is_wrong_is_a_problem_with_a_code() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    let bearer = web.bearer();
    for (first, body, status, code) in [
        ("GET /nowhere", "", 404, "not_found"),
        ("DELETE /v1/runs", "", 405, "method"),
        ("POST /v1/runs", "{", 400, "bad_json"),
        ("POST /v1/runs", "{}", 422, "empty_request"),
        ("POST /v1/runs", r#"["x"]"#, 422, "bad_body"),
        ("POST /v1/handoffs", "[]", 422, "bad_body"),
        ("POST /v1/runs", r#"{"request":" "}"#, 422, "empty_request"),
        ("GET /v1/runs?limit=many", "", 422, "bad_query"),
        ("GET /v1/runs/latest", "", 404, "no_run"),
        ("GET /v1/runs/zzzz/handoffs/7", "", 404, "no_run"),
        ("GET /v1/schemas/none", "", 404, "no_schema"),
        ("POST /v1/emit", r#"{"token":"x","type":"READY"}"#, 403, "not_yours"),
    ] {
        let answer = web.plain(first, &[&bearer], body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{first} {body}");
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("urn:stafette:problem:{code}"));
        assert!(problem["title"].is_string());
    }
    assert_eq!(web.plain("GET /healthz", &[], "").ok(), json!({ "status": "ok" }));
    assert_eq!(web.plain("GET /readyz", &[], "").ok()["status"], "ok");
    assert_eq!(web.get("/v1/workflow").ok()["workflow"]["name"], "team");
    assert!(web.get("/v1/schemas").ok().as_array().is_some_and(|all| all.len() > 5));
    assert_eq!(web.get("/openapi.json").ok()["openapi"], "3.1.0");
    let fix = web.get("/v1/nothing").json()["fix"].as_str().map(str::to_owned);
    assert_eq!(fix.as_deref(), Some("compare the address with /openapi.json"));
}

#[test]
fn runs_are_listed_page_by_page() {
    let world = World::workflow(TEAM);
    let web = Web::up(&world);
    for request in ["one", "two", "three"] {
        web.post("/v1/runs", &json!({ "request": request })).ok();
    }
    let mut next = Some("/v1/runs?limit=2".to_owned());
    let mut seen = Vec::new();
    while let Some(path) = next.take() {
        let answer = web.get(&path);
        let page = answer.ok();
        seen.extend(page.as_array().expect("a list").iter().map(|run| run["request"].clone()));
        let link = answer.header("link").and_then(|link| link.strip_suffix(">; rel=\"next\""));
        next = link.map(|link| link.trim_start_matches('<').to_owned());
    }
    assert_eq!(seen, ["three", "two", "one"]);
}
