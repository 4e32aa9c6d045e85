//! Agents that come by themselves.

use std::time::Duration;

use stafette_core::{
    Fields, HandoffId, Kind, Millis, Offer, Party, Reason, Response, TurnKey, TurnResult, Usage,
    Workflow,
};
use stafette_engine::Engine;
use stafette_engine::{EngineError, Wanted};

use crate::flaky::Flaky;
use crate::runs::{PATIENCE, end, open, start};

pub(crate) fn workflow() -> Workflow {
    let text = r#"
        workflow = { name = "two", entry = "a" }
        [agents.a]
        runner = "external"
        [agents.b]
        runner = "external"
        [[routes]]
        from = "a"
        to = "b"
        "#;
    stafette_workflow::parse(text).expect("a workflow")
}

pub(crate) fn result(text: &str) -> TurnResult {
    TurnResult::new(Response {
        summary: text.into(),
        ..Response::new(Party::from("a"), stafette_core::Outcome::Resolved)
    })
}

#[tokio::test]
async fn b_11_two_agents_come_by_themselves_and_pass_the_work_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let of = |agent: &str| Wanted { run: None, agent: Some(agent.parse().expect("a name")) };
    // B waits before there is anything; A's result is what wakes it.
    let waiting = tokio::spawn({
        let (engine, wanted) = (engine.clone(), of("b"));
        async move { engine.external().offered(&wanted, PATIENCE).await }
    });
    let run = start(&engine, workflow()).await.expect("a run");
    let turns = engine.external();
    let offered = turns.offered(&of("a"), PATIENCE).await;
    assert_eq!(offered.len(), 1);
    let order = turns.accept(run, HandoffId(1), "alice", None).await.expect("it is free");
    assert_eq!(order.key, offered[0].key);
    turns.accept(run, HandoffId(1), "alice", None).await.expect("it is hers");
    let second = turns.accept(run, HandoffId(1), "bob", None).await;
    assert!(matches!(second, Err(EngineError::Taken { by, .. }) if by == "alice"));
    assert_eq!(turns.offered(&of("a"), Duration::ZERO).await, [], "it is taken");
    let pass =
        |to: &str| Offer::new(Party::from("a"), to.into(), Kind::Transfer, Reason::TaskHandoff);
    let refused = turns.propose(order.key, pass("c")).await;
    assert!(matches!(refused, Err(EngineError::Refused { .. })));
    turns.propose(order.key, pass("b")).await.expect("there is a route");
    turns.report(order.key, Some("nearly".into()), Usage::default()).await.expect("it lives");
    turns.complete(order.key, result("planned")).await.expect("it is hers");
    let late = turns.complete(order.key, result("again")).await;
    assert!(matches!(late, Err(EngineError::EndedBefore { .. })));

    let next = waiting.await.expect("no panic");
    let lease = Some(Millis::minutes(5));
    let handoff = next[0].key.handoff;
    let order = turns.accept(run, handoff, "bob", lease).await.expect("it is free");
    // The daemon goes and another one comes: the turn stays with bob.
    engine.stop().await;
    let engine = open(&store, folder.path()).await;
    engine.external().complete(order.key, result("built")).await.expect("it is still his");
    assert_eq!(end(&engine, run).await, "succeeded");
}

#[tokio::test]
async fn b_12_a_fork_goes_on_from_a_moment_of_the_past() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let run = start(&engine, workflow()).await.expect("a run");
    let turns = engine.external();
    let order = turns.accept(run, HandoffId(1), "alice", None).await.expect("it is free");
    let moment = engine.view(run).await.expect("a run").0.seq;
    turns.complete(order.key, result("done")).await.expect("it is hers");
    assert_eq!(end(&engine, run).await, "succeeded");
    assert!(matches!(engine.fork(run, None, "me".into()).await, Err(EngineError::Over { .. })));

    let fork = engine.fork(run, Some(moment), "me".into()).await.expect("it was open then");
    assert_eq!(engine.log().handoffs(fork).await.expect("rows").len(), 1);
    let order = turns.accept(fork, HandoffId(1), "alice", None).await.expect("still hers");
    assert_eq!(order.key.run, fork);
    turns.complete(order.key, result("otherwise")).await.expect("it is hers");
    assert_eq!(end(&engine, fork).await, "succeeded");
}

fn pass(to: &str) -> Offer {
    Offer::new(Party::from("a"), to.into(), Kind::Transfer, Reason::TaskHandoff)
}

/// How many results were kept that came too late.
async fn kept(engine: &Engine, turn: TurnKey) -> usize {
    let events = engine.log().events(turn.run, 0).await.expect("events");
    events.iter().filter(|stored| stored.entry.name == "late_result_kept").count()
}

#[tokio::test]
async fn b_01_the_same_result_again_hears_what_the_first_one_heard() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let run = start(&engine, workflow()).await.expect("a run");
    let turns = engine.external();
    let first = turns.accept(run, HandoffId(1), "alice", None).await.expect("it is free").key;
    turns.propose(first, pass("b")).await.expect("there is a route");
    let planned = || TurnResult { offers: vec![pass("nobody")], ..result("planned") };
    let ended = turns.complete(first, planned()).await.expect("it is hers");
    assert_eq!(ended.admitted, [HandoffId(2)]);
    assert_eq!(turns.complete(first, planned()).await.expect("the same"), ended);
    let other = turns.complete(first, result("otherwise")).await.expect_err("it is another one");
    assert!(matches!(&other, EngineError::EndedBefore { .. }), "{other}");
    assert!(other.to_string().contains("handed over to b: planned"), "{other}");
    assert_eq!(kept(&engine, first).await, 1, "only what differs is kept");

    // Also when the run is over, and after a restart.
    let second = turns.accept(run, HandoffId(2), "bob", None).await.expect("it is free").key;
    let done = turns.complete(second, result("built")).await.expect("it is his");
    assert_eq!(end(&engine, run).await, "succeeded");
    assert_eq!(turns.complete(second, result("built")).await.expect("the same"), done);
    assert_eq!(turns.complete(first, planned()).await.expect("the same"), ended);
    let other = turns.complete(second, result("not built")).await.expect_err("it is another one");
    assert!(other.to_string().contains("resolved: built"), "{other}");
}

#[tokio::test]
async fn b_01_a_turn_is_rejected_once_however_often_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    start(&engine, workflow()).await.expect("a run");
    let turns = engine.external();
    let turn = turns.offered(&Wanted::default(), PATIENCE).await.remove(0).key;
    turns.reject(turn, "no key".into()).await.expect("nobody has to take it for that");
    turns.reject(turn, "no key".into()).await.expect("it is the same");
    let other = turns.reject(turn, "no time".into()).await.expect_err("it is another reason");
    assert!(other.to_string().contains("failed: no key"), "{other}");
    let other = turns.complete(turn, result("done")).await.expect_err("it was rejected");
    assert!(other.to_string().contains("failed: no key"), "{other}");
}

#[tokio::test]
async fn s5_06_nothing_is_done_in_a_turn_that_nobody_has_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let run = start(&engine, workflow()).await.expect("a run");
    let turns = engine.external();
    let turn = turns.offered(&Wanted::default(), PATIENCE).await.remove(0).key;
    let agent = "a".parse().expect("a name");
    let refused = [
        turns.turn_of(Some(run), &agent).await.map(drop),
        turns.propose(turn, pass("b")).await,
        turns.report(turn, None, Usage::default()).await,
        turns.complete(turn, result("planned")).await.map(drop),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(EngineError::NotTaken { .. })), "{refused:?}");
    }
    assert_eq!(turns.offered(&Wanted::default(), Duration::ZERO).await.len(), 1, "still free");
    turns.accept(run, HandoffId(1), "alice", None).await.expect("it is free");
    assert_eq!(turns.turn_of(Some(run), &agent).await.expect("she has it"), turn);
    turns.complete(turn, result("planned")).await.expect("it is hers");
    assert_eq!(end(&engine, run).await, "succeeded");
}

#[tokio::test]
async fn b_01_what_is_too_large_to_begin_with_is_refused_before_it_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let large = "x".repeat(stafette_core::fields::MAX + 1);
    let inputs = Fields::from_iter([("text".to_owned(), large.clone().into())]);
    let workflow = std::sync::Arc::new(workflow());
    let created = |request: &str| {
        stafette_core::run::create::RunCreated::new(
            Engine::NEW_RUN,
            workflow.clone(),
            request,
            "ann",
        )
    };
    let given = stafette_core::run::create::RunCreated { inputs, ..created("go") };
    for refused in [
        engine.start(given.clone()).await.map(drop),
        engine.start_keyed("one", given).await.map(drop),
        engine.start(created(&large)).await.map(drop),
    ] {
        let why = refused.expect_err("it is too large").to_string();
        assert!(why.contains("carries 10485") && why.contains("1048576 are allowed"), "{why}");
    }
    let deep = |levels: usize| {
        // The fields themselves are a level.
        let value = (1..levels).fold(serde_json::json!(1), |value, _| serde_json::json!([value]));
        let inputs = Fields::from_iter([("deep".to_owned(), value)]);
        stafette_core::run::create::RunCreated { inputs, ..created("go") }
    };
    let why = engine.start(deep(65)).await.expect_err("it is too deep").to_string();
    assert!(why.contains("/inputs: lists and objects are nested more than 64 deep"), "{why}");
    assert_eq!(engine.runs(9).await.expect("runs").len(), 0);
    engine.start(deep(64)).await.expect("it is as deep as may be");
    let run = engine.start(created("go")).await.expect("it is small");
    let turns = engine.external();
    let turn = turns.accept(run, HandoffId(1), "alice", None).await.expect("it is free").key;
    let outputs = Fields::from_iter([("text".to_owned(), large.into())]);
    let offers = vec![pass("b")];
    let mut answer = TurnResult { offers, ..result("planned") };
    answer.response.outputs = outputs;
    let why = turns.complete(turn, answer).await.expect_err("it is too large").to_string();
    assert!(why.contains("carries 10485") && why.contains("1048576 are allowed"), "{why}");
}
