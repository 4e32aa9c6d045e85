use std::collections::HashSet;

use serde_json::json;

use super::*;
use crate::phase::{Decision, Findings, decision};
use stafette_model::{Kind, Outcome, Reason, Response};

#[test]
fn s3_01_a_phase_is_work_that_the_orchestrator_waits_for() {
    let document = fixture("phase-request-write.json");
    let offer: Offer = typed::<PhaseRequest>(&document).into_offer(agent("writer"));
    assert_eq!((offer.from, offer.to), (Party::Orchestrator, agent("writer")));
    assert_eq!((offer.kind, offer.reason), (Kind::Delegate, Reason::Other("phase".into())));
    assert_eq!(offer.item.as_deref(), Some("jwt-authentication"));
    assert!(offer.summary.starts_with("Sessions live in"));
    assert_eq!(
        offer.instructions.as_deref(),
        Some("Build sign-in and sign-out with JWT, tests first")
    );
    assert_eq!(
        json!(offer.outputs),
        json!({
            "relevant_files": ["src/lib/auth.ts", "src/server/routers/user.ts"],
            "constraints": ["TDD", "30 line functions"],
            "reviewers": ["ana"],
        })
    );
    let foreign = offer.foreign.expect("it came from outside");
    assert_eq!(foreign.id, "auth-001");
    assert_eq!(
        json!(foreign.fields),
        json!({
            "phase": "write", "expected_output": "files_changed", "context/spec_path": null,
            "max_turns": 12,
        })
    );
}

#[test]
fn s3_01_absent_and_null_are_different_and_stay_so() {
    let mut document = fixture("phase-request-validate.json");
    let request = typed::<PhaseRequest>(&document);
    assert_eq!(request.context.previous_findings, Some(None));
    assert_eq!(request.context.spec_path, None);
    assert_eq!(through_model(Name::PhaseRequest, &document), Some(document.clone()));
    document["context"]["constraints"] = Value::Null;
    let complaints = complaints(Name::PhaseRequest, &document);
    assert_eq!(complaints, "/context/constraints: null is not of type \"array\"\n");
    assert!(serde_json::from_value::<PhaseRequest>(document).is_err());
}

#[test]
fn s3_01_a_phases_answer_keeps_its_decision() {
    let answer = |file: &str| typed::<PhaseResponse>(&fixture(file)).into_response(agent("scout"));
    let research = answer("phase-response-research.json");
    assert_eq!(research.outcome, Outcome::Resolved);
    assert_eq!(decision(&research), Some(Decision::Proceed));
    assert_eq!(research.usage.tokens, 847);
    assert_eq!(research.recommendations, ["Extend auth.ts", "Add an auth router"]);
    assert_eq!(research.outputs["patterns_found"][0]["file"], "src/server/routers/user.ts");

    let blocked = answer("phase-response-validate.json");
    assert_eq!((blocked.outcome, decision(&blocked)), (Outcome::Failed, Some(Decision::Stop)));
    let why = "The clock in the test is fixed; The check runs before the clock is read";
    assert_eq!(blocked.failure.as_deref(), Some(why));

    let unclear = answer("phase-response-clarify.json");
    assert_eq!((unclear.outcome, decision(&unclear)), (Outcome::Partial, Some(Decision::Clarify)));
    assert_eq!(decision(&Response::failed("no")), None);
}

#[test]
fn s3_01_native_work_goes_out_as_valid_phases() {
    let mut offer = Offer::new(
        Party::Orchestrator,
        agent("scout"),
        Kind::Delegate,
        Reason::Other("phase".into()),
    );
    offer.detail = "Look around".into();
    offer.outputs.insert("relevant_files".into(), json!(["src/"]));
    for phase in Phase::ALL {
        let request = value(&PhaseRequest::from_offer(&offer, "t-1", phase));
        assert_eq!(complaints(Name::PhaseRequest, &request), "");
        assert_eq!(request["expected_output"], json!(phase.output()));
    }
    let request = PhaseRequest::from_offer(&offer, "t-1", Phase::Research);
    assert_eq!(request.context.feature, "t-1");
    assert_eq!(request.instructions, "Look around");
    assert_eq!(request.context.relevant_files, Some(vec!["src/".to_owned()]));

    // Values that would change the meaning of the context's own names are kept apart.
    offer.summary = "So far so good".into();
    offer.outputs.insert("feature".into(), json!(["not", "a", "name"]));
    let request = value(&PhaseRequest::from_offer(&offer, "t-1", Phase::Research));
    assert_eq!(complaints(Name::PhaseRequest, &request), "");
    assert_eq!(request["context"]["outputs"]["relevant_files"], json!(["src/"]));
    assert_eq!(request["context"]["previous_findings"], "So far so good");
}

#[test]
fn s3_03_native_answers_take_the_shape_of_their_phase() {
    let mut response = Response::new(agent("scout"), Outcome::Partial);
    response.unresolved.push("coverage".into());
    response.outputs.insert("warnings".into(), json!(["slow"]));
    for phase in Phase::ALL {
        let document = value(&PhaseResponse::from_response(&response, "t-1", phase));
        assert_eq!(complaints(Name::PhaseResponse, &document), "");
        assert_eq!(document["findings"]["warnings"], json!(["slow"]));
        assert_eq!(document["issues"], json!(["coverage"]));
    }
    response.outputs.insert("warnings".into(), json!("slow"));
    let document = value(&PhaseResponse::from_response(&response, "t-1", Phase::Validate));
    assert_eq!(complaints(Name::PhaseResponse, &document), "");
    assert_eq!(document["findings"]["outputs"], json!({ "warnings": "slow" }));
}

#[test]
fn s3_03_findings_are_typed_by_their_phase() {
    let documents = goldens_of(Name::PhaseResponse);
    let found = documents.iter().map(|(_, document)| typed::<PhaseResponse>(document));
    let kinds: HashSet<_> = found.map(|it| std::mem::discriminant(&it.findings)).collect();
    assert_eq!(kinds.len(), Phase::ALL.len(), "{kinds:?}");

    let document = fixture("phase-response-parallel.json");
    let Findings::Parallel(findings) = typed::<PhaseResponse>(&document).findings else {
        panic!("not what a parallel phase finds");
    };
    assert_eq!(findings.aggregation.passed.get(), 2);
    assert!(findings.results.iter().any(|part| !part.passed));
}

#[test]
fn s3_03_a_wrong_shape_is_refused_at_its_place() {
    let request = complaints(Name::PhaseRequest, &fixture("invalid/phase-request.json"));
    insta::assert_snapshot!(request, @r#"
    document: "expected_output" is a required property
    /context: "feature" is a required property
    /context/relevant_files: null is not of type "array"
    /context/spec_path: 3 is not of types "null", "string"
    "#);
    let research = fixture("invalid/phase-response-research.json");
    insta::assert_snapshot!(complaints(Name::PhaseResponse, &research), @r#"
    /decision: "proceed" is not one of "PROCEED", "STOP", "CLARIFY"
    /findings: "recommendations" is a required property
    /findings/conflicts/0/severity: "fatal" is not one of "critical", "warning", "info"
    /findings/patterns_found: "none" is not of type "array"
    "#);
    let validation = fixture("invalid/phase-response-validate.json");
    insta::assert_snapshot!(complaints(Name::PhaseResponse, &validation), @r#"
    /findings/checks/tests: "failed_count" is a required property
    /findings/checks/tests/total: -3 is less than the minimum of 0
    /findings/overall_passed: "yes" is not of type "boolean"
    "#);
}

#[test]
fn s3_03_the_findings_of_another_phase_do_not_fit() {
    let mut document = fixture("phase-response-write.json");
    document["phase"] = "research".into();
    insta::assert_snapshot!(complaints(Name::PhaseResponse, &document), @r#"
    /findings: "conflicts" is a required property
    /findings: "existing_implementations" is a required property
    /findings: "patterns_found" is a required property
    /findings: "recommendations" is a required property
    "#);
    document["phase"] = "dream".into();
    insta::assert_snapshot!(complaints(Name::PhaseResponse, &document), @r#"/phase: "dream" is not one of "research", "write", "validate", "parallel""#);
}
