//! Agents that come by themselves.

use std::time::Duration;

use stafette_core::{
    HandoffId, Kind, Millis, Offer, Party, Reason, Response, TurnResult, Usage, Workflow,
};
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
    assert!(matches!(late, Err(EngineError::Late { .. })));

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
