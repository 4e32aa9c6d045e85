use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde_json::json;
use stafette_core::{FailureKind, Fields, Kind, Reason, Usd};

use super::*;

fn harvest() -> Harvest {
    Harvest::new(&"builder".parse().unwrap(), true)
}

fn frame(harvest: &mut Harvest, kind: &str, body: &str) -> Option<Signal> {
    let signals = harvest.frame(&Frame::new(kind, Some(body.to_owned())));
    signals.into_iter().next()
}

fn finished(harvest: Harvest) -> TurnResult {
    match harvest.end(ExitStatus::default(), "talk".into(), None) {
        Signal::Finished(result) => *result,
        other => panic!("{other:?}"),
    }
}

fn failed(harvest: Harvest, status: i32) -> Failure {
    match harvest.end(ExitStatus::from_raw(status), "talk".into(), Some("no space left".into())) {
        Signal::Failed { failure, .. } => failure,
        other => panic!("{other:?}"),
    }
}

fn fields(value: Value) -> Fields {
    value.as_object().cloned().unwrap()
}

#[test]
fn s1_04_a_stage_name_hands_the_baton_on() {
    let mut harvest = harvest();
    assert_eq!(frame(&mut harvest, "HANDOFF", "decisions"), None);
    let result = finished(harvest);
    let offer = &result.offers[0];
    assert_eq!((offer.from.as_str(), offer.to.as_str()), ("builder", "decisions"));
    assert_eq!((offer.kind, &offer.reason), (Kind::Transfer, &Reason::Stage));
    assert!(result.bare);
    assert_eq!(result.response.summary, "talk");
}

#[test]
fn s1_18_a_handoff_carries_what_it_says_beside_its_own_fields() {
    let mut harvest = harvest();
    let payload = json!({
        "to": "reviewer", "from": "planner", "reason": "review_request", "summary": "auth is in",
        "priority": "high", "key_decisions": ["JWT"], "commit": "abc", "outputs": {"files": 3},
    });
    frame(&mut harvest, "HANDOFF", &payload.to_string());
    let offer = finished(harvest).offers.remove(0);
    assert_eq!(offer.from.as_str(), "builder", "nobody gives in another's name");
    assert_eq!(offer.reason, Reason::ReviewRequest);
    assert_eq!(offer.summary, "auth is in");
    let outputs = json!({"files": 3, "from": "planner", "key_decisions": ["JWT"], "commit": "abc"});
    assert_eq!(offer.outputs, fields(outputs));
}

#[test]
fn s2_06_a_handoff_to_a_person_is_a_question() {
    let mut harvest = harvest();
    let payload = json!({"to": "human", "question": "Which one?", "options": ["JWT", "Session"]});
    harvest.signal("HANDOFF", payload);
    let offer = finished(harvest).offers.remove(0);
    let question = offer.question.unwrap();
    assert_eq!((offer.kind, offer.reason), (Kind::Delegate, Reason::RequiresHumanDecision));
    assert_eq!((question.details.as_str(), question.options.len()), ("Which one?", 2));
    assert!(question.blocking);
}

#[test]
fn s2_01_everything_that_is_wrong_is_told_at_once() {
    let mut harvest = harvest();
    harvest.signal("HANDOFF", json!({"summary": "to nobody"}));
    harvest.signal("RESULT", json!({"status": "great", "outputs": 3}));
    let failure = failed(harvest, 0);
    assert_eq!(failure.kind, FailureKind::Invalid);
    for part in ["HANDOFF: /to", "RESULT: /status: `great`", "RESULT: /outputs"] {
        assert!(failure.message.contains(part), "{part} in {}", failure.message);
    }
}

#[test]
fn s5_06_a_result_keeps_its_fields_and_adds_up_what_was_used() {
    let mut harvest = harvest().trusting(true);
    frame(&mut harvest, "REPORT", r#"{"tokens": 900, "usd": 0.01, "note": "half way"}"#);
    let alive =
        frame(&mut harvest, "REPORT", r#"{"tokens": 100, "cost_usd": 0.02, "note": "nearly"}"#);
    assert_eq!(alive, Some(Signal::Alive { note: Some("nearly".into()) }));
    let payload = json!({"status": "partial", "unresolved": ["tests"], "issues": 2});
    harvest.signal("RESULT", payload);
    let result = finished(harvest);
    assert_eq!(result.usage, Usage::exactly(1000, Usd(30_000)));
    assert_eq!(result.response.outcome, Outcome::Partial);
    assert_eq!(result.response.unresolved, ["tests"]);
    assert_eq!(result.response.outputs, fields(json!({"issues": 2})));
    assert_eq!(result.response.summary, "");
    assert!(result.bare, "that it is done only in part has to be meant");
}

#[test]
fn s1_05_an_error_is_an_alert_and_explains_a_bad_end() {
    let mut harvest = harvest();
    let alert =
        frame(&mut harvest, "ERROR", r#"{"code":"MCP_CONNECTION_FAILED","message":"no graph"}"#);
    let (code, message) = ("MCP_CONNECTION_FAILED".to_owned(), "no graph".to_owned());
    assert_eq!(alert, Some(Signal::Printed(PrintedFrame::Error { code, message })));
    let alert = harvest.signal("ERROR", json!({"code": "oh no", "message": "what now"}));
    let (code, message) = ("AGENT_ERROR".to_owned(), "oh no: what now".to_owned());
    assert_eq!(alert, Some(Signal::Alert { code, message }));
    assert_eq!(failed(harvest, 1 << 8).message, "exit status 1: oh no: what now");
}

#[test]
fn s5_07_the_way_a_process_ends_decides_whether_to_try_again() {
    let cases = [
        (3 << 8, FailureKind::Recoverable, "exit status 3: no space left"),
        (127 << 8, FailureKind::Fatal, "exit status 127: no space left; a program"),
        (9, FailureKind::Recoverable, "killed by signal 9"),
    ];
    for (status, kind, message) in cases {
        let failure = failed(harvest(), status);
        assert_eq!(failure.kind, kind);
        assert!(failure.message.starts_with(message), "{}", failure.message);
    }
}

#[test]
fn one_turn_can_neither_flood_the_alerts_nor_the_offers() {
    let mut harvest = harvest();
    let alerts = (0..1000).filter_map(|_| frame(&mut harvest, "ERROR", r#"{"code":"X"}"#)).count();
    assert_eq!(alerts, 32);
    (0..1000).for_each(|_| drop(frame(&mut harvest, "HANDOFF", "next")));
    assert_eq!(finished(harvest).offers.len(), 32);
}

#[test]
fn a_json_result_is_found_at_the_end_of_the_talk() {
    let value = json!({"status": "resolved"});
    for output in [
        r#"{"status":"resolved"}"#,
        "I think {so}\n[and so on]\n{\n  \"status\":\n  \"resolved\"\n}\n\n",
        "Here it is:\n```json\n{\"status\": \"resolved\"}\n```\n",
        "{\"other\":1}\n{\"status\":\"resolved\"}\n",
    ] {
        assert_eq!(last_document(output.as_bytes()), Some(value.clone()), "{output}");
    }
    assert_eq!(last_document(b"no document\n{\"status\":\"resolved\"} after all"), None);
}

#[test]
fn a_json_result_may_answer_and_hand_on() {
    let mut harvest = Harvest::new(&"builder".parse().unwrap(), false);
    let said = harvest.document(json!([
        {"status": "resolved", "summary": "done"},
        {"to": "reviewer", "summary": "look"},
        {"type": "ERROR", "payload": {"code": "LOW_DISK"}},
    ]));
    assert!(matches!(said.as_slice(), [Signal::Alert { .. }]));
    let result = finished(harvest);
    assert_eq!(result.response.summary, "done");
    assert_eq!(result.offers[0].to.as_str(), "reviewer");
    assert!(!result.bare);
}

#[test]
fn b_19_a_json_result_that_says_nothing_is_a_mistake_and_no_success() {
    for nothing in [json!({}), json!({"stat": "failed"}), json!(null), json!("")] {
        let mut harvest = Harvest::new(&"builder".parse().unwrap(), false);
        drop(harvest.document(nothing.clone()));
        let failure = failed(harvest, 0);
        assert!(failure.message.contains("RESULT: "), "{nothing}: {failure:?}");
    }
}

fn request() -> Value {
    json!({
        "schemaVersion": "1.0.0",
        "traceId": "0190a0a0-0000-7000-8000-000000000001",
        "timestamp": "2026-01-01T00:00:00Z",
        "sourceAgent": "someone-else",
        "sourceContext": {"currentStep": 1, "attemptNumber": 1},
        "canHandle": false,
        "handoffTo": "research",
        "reason": "missing_required_input",
        "reasonDetail": "No market size",
        "missingInputs": [{"key": "market_size", "expectedType": "number", "description": "In units"}],
        "contextForTarget": {"summary": "A plan is half written"},
        "priority": "medium",
    })
}

#[test]
fn s2_01_a_handoff_request_asks_and_waits() {
    let mut harvest = harvest();
    harvest.signal("HANDOFF", request());
    let offer = finished(harvest).offers.remove(0);
    assert_eq!((offer.from.as_str(), offer.to.as_str()), ("builder", "research"));
    assert_eq!((offer.kind, offer.reason), (Kind::Delegate, Reason::MissingRequiredInput));
    assert_eq!(offer.missing[0].key, "market_size");
}

#[test]
fn s2_01_a_broken_request_comes_back_with_every_mistake() {
    let mut harvest = harvest();
    let mut request = request();
    request["reason"] = "because".into();
    request.as_object_mut().unwrap().remove("priority");
    drop(harvest.document(request));
    let message = failed(harvest, 0).message;
    assert!(message.contains("reason") && message.contains("priority"), "{message}");
}

#[test]
fn s3_01_a_phase_response_is_a_result() {
    let mut harvest = harvest();
    drop(harvest.document(json!({
        "task_id": "auth-001", "phase": "research", "status": "complete", "decision": "PROCEED",
        "findings": {
            "existing_implementations": [], "conflicts": [], "patterns_found": [],
            "recommendations": ["Extend auth.rs"],
        },
        "context_summary": "Sessions exist; extend them.", "tokens_used": 1200,
    })));
    let result = finished(harvest);
    assert_eq!(result.response.outcome, Outcome::Resolved);
    assert_eq!(result.response.by.as_str(), "builder");
    assert_eq!(result.usage.tokens, 1200);
}

#[test]
fn s5_01_a_message_hands_over() {
    let mut harvest = harvest();
    let payload = json!({
        "schema_version": "1.0.0", "message_id": "0190a0a0-0000-4000-8000-000000000002",
        "timestamp": "2026-01-01T00:00:00Z", "from": "builder", "to": "reviewer",
        "type": "review_request", "priority": "high", "payload": {"commit": "abc"},
        "context": {"workflow": "feature", "spec": "specs/auth.md", "iteration": 1},
        "status": "pending",
    });
    harvest.signal("HANDOFF", payload);
    let offer = finished(harvest).offers.remove(0);
    assert_eq!((offer.to.as_str(), offer.reason), ("reviewer", Reason::ReviewRequest));
    assert_eq!(offer.outputs["commit"], "abc");
}

#[test]
fn short_forms_are_not_mistaken_for_documents() {
    let mut harvest = harvest();
    let note = json!({"to": "mind", "from": "x", "task_id": 7, "payload": {}, "type": "plan"});
    harvest.signal("HANDOFF", note);
    let result = json!({"status": "partial", "unresolved": ["a"], "issues": 2, "task_id": 7});
    harvest.signal("RESULT", result);
    let result = finished(harvest);
    assert_eq!(result.offers[0].outputs["task_id"], 7);
    assert_eq!(result.response.outputs["issues"], 2);
}

#[test]
fn b_07_a_signed_frame_counts_once_and_what_is_only_printed_no_more() {
    let mut harvest = harvest().with_token(Some("secret"));
    let frame = |to: &str| Frame::new("HANDOFF", Some(to.to_owned()));
    harvest.frame(&frame("quoted"));
    let signed = crate::seal::sign(frame("reviewer"), "secret", "s", 1);
    harvest.frame(&signed);
    // The terminal draws it again, and a file with a frame in it is printed.
    harvest.frame(&signed);
    harvest.frame(&frame("human"));
    let result = finished(harvest);
    let targets: Vec<&str> = result.offers.iter().map(|offer| offer.to.as_str()).collect();
    assert_eq!((targets, result.bare), (vec!["reviewer"], false));
}

#[test]
fn b_07_what_is_printed_is_the_word_of_a_program_only_when_it_ends_its_own_work() {
    let result = |status: &str, runs_on: bool| {
        let mut harvest = harvest();
        frame(&mut harvest, "RESULT", &json!({ "status": status }).to_string());
        finished(if runs_on { harvest.of_one_that_runs_on() } else { harvest })
    };
    assert!(!result("resolved", false).bare, "it has left, so it is done");
    assert!(result("resolved", true).bare, "nothing but a print says that it is done");
    assert!(result("failed", false).bare, "another agent would get the work");
    assert!(!finished(harvest().of_one_that_runs_on()).bare, "nothing was read off");
}

#[test]
fn b_19_one_word_for_an_outcome_is_that_outcome_and_a_torn_document_is_none() {
    let outcome = |payload: Value| {
        let mut harvest = harvest();
        harvest.signal("RESULT", payload);
        harvest.told().map(|told| told.response.expect("an answer"))
    };
    assert_eq!(outcome(json!("failed")).expect("it counts").outcome, Outcome::Failed);
    assert_eq!(outcome(json!("done")).expect("it counts").outcome, Outcome::Resolved);
    assert!(outcome(json!("{\"status\":")).is_err());
    let failed = outcome(json!({ "status": "failed", "summary": "no luck" })).expect("it counts");
    assert_eq!(failed.failure.as_deref(), Some("no luck"));
}

#[test]
fn b_07_what_is_only_printed_books_no_cost_and_no_tokens() {
    let mut harvest = harvest();
    let note = frame(&mut harvest, "REPORT", r#"{"usd": 1000, "tokens": 9000, "note": "half"}"#);
    assert_eq!(note, Some(Signal::Alive { note: Some("half".into()) }));
    let phase = json!({
        "task_id": "auth-001", "phase": "research", "status": "complete", "decision": "PROCEED",
        "findings": {
            "existing_implementations": [], "conflicts": [], "patterns_found": [],
            "recommendations": [],
        },
        "context_summary": "Sessions exist.", "tokens_used": 1200,
    });
    frame(&mut harvest, "RESULT", &phase.to_string());
    // The program's own output counts its tokens.
    harvest.used(Usage::exactly(70, Usd(5)));
    let result = finished(harvest);
    assert_eq!(result.usage, Usage::exactly(70, Usd(5)));
    assert_eq!(result.response.usage, result.usage);
}

#[test]
fn b_07_a_printed_frame_that_cannot_be_read_fails_nothing_and_says_why() {
    for (kind, body, reason) in [
        ("HANDOFF", r#"{"summary":"to nobody"}"#, "HANDOFF: /to"),
        ("RESULT", r#"{"status":"great"}"#, "RESULT: /status: `great`"),
        ("SIGNAL", r#"{"signal":"maybe"}"#, "SIGNAL: "),
        ("CHANGE", r#"{"changes":7}"#, "CHANGE: "),
        ("HANDOF", "builder", "`HANDOF` is not a signal"),
    ] {
        for trusted in [false, true] {
            let mut harvest = harvest().trusting(trusted);
            let said = frame(&mut harvest, kind, body);
            let Some(Signal::Printed(PrintedFrame::Unreadable { reason: said })) = said else {
                panic!("{kind}: {said:?}");
            };
            assert!(said.starts_with(reason), "{said}");
            assert!(finished(harvest).unanswered, "{kind} is no answer");
        }
    }
    let torn = Found::Malformed {
        fault: stafette_core::wire::frame::FrameError::Json,
        text: "<<<ODEI:HANDOFF:{\"to\":}".into(),
        offset: 0,
    };
    let reason = "the payload is not valid JSON: `<<<ODEI:HANDOFF:{\"to\":}`".to_owned();
    let said = harvest().found(&torn);
    assert_eq!(said, [Signal::Printed(PrintedFrame::Unreadable { reason })]);
}

#[test]
fn b_07_a_signed_frame_that_is_wrong_fails_its_turn_and_only_so_many_are_reported() {
    let mut harvest = harvest().with_token(Some("secret"));
    let reported = (0..100).filter_map(|_| frame(&mut harvest, "HANDOFF", "{}")).count();
    assert_eq!(reported, MISTAKES);
    let wrong = Frame::new("HANDOFF", Some("{}".to_owned()));
    harvest.frame(&crate::seal::sign(wrong, "secret", "s", 1));
    assert!(failed(harvest, 0).message.contains("HANDOFF: /to"));
}

#[test]
fn b_05_a_frame_that_reports_something_unknown_is_noted_and_fails_no_work() {
    let mut harvest = harvest().with_token(Some("secret"));
    let report = Frame::new("REPORT", Some(json!({"tokens": 5, "cost": 1}).to_string()));
    let said = harvest.frame(&crate::seal::sign(report, "secret", "s", 1));
    let [Signal::Alive { .. }, Signal::Printed(PrintedFrame::Unreadable { reason })] = &*said
    else {
        panic!("{said:?}");
    };
    assert!(reason.starts_with("REPORT: /cost: did you mean `cost_usd`?"), "{reason}");
    let done = Frame::new("RESULT", Some("done".to_owned()));
    harvest.frame(&crate::seal::sign(done, "secret", "s", 2));
    assert_eq!(finished(harvest).usage.tokens, 5);
}

#[test]
fn b_19_a_printed_result_that_says_nothing_is_no_answer() {
    let mut harvest = harvest();
    frame(&mut harvest, "RESULT", "{}");
    assert!(finished(harvest).unanswered);
}
