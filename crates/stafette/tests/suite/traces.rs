//! Traces that begin elsewhere: what a caller does, and what comes of it here, are one.

#[path = "traces/receiver.rs"]
mod receiver;

use serde_json::{Value, json};

use crate::web::Web;
use crate::world::World;
use receiver::Receiver;

/// What a caller does, in a trace of theirs.
const THEIRS: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "00f067aa0ba902b7";

/// An agent that does `script`, and where its trace goes.
fn workflow(script: &str, telemetry: &str) -> String {
    format!(
        "[workflow]\nname = \"one\"\nentry = \"a\"\n[agents.a]\nrunner = \"exec\"\nresult = \"exit\"\n\
         command = {}\n[telemetry]\n{telemetry}\n",
        json!(["sh", "-c", script])
    )
}

/// An agent that writes down where in a trace it is; nobody takes that trace.
fn noting() -> World {
    World::workflow(&workflow(
        "cat > /dev/null; echo \"$TRACEPARENT\" >> context; echo done",
        "otlp = \"http://127.0.0.1:9\"",
    ))
}

/// The traces that its agent has been in.
fn traces(world: &World) -> Vec<String> {
    let context = world.read("context");
    context.lines().map(|line| line.split('-').nth(1).expect("a trace").to_owned()).collect()
}

#[test]
fn s2_10_a_run_that_is_asked_for_by_http_lies_in_the_callers_trace() {
    let world = noting();
    let web = Web::up(&world);
    let theirs = format!("traceparent: {THEIRS}");
    let mut runs = Vec::new();
    let mut begin = |headers: &[&str], body: Value| {
        let bearer = web.bearer();
        let headers = [headers, &[&bearer]].concat();
        let begun = web.plain("POST /v1/runs", &headers, &body.to_string()).ok();
        runs.push(begun["run"].as_str().expect("a run").replace('-', ""));
        let settled = web.get("/v1/runs/latest/settled?within=60").ok();
        assert_eq!(settled["status"], "succeeded", "{settled}");
        begun
    };
    begin(&[&theirs], json!({ "request": "one" }));
    // What cannot be understood is as if it were not there.
    begin(&["traceparent: 00-xyz-1-01"], json!({ "request": "two" }));
    begin(&[&theirs, &theirs], json!({ "request": "three" }));
    let first = begin(&[&theirs, "idempotency-key: k"], json!({ "request": "four" }));
    let other = format!("traceparent: {}", THEIRS.replace("00f0", "11f0"));
    let again = begin(&[&other, "idempotency-key: k"], json!({ "request": "four" }));
    assert_eq!((&again["run"], &again["repeated"]), (&first["run"], &json!(true)));
    assert_eq!(traces(&world), [TRACE, &runs[1], &runs[2], TRACE]);
}

#[test]
fn s2_10_a_run_that_is_asked_for_by_command_lies_in_the_callers_trace() {
    let world = noting();
    world.run_with(&["run", "one"], b"", &[("TRACEPARENT", THEIRS)]).ok();
    let view = world.run_with(&["run", "two", "--json"], b"", &[("TRACEPARENT", "nonsense")]);
    let own = view.ok().json()["run"].as_str().expect("a run").replace('-', "");
    assert_eq!(traces(&world), [TRACE, &own]);
}

#[test]
fn s2_10_a_receiver_is_reached_by_grpc_and_tls_when_this_system_trusts_it() {
    let world = World::new();
    let receiver = Receiver::start(&world);
    let telemetry = format!(
        "otlp = \"https://localhost:{}\"\nprotocol = \"grpc\"\nheaders = {{ x-key = \"TRACE_KEY\" }}",
        receiver.port()
    );
    let waits = "cat > /dev/null; while [ ! -e go ]; do sleep 0.05; done";
    world.write("stafette.toml", &workflow(waits, &telemetry));
    world.run(&["trust", "--yes"]).ok();
    let trusted = world.project().join("ca.pem").display().to_string();
    let env = [
        ("SSL_CERT_FILE", trusted.as_str()),
        ("TRACE_KEY", "secret"),
        // What the receiver is tried with is in the log.
        ("STAFETTE_DEBUG", "1"),
    ];

    // Nobody is trusted at first: what cannot be sent is kept.
    let web = Web::up_with(&world, &env[1..]);
    let theirs = format!("traceparent: {THEIRS}");
    let headers = [theirs.as_str(), &web.bearer()];
    web.plain("POST /v1/runs", &headers, &json!({ "request": "x" }).to_string()).ok();
    let phase = std::fs::read_to_string(
        crate::world::repository().join("fixtures/wire/phase-request-write.json"),
    );
    let refused = web.plain("POST /v1/handoffs?run=latest", &headers, &phase.expect("a document"));
    assert_eq!((refused.status, refused.code().as_str()), (409, "refused"), "{refused:?}");
    world.write("go", "");
    assert_eq!(web.get("/v1/runs/latest/settled?within=60").ok()["status"], "succeeded");
    drop(web);
    world.run_with(&["up"], b"", &env).ok();

    let spans = receiver.hear(4, &world);
    assert!(spans.iter().all(|span| span["trace"] == TRACE && span["key"] == "secret"));
    let named =
        |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let whole = named("run one")[0];
    assert_eq!((&whole["parent"], &whole["links"]), (&json!(SPAN), &json!([])));
    assert_eq!(whole["attributes"]["stafette.run.status"], "succeeded");
    let handoffs = named("handoff");
    let of = |id: &str| handoffs.iter().find(|span| span["attributes"]["stafette.handoff"] == id);
    let (first, refused) = (of("h1").expect("h1"), of("h2").expect("h2"));
    assert_eq!((&first["parent"], &first["links"]), (&whole["id"], &json!([])));
    assert_eq!(refused["links"], json!([[TRACE, SPAN]]), "whoever gave it");
    assert!(refused["error"].as_str().is_some_and(|why| !why.is_empty()), "{refused}");
    let turn = named("invoke_agent a")[0];
    assert_eq!(turn["parent"], first["id"]);
}
