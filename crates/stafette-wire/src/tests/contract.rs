use serde_json::json;

use super::*;
use stafette_model::{Kind, Millis, Outcome, Priority, Reason, Response, Usage};

#[test]
fn s2_01_a_request_becomes_an_offer_with_everything_in_its_place() {
    let document = fixture("handoff-request.json");
    let offer: Offer = typed::<HandoffRequest>(&document).into_offer();
    assert_eq!(offer.from, agent("document_generator"));
    assert_eq!(offer.to, agent("research_agent"));
    assert_eq!((offer.kind, &offer.reason), (Kind::Delegate, &Reason::MissingRequiredInput));
    assert_eq!(offer.item.as_deref(), Some("market_brief"));
    assert_eq!((offer.priority, offer.timeout), (Priority::High, Some(Millis::seconds(30))));
    assert_eq!(offer.missing[0].source.as_deref(), Some("market"));
    assert_eq!(offer.outputs["regions"], json!(["DE", "NL", "DK"]));
    assert_eq!(offer.prior_attempts[0].attempt, 1);
    assert!(offer.question.is_none());

    let foreign = offer.foreign.expect("it came from outside");
    assert_eq!(
        (foreign.dialect.as_str(), foreign.id.as_str()),
        ("contract", "7c9e6679-7425-40de-944b-e07fc1f90ae7")
    );
    let beside = json!({
        "timestamp": "2026-03-02T09:15:00Z",
        "sourceContext/currentStep": 4,
        "sourceContext/attemptNumber": 2,
        "sourceContext/branch": "brief/eu-2026",
        "missingInputs/0/unit": "EUR",
        "contextForTarget/priorAttempts/0/hits": 0,
        "contextForTarget/audience": "sales",
        "requestedBy": { "team": "north" },
    });
    assert_eq!(json!(foreign.fields), beside);
}

#[test]
fn s2_01_a_request_is_written_from_the_model_and_not_from_memory() {
    let mut offer: Offer = typed::<HandoffRequest>(&fixture("handoff-request.json")).into_offer();
    offer.to = Party::Orchestrator;
    offer.missing.clear();
    offer.timeout = None;
    let back = value(&HandoffRequest::from_offer(&offer, Uuid::nil(), Time(0)));
    assert_eq!(back["handoffTo"], "orchestrator");
    assert_eq!(back.get("missingInputs"), None);
    assert_eq!(back.get("timeoutMs"), None);
    assert_eq!(back["traceId"], "7c9e6679-7425-40de-944b-e07fc1f90ae7");
    assert_eq!(complaints(Name::HandoffRequest, &back), "");
}

#[test]
fn s2_01_a_person_is_asked_what_the_request_says() {
    let offer: Offer = typed::<HandoffRequest>(&fixture("handoff-request-human.json")).into_offer();
    assert_eq!(offer.to, Party::Human);
    assert_eq!(offer.timeout, Some(Millis(1501)));
    let question = offer.question.expect("a person needs a question");
    assert_eq!(question.reason, "requires_human_decision");
    assert_eq!(question.details, "Two sources disagree on the launch date.");
    assert!(question.blocking);
}

#[test]
fn s2_01_a_response_becomes_the_models_response() {
    let document = fixture("handoff-response-partial.json");
    let response = typed::<HandoffResponse>(&document).into_response();
    assert_eq!(response.by, agent("research_agent"));
    assert_eq!(response.outcome, Outcome::Partial);
    assert_eq!(response.outputs["market_size"], 2_300_000_000_u64);
    assert_eq!(response.unresolved, ["competitors"]);
    assert_eq!(response.took, Millis(18_750));
    assert_eq!(response.usage, Usage::default());

    let document = fixture("handoff-response-failed.json");
    let response = typed::<HandoffResponse>(&document).into_response();
    assert_eq!(response.failure.as_deref(), Some("Circular handoff detected"));
}

#[test]
fn s2_01_native_work_goes_out_as_valid_documents() {
    let id: Uuid = "f47ac10b-58cc-4372-a567-0e02b2c3d479".parse().expect("a UUID");
    let mut offer =
        Offer::new(agent("planner"), agent("builder"), Kind::Transfer, Reason::TaskHandoff);
    offer.instructions = Some("Build it".into());
    let request = value(&HandoffRequest::from_offer(&offer, id, Time(0)));
    assert_eq!(
        request,
        json!({
            "schemaVersion": "1.0.0",
            "traceId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "timestamp": "1970-01-01T00:00:00.000Z",
            "sourceAgent": "planner",
            "sourceContext": { "currentStep": 1, "attemptNumber": 1 },
            "canHandle": false,
            "handoffTo": "builder",
            "reason": "expertise_mismatch",
            "reasonDetail": "task_handoff",
            "contextForTarget": { "summary": "", "instructions": "Build it" },
            "priority": "medium",
        })
    );
    assert_eq!(complaints(Name::HandoffRequest, &request), "");

    let mut response = Response::failed("Handoff limit exceeded");
    response.summary = "It went round too often.".into();
    let written = value(&HandoffResponse::from_response(&response, id, Time(0)));
    assert_eq!(complaints(Name::HandoffResponse, &written), "");
    let read = typed::<HandoffResponse>(&written).into_response();
    assert_eq!(Response { foreign: None, ..read }, response);
}

#[test]
fn s2_01_what_came_in_another_dialect_is_no_burden() {
    let offer: Offer = typed::<Message>(&fixture("message-task-handoff.json")).into_offer();
    let request = value(&HandoffRequest::from_offer(&offer, Uuid::nil(), Time(0)));
    assert_eq!(request["traceId"], Uuid::nil().to_string());
    assert_eq!(request["contextForTarget"]["summary"], "Sign-in with tokens");
    assert_eq!(complaints(Name::HandoffRequest, &request), "");
}

#[test]
fn s2_01_an_invalid_request_is_refused_with_every_place_and_reason() {
    let request = complaints(Name::HandoffRequest, &fixture("invalid/handoff-request.json"));
    insta::assert_snapshot!(request, @r#"
    /canHandle: false was expected
    /contextForTarget: "summary" is a required property
    /contextForTarget/relevantOutputs: ["not","a","record"] is not of type "object"
    /handoffTo: "" is shorter than 1 character
    /missingInputs/0: "expectedType" is a required property
    /priority: "urgent" is not one of "low", "medium", "high", "critical"
    /reason: "bored" is not one of "missing_required_input", "validation_failure", "expertise_mismatch", "resource_exhausted", "requires_human_decision"
    /schemaVersion: "1.0.0" was expected
    /sourceContext/attemptNumber: 1.5 is not of type "integer"
    /sourceContext/currentStep: -1 is less than the minimum of 0
    /sourceContext/documentType: null is not of type "string"
    /timeoutMs: "30s" is not of type "number"
    /timestamp: "yesterday" is not a "date-time"
    /traceId: "trace-1" is not a "uuid"
    "#);
    let response = complaints(Name::HandoffResponse, &fixture("invalid/handoff-response.json"));
    insta::assert_snapshot!(response, @r#"
    /executionTimeMs: -1 is less than the minimum of 0
    /status: "done" is not one of "resolved", "partial", "failed", "escalated"
    /unresolved/1: 7 is not of type "string"
    "#);
    let decision = complaints(Name::HandoffDecision, &fixture("invalid/handoff-decision.json"));
    insta::assert_snapshot!(decision, @"/confidence: 1.5 is greater than the maximum of 1");
}
