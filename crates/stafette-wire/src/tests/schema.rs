use serde_json::json;

use super::*;
use crate::schema::{MAX_BYTES, MAX_DEPTH, ReadError, schema};

/// Set `UPDATE_GOLDEN=1` to write the files again after an intended change.
#[test]
fn s2_01_the_published_schemas_are_those_that_are_enforced() {
    let folder = fixtures("schemas");
    for name in list() {
        let file = folder.join(format!("{name}.json"));
        let current =
            serde_json::to_string_pretty(&schema(*name)).expect("a schema is JSON") + "\n";
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(&folder).expect("the folder can be made");
            fs::write(&file, &current).expect("the file can be written");
        }
        let published = fs::read_to_string(&file).unwrap_or_default();
        assert!(published == current, "{name}.json is out of date: run with UPDATE_GOLDEN=1");
    }
}

#[test]
fn s2_01_every_schema_has_a_name_an_id_and_a_version() {
    for name in list() {
        assert_eq!(json!(name), name.as_str());
        let schema = schema(*name);
        assert_eq!(schema["$id"], format!("urn:stafette:schema:{name}:1.0.0"));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(!validate(*name, &json!(null)).is_empty());
    }
}

#[test]
fn s2_01_texts_are_read_within_limits() {
    assert_eq!(read("{\"a\": 1}").expect("JSON"), json!({ "a": 1 }));
    assert_eq!(read(b"\xef\xbb\xbf[]").expect("a byte order mark is skipped"), json!([]));

    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read(deep(MAX_DEPTH)).is_ok());
    let error = read("\n".to_owned() + &deep(MAX_DEPTH + 1)).unwrap_err();
    assert_eq!(error.to_string(), "line 2: lists and objects are nested more than 64 deep");
    let quoted = format!("[\"{}\\\"{}\"]", "[".repeat(100), "{".repeat(100));
    assert!(read(quoted).is_ok(), "brackets in strings do not count");

    let long = format!("\"{}\"", "x".repeat(MAX_BYTES));
    assert!(matches!(read(long), Err(ReadError::TooLong { bytes }) if bytes == MAX_BYTES + 2));
    let error = read("{\"a\": 1,}").unwrap_err();
    assert_eq!(error.to_string(), "not JSON: trailing comma at line 1 column 9");
}

#[test]
fn s2_01_a_violation_quotes_no_more_than_it_must() {
    let mut document = fixture("handoff-request.json");
    document["priority"] = "x".repeat(10_000).into();
    document["reasonDetail"] = json!(vec!["y"; 10_000]);
    let [priority, detail] = &validate(Name::HandoffRequest, &document)[..] else {
        panic!("two things are wrong");
    };
    assert!(
        priority.message.ends_with("x… is not one of \"low\", \"medium\", \"high\", \"critical\"")
    );
    assert!(detail.message.chars().count() <= 401, "{detail}");
}

#[test]
fn a_document_is_recognised_even_when_it_is_broken() {
    let known = [
        (json!({ "canHandle": true, "confidence": 0.6 }), Some(Name::HandoffDecision)),
        (
            json!({ "canHandle": false, "handoffTo": "x", "sourceAgent": "y" }),
            Some(Name::HandoffRequest),
        ),
        (json!({ "task_id": "1", "phase": "write", "instructions": 3 }), Some(Name::PhaseRequest)),
        (json!({ "task_id": "1", "phase": "write", "findings": 3 }), Some(Name::PhaseResponse)),
        (json!({ "task_id": "1", "phase": "write" }), None),
        (json!({ "status": "ok" }), None),
        (json!(["task_id", "phase", "findings"]), None),
    ];
    for (document, name) in known {
        assert_eq!(recognise(&document), name, "{document}");
    }
}
