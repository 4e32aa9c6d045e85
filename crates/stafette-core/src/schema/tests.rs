mod oracle;
mod reference;

use serde_json::json;

use super::*;

/// Set `UPDATE_GOLDEN=1` to write the file again after an intended change.
#[test]
fn s2_01_the_published_schema_of_a_workflow_is_the_one_that_is_enforced() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/schemas/workflow.json");
    let current = serde_json::to_string_pretty(&schema(Name::Workflow)).expect("a schema is JSON");
    let current = current + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &current).expect("the file can be written");
    }
    let published = std::fs::read_to_string(file).unwrap_or_default();
    assert!(published == current, "workflow.json is out of date: run with UPDATE_GOLDEN=1");
}

#[test]
fn s2_01_every_published_document_is_found_by_its_name() {
    for name in list() {
        assert_eq!(name.as_str().parse(), Ok(name));
        assert_eq!(schema(name)["$id"], format!("urn:stafette:schema:{name}:1.0.0"));
        assert!(!validate(name, &json!(null)).is_empty());
    }
    let unknown = "handoff".parse::<Name>().unwrap_err();
    assert!(unknown.to_string().contains("handoff-request, handoff-response"));
    assert!(unknown.to_string().ends_with("state, workflow"));
}

#[test]
fn s2_01_a_workflow_has_a_schema_too_and_knows_all_its_fields() {
    let mut workflow = json!({
        "workflow": { "name": "small", "entry": "a" },
        "agents": { "a": { "runner": "scripted" } },
    });
    assert_eq!(validate(Name::Workflow, &workflow), []);
    assert_eq!(recognise(&workflow), Some(Name::Workflow));
    workflow["limits"] = json!({ "handofs_per_run": 3 });
    let violations = validate(Name::Workflow, &workflow);
    assert_eq!((violations.len(), violations[0].path.as_str()), (1, "/limits"), "{violations:?}");
    assert!(violations[0].message.contains("handofs_per_run"), "{violations:?}");
}
