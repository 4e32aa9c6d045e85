//! Schemas and documents.

use std::fs;

use serde_json::Value;

use crate::world::{World, repository};

#[test]
fn s2_01_every_schema_is_published_by_name() {
    let world = World::new();
    let names = world.run(&["schema", "--list"]).ok().out;
    let expected = [
        "handoff-request",
        "handoff-response",
        "handoff-decision",
        "phase-request",
        "phase-response",
        "context",
        "message",
        "state",
        "workflow",
    ];
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
    for name in expected {
        let text = world.run(&["schema", name]).ok().out;
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        assert!(schema["$schema"].as_str().expect("a dialect").contains("2020-12"), "{name}");
    }
    assert_eq!(world.run(&["schema", "nonsense"]).code, 2);
}

#[test]
fn s2_01_every_golden_document_is_valid_and_every_broken_one_says_where() {
    let world = World::new();
    let folder = repository().join("fixtures/wire");
    let files = |folder: &std::path::Path| -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path());
        entries.filter(|path| path.extension().is_some_and(|e| e == "json")).collect()
    };
    for path in files(&folder) {
        let said = world.run(&["validate", "--json", path.to_str().expect("UTF-8")]);
        assert_eq!(
            (said.code, said.json()["valid"].as_bool()),
            (0, Some(true)),
            "{path:?} {said:?}"
        );
    }
    for path in files(&folder.join("invalid")) {
        let said = world.run(&["validate", "--json", path.to_str().expect("UTF-8")]);
        let verdict = said.json();
        assert_eq!((said.code, verdict["valid"].as_bool()), (1, Some(false)), "{path:?}");
        let errors = verdict["errors"].as_array().expect("errors");
        assert!(!errors.is_empty() && errors.iter().all(|e| e["message"].is_string()), "{path:?}");
    }
}

#[test]
fn s3_01_an_error_points_into_the_document() {
    let world = World::new();
    world.write("doc.json", r#"{"task_id":"t","phase":"dance","context":{"feature":"f"},"instructions":"i","expected_output":"x"}"#);
    let said = world.run(&["validate", "--as", "phase-request", "--json", "doc.json"]);
    assert_eq!(said.code, 1);
    let verdict = said.json();
    assert_eq!(verdict["schema"], "phase-request");
    let paths: Vec<&str> = verdict["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .filter_map(|e| e["path"].as_str())
        .collect();
    assert_eq!(paths, ["/expected_output", "/phase"]);
}

#[test]
fn documents_that_are_no_documents_get_one_clear_answer() {
    let world = World::new();
    for (text, hint) in [
        ("not json", "JSON"),
        ("{}", "--as"),
        ("[1,2]", "--as"),
        ("", "JSON"),
        (&"[".repeat(100_000), "deep"),
    ] {
        world.write("doc.json", text);
        let said = world.run(&["validate", "--json", "doc.json"]);
        assert_eq!(said.code, 1, "{said:?}");
        let message = said.json()["errors"][0]["message"].to_string();
        assert!(message.contains(hint), "{message}");
    }
    assert_eq!(world.run(&["validate", "missing.json"]).code, 2);
}
