use serde_json::{Value, json};

use super::Measured;
use crate::run::story::{Story, done, h};
use crate::team::Said;
use crate::wire::phase::PhaseResponse;
use crate::{FailureKind, Fields, HandoffId, Input, Party, Status, TurnResult, Usage};

const THREE: &str = r#"
    workflow = { name = "phases", entry = "scout" }
    agents = { scout.runner = "scripted", author.runner = "scripted", checker.runner = "scripted" }
    phases = [
        { phase = "research", agents = ["scout"], instructions = "Look for {request}" },
        { phase = "write", agents = ["author"], constraints = ["TDD"] },
        { phase = "validate", agents = ["checker"], back_to = "write", rounds = 2 },
    ]
    limits = { cooldown = 0, handoffs_per_item = 20, handoffs_per_run = 20 }
    retries = { max = 1 }
"#;

const SIDE_BY_SIDE: &str = r#"
    workflow = { name = "checks", entry = "types" }
    agents = { types.runner = "scripted", lint.runner = "scripted", tests.runner = "scripted" }
    phases = [{ phase = "parallel", agents = ["types", "lint", "tests"], rule = "RULE" }]
    limits = { cooldown = 0, handoffs_per_item = 20 }
    retries = { max = 1 }
"#;

fn findings(phase: &str, passed: bool) -> Value {
    match phase {
        "research" => json!({
            "existing_implementations": [], "conflicts": [], "patterns_found": [],
            "recommendations": [],
        }),
        "write" => json!({
            "files_created": [], "files_modified": [], "tests_written": [],
            "implementation_notes": [],
        }),
        _ => json!({
            "checks": {}, "overall_passed": passed, "warnings": [],
            "blocking_issues": if passed { vec![] } else { vec!["a test fails"] },
        }),
    }
}

/// Returns the phase that a handoff asks for, and its task id.
fn asked(story: &Story, id: HandoffId) -> (String, String) {
    let foreign = story.run.handoff(id).and_then(|h| h.offer.foreign.clone()).expect("a phase");
    (foreign.fields["phase"].as_str().expect("a phase").to_owned(), foreign.id)
}

pub(crate) fn answer(story: &Story, id: HandoffId, passed: bool, summary: &str) -> Value {
    let (phase, task_id) = asked(story, id);
    json!({
        "task_id": task_id, "phase": phase, "status": "complete", "decision": "PROCEED",
        "findings": findings(&phase, passed), "context_summary": summary, "tokens_used": 800,
    })
}

/// The agent of `id` answers with `document`, whose summary has `tokens` tokens.
pub(crate) fn gives(story: &mut Story, id: HandoffId, document: &Value, tokens: u64) {
    let response: PhaseResponse = serde_json::from_value(document.clone()).expect("a response");
    let response = response.into_response(Party::from("?"));
    let usage = response.usage;
    story.accept(id);
    let turn = story.key(id);
    let measured = Measured { request: Some(300), response: Some(600), summary: Some(tokens) };
    let said = Said { measured: Some(measured), ..Said::default() };
    let result = Box::new(TurnResult { response, usage, said, ..done() });
    story.input(Input::Finish { turn, result });
}

pub(crate) fn proceeds(story: &mut Story, id: u32, summary: &str) {
    let document = answer(story, h(id), true, summary);
    gives(story, h(id), &document, 30);
}

#[test]
fn s3_04_each_phase_gets_the_summary_of_the_one_before_and_nothing_else() {
    let mut story = Story::new(THREE);
    assert_eq!(story.run.outbox().count(), 1);
    let order = story.run.outbox().next().expect("the scout's turn");
    assert_eq!(order.offer.instructions.as_deref(), Some("Look for Add user auth"));
    proceeds(&mut story, 1, "sessions live in auth.ts");
    let order = story.run.outbox().next().expect("the author's turn");
    assert_eq!((order.agent.as_str(), order.cause), ("author", Some(h(1))));
    assert_eq!(order.offer.summary, "sessions live in auth.ts");
    assert_eq!(json!(order.inputs), json!({ "constraints": ["TDD"] }));
    proceeds(&mut story, 2, "wrote the router");
    proceeds(&mut story, 3, "all green");
    assert_eq!(story.status(), Status::Succeeded);
    insta::assert_snapshot!(story.transcript(), @r"
    run created: Add user auth
    h1 orchestrator → scout (phase)
    research phase begins, [h1]
    h1 turn 1.1 ordered
    h1 acknowledged
    h1 turn ended
    h1 Resolved by scout
    Proceed: research phase: scout has done its part
    h2 orchestrator → author (phase)
    write phase begins, [h2]
    h2 turn 1.1 ordered
    h2 acknowledged
    h2 turn ended
    h2 Resolved by author
    Proceed: write phase: author has done its part
    h3 orchestrator → checker (phase)
    validate phase begins, [h3]
    h3 turn 1.1 ordered
    h3 acknowledged
    h3 turn ended
    h3 Resolved by checker
    Proceed: validate phase: checker has done its part
    run succeeded: nothing is left to do
    ");
}

#[test]
fn s3_04_one_agent_can_do_all_phases_as_often_as_their_rounds_allow() {
    let alone = THREE.replace("\"author\"", "\"scout\"").replace("\"checker\"", "\"scout\"");
    let mut story = Story::new(&alone);
    proceeds(&mut story, 1, "found");
    proceeds(&mut story, 2, "written");
    let document = answer(&story, h(3), false, "not yet");
    gives(&mut story, h(3), &document, 30);
    proceeds(&mut story, 4, "written again");
    proceeds(&mut story, 5, "all green");
    assert_eq!(story.status(), Status::Succeeded);
}

#[test]
fn s3_06_tokens_are_recorded_by_phase_and_what_summaries_save_is_known() {
    let mut story = Story::new(THREE);
    for id in 1..=3 {
        proceeds(&mut story, id, "short");
    }
    let phases = story.run.team.phases.clone().expect("phases");
    let research = &phases.hops[0];
    assert_eq!(research.tokens.request + research.tokens.response, 900);
    assert_eq!(research.tokens.reported, 800);
    // Two hops of 800 tokens each, and the last phase hands nothing on.
    assert_eq!((phases.saving().raw, phases.saving().handed_on), (1600, 60));
}

#[test]
fn s3_04_five_hundred_tokens_are_taken_and_one_more_is_given_back_with_the_count() {
    let mut story = Story::new(THREE);
    let document = answer(&story, h(1), true, &"word ".repeat(501));
    gives(&mut story, h(1), &document, 501);
    let order = story.run.outbox().next().expect("the scout has another turn");
    assert_eq!((order.agent.as_str(), order.key.turn), ("scout", 2));
    assert_eq!(
        order.answers[0].failure.as_deref(),
        Some("/context_summary: it has 501 tokens, and 500 are allowed")
    );
    gives(&mut story, h(1), &document, 500);
    assert_eq!(
        story.run.outbox().next().map(|order| order.agent.to_string()).as_deref(),
        Some("author")
    );
}

#[test]
fn s3_04_what_nobody_could_count_is_not_taken() {
    let mut story = Story::new(THREE);
    let document = answer(&story, h(1), true, &"x".repeat(501));
    let response: PhaseResponse = serde_json::from_value(document).expect("a response");
    let response = response.into_response(Party::from("?"));
    story.ends(h(1), TurnResult { response, ..done() });
    assert_eq!(story.key(h(1)).turn, 2);
    assert_eq!(story.run.team.phases.as_ref().map(|phases| phases.place), Some(0));
}

#[test]
fn s3_01_the_task_and_the_phase_are_echoed_or_the_answer_comes_back() {
    for (field, wrong) in [("task_id", "other-1"), ("phase", "validate")] {
        let mut story = Story::new(THREE);
        let mut document = answer(&story, h(1), true, "x");
        document[field] = wrong.into();
        document["findings"] = findings(document["phase"].as_str().unwrap_or_default(), true);
        gives(&mut story, h(1), &document, 1);
        let order = story.run.outbox().next().expect("another turn");
        let said = order.answers[0].failure.clone().unwrap_or_default();
        assert!(said.starts_with(&format!("/{field}: `{wrong}`")), "{said}");
    }
    let mut story = Story::new(THREE);
    story.done(h(1)).done(h(1)).done(h(1));
    assert_eq!(story.status(), Status::WaitingForHuman, "one who never answers ends with a person");
}

#[test]
fn s3_02_clarify_asks_the_user_and_goes_on_with_the_answer() {
    let mut story = Story::new(THREE);
    let mut document = answer(&story, h(1), true, "Two ways are open");
    document["decision"] = "CLARIFY".into();
    document["issues"] = json!(["JWT or sessions?"]);
    document["options"] = json!(["JWT", "sessions"]);
    gives(&mut story, h(1), &document, 5);
    let question = story.question(h(2));
    assert_eq!((question.details.as_str(), question.options.len()), ("JWT or sessions?", 2));
    assert_eq!(story.status(), Status::WaitingForHuman);
    story.person_says(h(2), "JWT");
    let order = story.run.outbox().next().expect("the scout goes on");
    assert_eq!((order.agent.as_str(), &order.inputs["answer"]), ("scout", &json!("JWT")));
    proceeds(&mut story, 1, "JWT it is");
    let order = story.run.outbox().next().expect("the author's turn");
    assert_eq!((order.agent.as_str(), order.inputs.get("answer")), ("author", None));
}

#[test]
fn s3_02_stop_halts_and_says_why() {
    let mut story = Story::new(THREE);
    let mut document = answer(&story, h(1), true, "It exists already");
    document["decision"] = "STOP".into();
    gives(&mut story, h(1), &document, 5);
    assert_eq!(story.status(), Status::Failed);
    assert!(
        story
            .transcript()
            .ends_with("run failed: research phase: scout says STOP: It exists already\n"),
        "{}",
        story.transcript()
    );
}

#[test]
fn s3_03_a_phase_that_does_not_pass_sends_the_work_back_until_its_rounds_are_over() {
    let mut story = Story::new(THREE);
    proceeds(&mut story, 1, "a");
    proceeds(&mut story, 2, "b");
    let document = answer(&story, h(3), false, "a test fails");
    gives(&mut story, h(3), &document, 4);
    let order = story.run.outbox().next().expect("the author's second go");
    assert_eq!((order.agent.as_str(), order.offer.summary.as_str()), ("author", "a test fails"));
    proceeds(&mut story, 4, "mended");
    let document = answer(&story, h(5), false, "still");
    gives(&mut story, h(5), &document, 4);
    assert_eq!(story.status(), Status::Failed);
}

fn side_by_side(rule: &str, passed: [bool; 3]) -> Story {
    let mut story = Story::new(&SIDE_BY_SIDE.replace("RULE", rule));
    assert_eq!(story.run.outbox().count(), 3, "all at once");
    for (number, passed) in (1..).zip(passed) {
        let document = answer(&story, h(number), passed, "said");
        gives(&mut story, h(number), &document, 3);
    }
    story
}

#[test]
fn s3_05_several_work_at_once_and_the_rule_decides() {
    for (rule, passed, good) in [
        ("all", [true, true, true], true),
        ("all", [true, false, true], false),
        ("any", [false, false, true], true),
        ("any", [false, false, false], false),
        ("majority", [true, false, true], true),
        ("majority", [true, false, false], false),
        ("2 of 3", [false, true, true], true),
        ("2 of 3", [false, true, false], false),
    ] {
        let story = side_by_side(rule, passed);
        let expected = if good { Status::Succeeded } else { Status::Failed };
        assert_eq!(story.status(), expected, "{rule} {passed:?}");
        assert!(story.transcript().contains(&format!("and the rule is {rule}")));
    }
}

#[test]
fn s3_05_a_part_that_breaks_is_seen_and_the_others_go_on() {
    let mut story = Story::new(&SIDE_BY_SIDE.replace("RULE", "2 of 3"));
    story.accept(h(2)).breaks(h(2), FailureKind::Recoverable);
    assert_eq!(story.run.outbox().count(), 2);
    proceeds(&mut story, 1, "types hold");
    proceeds(&mut story, 3, "tests pass");
    assert_eq!(story.status(), Status::Succeeded);
    let findings = story.run.team.phases.and_then(|phases| phases.findings).unwrap_or_default();
    assert_eq!(findings, "types passed: types hold\nlint failed: \ntests passed: tests pass");
}

#[test]
fn s3_05_summaries_of_parts_fit_together_into_what_one_may_say() {
    let mut story = Story::new(&SIDE_BY_SIDE.replace("RULE", "all"));
    let document = answer(&story, h(1), true, &"word ".repeat(160));
    gives(&mut story, h(1), &document, 160);
    let order = story.run.outbox().find(|order| order.agent.as_str() == "types").expect("a turn");
    assert_eq!(
        order.answers[0].failure.as_deref(),
        Some("/context_summary: it has 160 tokens, and 151 are allowed")
    );
}

#[test]
fn s3_03_a_wrong_shape_is_told_to_the_agent_that_gave_it() {
    let twice = THREE.replace("max = 1", "max = 2, backoff = 0");
    let mut story = Story::new(&twice);
    story.accept(h(1));
    let wrong =
        "what it handed in is not valid: /findings/conflicts: \"none\" is not of type \"array\"";
    story.breaks_with(h(1), crate::Failure::new(FailureKind::Invalid, wrong));
    let order = story.run.outbox().next().expect("another attempt");
    assert_eq!((order.key.attempt, order.answers[0].failure.as_deref()), (2, Some(wrong)));
}

#[test]
fn a_phase_is_kept_by_whoever_has_it() {
    let routed =
        THREE.replace("limits =", "routes = [{ from = \"scout\", to = \"checker\" }]\nlimits =");
    let mut story = Story::new(&routed);
    story.hands(h(1), vec![crate::run::story::pass("checker")]);
    assert_eq!((story.state(h(1)), story.state(h(2))), ("blocked", "pending"));
    story.done(h(2));
    proceeds(&mut story, 1, "asked around");
    let order = story.run.outbox().next().expect("the author's turn");
    assert_eq!(order.agent.as_str(), "author");
}

#[test]
fn what_the_run_is_given_is_the_context_of_every_phase() {
    let given: Fields = serde_json::from_value(json!({
        "task_id": "auth-001", "feature": "jwt", "relevant_files": ["src/"], "ticket": 7,
    }))
    .expect("an object");
    let mut story = Story::given(THREE, given);
    proceeds(&mut story, 1, "a");
    for id in [1, 2] {
        let offer = story.run.handoff(h(id)).map(|handoff| handoff.offer.clone()).expect("a phase");
        assert_eq!(offer.item.as_deref(), Some("jwt"));
        assert_eq!(
            (&offer.outputs["relevant_files"], &offer.outputs["ticket"]),
            (&json!(["src/"]), &json!(7))
        );
        assert_eq!(offer.foreign.map(|foreign| foreign.id).as_deref(), Some("auth-001"));
    }
    assert_eq!(story.run.purse.spent, Usage { tokens: 800, ..Usage::default() });
}
