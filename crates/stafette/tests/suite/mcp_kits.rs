//! The inspector of the Model Context Protocol, and its conformance package.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::mcp::{Clients, OUTSIDE, Server, said};
use crate::world::{Said, program};

/// The inspector without its page, by each transport.
fn inspect(server: &Server, arguments: &[&str]) -> [Said; 2] {
    let clients = Clients::get();
    let script = clients.package(".bin/mcp-inspector");
    [0, 1].map(|transport| {
        let mut command = clients.node(&server.world, &script);
        said(command.arg("--cli").args(target(server, transport)).args(arguments)).ok()
    })
}

/// Where the server is: a command, or an address and what to show there.
fn target(server: &Server, transport: usize) -> Vec<String> {
    match transport {
        0 => vec![program().to_owned(), "mcp".to_owned()],
        _ => {
            let bearer = format!("Authorization: {}", server.bearer);
            vec![server.url.clone(), "--header".to_owned(), bearer]
        }
    }
}

/// Calls a tool with the inspector, by one transport, and returns what came back.
fn call(server: &Server, transport: usize, name: &str, arguments: &[String]) -> Value {
    let mut words = vec!["--method", "tools/call", "--tool-name", name];
    for argument in arguments {
        words.extend(["--tool-arg", argument]);
    }
    let clients = Clients::get();
    let mut command = clients.node(&server.world, &clients.package(".bin/mcp-inspector"));
    let said = said(command.arg("--cli").args(target(server, transport)).args(words)).ok();
    let result: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(result["isError"], false, "{name}: {result}");
    result["structuredContent"].clone()
}

#[test]
fn b_11_the_inspector_finds_nothing_to_complain_about_in_the_schemas() {
    let server = Server::new(OUTSIDE);
    for said in inspect(&server, &["--method", "tools/list", "--strict"]) {
        let listed: Value = serde_json::from_str(&said.out).expect("JSON");
        assert_eq!(listed["tools"].as_array().map(Vec::len), Some(18));
        assert_eq!(said.err.trim(), "", "it warns of what is less portable");
    }
    for said in inspect(&server, &["--method", "prompts/list"]) {
        let listed: Value = serde_json::from_str(&said.out).expect("JSON");
        assert_eq!(listed["prompts"][1]["name"], "reviewer");
    }
    let schema = ["--method", "resources/read", "--uri", "stafette://schemas/workflow"];
    for said in inspect(&server, &schema) {
        assert!(said.out.contains("urn:stafette:schema:workflow"), "{said:?}");
    }
}

#[test]
fn b_11_the_inspector_drives_a_handoff() {
    let server = Server::new(OUTSIDE);
    for transport in [0, 1] {
        let call = |name, arguments: &[String]| call(&server, transport, name, arguments);
        let began = call("start_run", &["request=Add a login".to_owned()]);
        let run = format!("run={}", began["run"].as_str().expect("a run"));
        for (agent, last) in [("builder", false), ("reviewer", true)] {
            let wait = [run.clone(), format!("agent={agent}"), "within_seconds=120".to_owned()];
            let offered = call("wait", &wait)["offered"][0].clone();
            let handoff = format!("handoff={}", offered["handoff"].as_str().expect("a handoff"));
            let turn = call("accept", &[run.clone(), handoff]);
            let mine = [run.clone(), format!("turn={}", turn["turn"].as_str().expect("a turn"))];
            if !last {
                let files = "outputs={\"files\": [\"login.rs\"]}".to_owned();
                let words = ["to=reviewer".to_owned(), "summary=Built".to_owned(), files];
                call("handoff", &[&mine[..], &words[..]].concat());
            }
            call("complete", &[&mine[..], &["summary=Done".to_owned()]].concat());
        }
        let status = call("status", &[run]);
        assert_eq!(status["runs"][0]["status"], "succeeded", "{status}");
    }
}

/// The scenarios that a server which is about something can pass.
const OURS: [&str; 15] = [
    "caching",
    "completion-complete",
    "dns-rebinding-protection",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "ping",
    "prompts-list",
    "resources-list",
    "sep-2164-resource-not-found",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-sse-polling",
    "server-stateless",
    "tools-list",
];

/// The scenarios that want a tool of the reference server too, but take the answer that there is
/// none for what they look for: they prove nothing.
const VACUOUS: [&str; 3] = [
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
    "input-required-result-validate-input",
];

/// The scenarios that are about something else, by what they want of a server.
const NOT_OURS: [(&str, &[&str]); 8] = [
    // Tools of the reference server, by name.
    (
        "no tool",
        &[
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
            "input-required-result-basic-elicitation",
            "input-required-result-basic-list-roots",
            "input-required-result-basic-sampling",
            "input-required-result-capability-check",
            "input-required-result-multiple-input-requests",
            "input-required-result-request-state",
            "input-required-result-result-type",
            "tools-call-audio",
            "tools-call-elicitation",
            "tools-call-embedded-resource",
            "tools-call-error",
            "tools-call-image",
            "tools-call-mixed-content",
            "tools-call-sampling",
            "tools-call-simple-text",
            "tools-call-with-progress",
        ],
    ),
    (
        "no role",
        &[
            "input-required-result-non-tool-request",
            "prompts-get-embedded-resource",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-with-image",
        ],
    ),
    (
        "nothing at test://",
        &["resources-read-binary", "resources-read-text", "resources-templates-read"],
    ),
    ("json_schema_2020_12_tool", &["json-schema-2020-12"]),
    ("x-mcp-header", &["http-custom-header-server-validation"]),
    // Tools of the reference server that answer with a question of their own.
    (
        "InputRequiredResult",
        &["input-required-result-multi-round", "input-required-result-tampered-state"],
    ),
    // Capabilities that are not announced: nothing here is logged to clients, or subscribed to.
    ("logging/setLevel", &["logging-set-level", "tools-call-with-logging"]),
    ("resources/subscribe", &["resources-subscribe", "resources-unsubscribe"]),
];

/// What a check wants that only the reference server has.
const FIXTURES: [&str; 3] =
    ["test_missing_capability", "test_streaming_elicitation", "test_logging_tool"];

fn why_not(scenario: &str) -> Option<&'static str> {
    let fits = |row: &&(&str, &[&str])| row.1.contains(&scenario);
    NOT_OURS.iter().find(fits).map(|(why, _)| *why)
}

/// Runs every scenario that the package has for a revision, and holds what came of each against
/// the lists above.
fn conforms(package: &str, revision: &str) -> BTreeSet<String> {
    let server = Server::new(OUTSIDE);
    let clients = Clients::get();
    let folder = server.world.home().join("conformance");
    let script = clients.package(package).join("dist/index.js");
    let mut command = clients.node(&server.world, &script);
    // It has no way to show a token, so it comes by the socket.
    let url = server.relay();
    command.args(["server", "--suite", "all", "--spec-version", revision, "--url", &url]);
    // It ends with 1 when anything fails, and some of it must.
    let said = said(command.arg("-o").arg(&folder));
    let results = results(&folder);
    let summary: BTreeSet<&str> = said
        .out
        .lines()
        .skip_while(|line| !line.contains("SUMMARY"))
        .filter_map(|line| line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ ")))
        .filter_map(|line| line.split(':').next())
        .collect();
    let seen: BTreeSet<&str> = results.keys().map(String::as_str).collect();
    assert_eq!(seen, summary, "what is looked at is what was run: {said:?}");
    for (scenario, checks) in &results {
        let status = |word: &str| checks.iter().filter(|check| check["status"] == word).count();
        let failed = checks.iter().filter(|check| check["status"] == "FAILURE");
        let messages = failed.map(|check| check["errorMessage"].as_str().unwrap_or_default());
        match why_not(scenario) {
            Some(why) => {
                assert_ne!(status("FAILURE"), 0, "{scenario} is ours after all");
                for message in messages {
                    assert!(
                        message.contains(why),
                        "{scenario} fails for another reason: {message}"
                    );
                }
            }
            None => {
                let known = OURS.iter().chain(&VACUOUS).any(|known| known == scenario);
                assert!(known, "{scenario} is new: whose is it?");
                assert_ne!(status("SUCCESS"), 0, "{scenario} looks at nothing");
                for message in messages {
                    let fixture = FIXTURES.iter().any(|tool| message.contains(tool));
                    assert!(fixture, "{scenario}: {message}");
                }
            }
        }
    }
    results.into_keys().collect()
}

/// What became of each check, by scenario.
fn results(folder: &Path) -> BTreeMap<String, Vec<Value>> {
    let mut results = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("results") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        // server-SCENARIO-2026-11-15T13-21-37-875Z
        let name = name.strip_prefix("server-").expect("a scenario");
        let time = "-2026-11-15T13-21-37-875Z".len();
        let checks = fs::read_to_string(path.join("checks.json")).expect("checks");
        let checks: Value = serde_json::from_str(&checks).expect("JSON");
        assert_ne!(checks, json!([]), "{name}");
        let checks = checks.as_array().expect("a list").clone();
        results.insert(name[..name.len() - time].to_owned(), checks);
    }
    results
}

#[test]
fn b_11_the_conformance_package_finds_no_fault_in_the_session_era() {
    let released = conforms("@modelcontextprotocol/conformance", "2025-11-25");
    let next = conforms("conformance-next", "2025-11-25");
    assert!(released.is_subset(&next), "{released:?} {next:?}");
}

#[test]
fn b_11_the_conformance_package_finds_no_fault_in_the_stateless_era() {
    let next = conforms("conformance-next", "2026-07-28");
    assert!(next.contains("server-stateless"), "{next:?}");
}
