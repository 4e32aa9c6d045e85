use stafette_core::wire::frame::{Found, Scanner, Word};
use stafette_core::workflow::{Agent, PromptVia, Runner};
use stafette_core::{Kind, Offer, Reason, Time, TurnOrder, Usage};

use super::*;
use crate::Permissions;

/// A turn of a reviewer.
pub(crate) fn job() -> Job {
    let mut offer =
        Offer::new("builder".into(), "reviewer".into(), Kind::Transfer, Reason::ReviewRequest);
    offer.summary = "Login works, tests pass.".into();
    let mut answer = Response::new("research".into(), Outcome::Resolved);
    answer.outputs.insert("market_size".into(), 3.into());
    let order = TurnOrder {
        key: "018f0000-0000-7000-8000-000000000000/h3/1.2".parse().unwrap(),
        agent: "reviewer".parse().unwrap(),
        request: "Add JWT login".into(),
        offer,
        cause: None,
        inputs: Fields::from_iter([("commit".to_owned(), "abc".into())]),
        answers: vec![answer, Response::failed("Circular handoff detected")],
        permits: Vec::new(),
        routes: vec!["fixer".into(), "orchestrator".into(), "human".into()],
        round: 2,
        finish_by: Time(0),
        deliveries: 1,
    };
    let agent = Agent {
        role: String::new(),
        prompt: "You review code.".into(),
        runner: Runner::Exec,
        profile: None,
        command: vec!["cat".into()],
        script: None,
        url: None,
        bearer: None,
        prompt_via: PromptVia::Stdin,
        result: ResultFormat::Frames,
        env: Vec::new(),
        needs: Vec::new(),
        estimate: Usage::default(),
    };
    Job {
        order,
        agent,
        profile: None,
        folder: ".".into(),
        scratch: ".".into(),
        frame_word: "ODEI".into(),
        program: "stafette".into(),
        given: Vec::new(),
        permissions: Permissions::default(),
    }
}

#[test]
fn s5_06_a_prompt_says_who_what_why_with_what_and_how_to_end() {
    let text = text(&job());
    for part in [
        "You review code.\n",
        "Add JWT login",
        "Handed over by builder (review_request).",
        "Login works, tests pass.",
        "\"commit\": \"abc\"",
        "- research: resolved",
        "\"market_size\": 3",
        "- orchestrator: failed. Circular handoff detected",
        "You may hand to: fixer, orchestrator, human.",
        "round 2",
        "<<<ODEI:TYPE:PAYLOAD>>>",
        "018f0000-0000-7000-8000-000000000000/h3/1.2",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}

#[test]
fn b_07_an_echoed_prompt_moves_nothing() {
    let signals = ["READY", "HANDOFF", "ERROR", "RESULT", "REPORT"];
    let mut frames = Vec::new();
    Scanner::new(Word::default()).scan(text(&job()).as_bytes(), |found| match found {
        Found::Frame { frame, .. } => frames.push(frame),
        Found::Malformed { .. } => {}
    });
    assert!(!frames.iter().any(|frame| signals.contains(&frame.kind.as_str())), "{frames:?}");
}
