//! Runs that the engine carries through.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stafette_core::run::create::RunCreated;
use stafette_core::{Fields, HandoffId, Input, Offer, Run, RunId, Workflow};
use stafette_engine::{Answered, Engine, EngineError, Gate, Looked, Plugins, Settings};
use stafette_store::Store;

use crate::flaky::Flaky;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn settings(folder: &Path) -> Settings {
    Settings {
        project: folder.to_owned(),
        state: folder.join(".state"),
        scratch: folder.to_owned(),
        program: "unused".into(),
        socket: "unused".into(),
        closed: Vec::new(),
        redactor: stafette_core::redact::Redactor::new(),
        node: "test".into(),
    }
}

/// An engine on a store, with a project in a folder.
pub(crate) async fn open(store: &Flaky, folder: &Path) -> Engine {
    opened(Arc::new(store.clone()), settings(folder)).await
}

/// An engine whose runs of before continue.
pub(crate) async fn opened(store: Arc<dyn Store>, settings: Settings) -> Engine {
    let engine = Engine::open(store, settings, Plugins::default()).await.expect("opens");
    engine.release();
    engine
}

pub(crate) fn workflow(command: &str) -> Workflow {
    let text = format!(
        r#"
        workflow = {{ name = "one", entry = "a", trust_bare_frames = true }}
        [agents.a]
        runner = "exec"
        result = "exit"
        command = ["sh", "-c", '{command}']
        "#
    );
    stafette_workflow::parse(&text).expect("a workflow")
}

pub(crate) async fn start(engine: &Engine, workflow: Workflow) -> Result<RunId, EngineError> {
    engine.start(RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), "x", "test")).await
}

pub(crate) async fn end(engine: &Engine, run: RunId) -> String {
    let settled = tokio::time::timeout(PATIENCE, engine.settled(run)).await;
    settled.expect("in time").expect("a run").status
}

#[tokio::test]
async fn b_01_what_an_agent_said_is_kept_until_the_store_takes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let command = "cat >/dev/null; while [ ! -e full ]; do sleep 0.01; done";
    let run = start(&engine, workflow(command)).await.expect("a run");
    // The disk fills up while the agent works; then it ends its turn.
    store.refuse.store(3, Ordering::SeqCst);
    std::fs::write(folder.path().join("full"), "").expect("written");
    assert_eq!(end(&engine, run).await, "succeeded");
    assert_eq!(store.refuse.load(Ordering::SeqCst), 0, "it was refused three times");
    let events = engine.log().events(run, 0).await.expect("events");
    let finished = events.iter().filter(|stored| stored.entry.name == "turn_finished").count();
    assert_eq!(finished, 1);
}

#[tokio::test]
async fn whoever_asks_hears_that_the_store_is_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    store.refuse.store(1, Ordering::SeqCst);
    assert!(matches!(start(&engine, workflow("true")).await, Err(EngineError::Store { .. })));
    let run = start(&engine, workflow("cat >/dev/null; sleep 600")).await.expect("a run");
    store.refuse.store(1, Ordering::SeqCst);
    let cancel = || Input::Cancel { by: "test".into(), why: String::new() };
    assert!(matches!(engine.send(run, cancel()).await, Err(EngineError::Store { .. })));
    engine.send(run, cancel()).await.expect("there is room again");
    assert_eq!(end(&engine, run).await, "cancelled");
    assert!(matches!(engine.send(run, cancel()).await, Err(EngineError::Over { .. })));
}

#[tokio::test]
async fn b_01_an_engine_goes_on_with_what_another_one_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let first = open(&store, folder.path()).await;
    let command = "cat >/dev/null; while [ ! -e go ]; do sleep 0.01; done";
    let run = start(&first, workflow(command)).await.expect("a run");
    first.stop().await;
    // The next one finds the store full at first: the run is not left alone for that.
    store.refuse.store(2, Ordering::SeqCst);
    std::fs::write(folder.path().join("go"), "").expect("written");
    let second = open(&store, folder.path()).await;
    assert_eq!(end(&second, run).await, "succeeded");
    assert_eq!(store.unfinished().await.expect("readable"), []);
}

/// A gate that trusts no workflow before it is told to.
#[derive(Debug, Default)]
struct Doubting {
    trusts: AtomicBool,
}

impl Gate for Doubting {
    fn trusts(&self, _: &Workflow) -> Result<(), String> {
        self.trusts.load(Ordering::SeqCst).then_some(()).ok_or("nobody has allowed it".into())
    }

    fn begins(&self, _: &Workflow) -> Result<(), String> {
        Ok(())
    }

    fn minds(&self, _: &Run) -> bool {
        false
    }

    fn offer<'a>(&'a self, _: &'a Run, _: Option<HandoffId>, offer: Offer) -> Looked<'a, Offer> {
        Box::pin(async { offer })
    }

    fn answer<'a>(&'a self, _: &'a Run, _: Answered<'a>) -> Looked<'a, Result<Fields, String>> {
        Box::pin(async { Ok(Fields::new()) })
    }
}

#[tokio::test]
async fn b_20_a_run_whose_workflow_is_not_trusted_is_not_started_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let first = open(&store, folder.path()).await;
    let run = start(&first, workflow("cat >/dev/null; touch ran; sleep 600")).await.expect("a run");
    let ran = folder.path().join("ran");
    let begun = async {
        while !ran.exists() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(PATIENCE, begun).await.expect("it runs");
    first.stop().await;
    std::fs::remove_file(&ran).expect("it was there");

    let gate = Arc::new(Doubting::default());
    let plugins = Plugins { gate: Some(gate.clone()), ..Plugins::default() };
    let second = Engine::open(Arc::new(store.clone()), settings(folder.path()), plugins).await;
    let second = second.expect("opens");
    second.release();
    let why = async {
        loop {
            if let Some(why) = second.view(run).await.expect("a run").1 {
                return why;
            }
            tokio::task::yield_now().await;
        }
    };
    let why = tokio::time::timeout(PATIENCE, why).await.expect("it says why");
    assert_eq!((why.as_str(), second.stopped().count()), ("stopped: nobody has allowed it", 1));
    let refused = start(&second, workflow("true")).await;
    assert!(matches!(refused, Err(EngineError::Objected { .. })), "{refused:?}");
    assert!(!ran.exists(), "nothing was started");

    // It is asked again whenever runs are to continue.
    gate.trusts.store(true, Ordering::SeqCst);
    second.release();
    let again = async {
        while !ran.exists() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("it runs again");
    assert_eq!((second.stopped().count(), second.view(run).await.expect("a run").1), (0, None));
    second.stop().await;
}

#[tokio::test]
async fn a_feed_misses_nothing_and_repeats_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let mut feed = engine.feed(0);
    let run = start(&engine, workflow("cat >/dev/null")).await.expect("a run");
    let mut seen = Vec::new();
    while seen.last() != Some(&"run_finished".to_owned()) {
        let page = tokio::time::timeout(PATIENCE, feed.next()).await.expect("in time");
        let page = page.expect("readable").expect("an engine");
        seen.extend(page.into_iter().map(|stored| stored.entry.name));
    }
    let all = engine.log().events(run, 0).await.expect("events");
    assert_eq!(seen, all.into_iter().map(|stored| stored.entry.name).collect::<Vec<_>>());
    let why = engine.explain().why(run, Some(HandoffId(1))).await.expect("an explanation");
    assert_eq!(why.legs.len(), 1);
    let missing = engine.explain().why(run, Some(HandoffId(9))).await;
    assert!(matches!(missing, Err(EngineError::NoHandoff { .. })));
}

#[tokio::test]
async fn whoever_has_read_an_event_finds_the_run_as_it_is_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let run = start(&engine, crate::outside::workflow()).await.expect("a run");
    // It is cancelled, and everybody can read that, but the engine does not know it yet.
    let mute = store.mute.lock().await;
    let cancel = Input::Cancel { by: "test".into(), why: String::new() };
    let asked = tokio::spawn({
        let engine = engine.clone();
        async move { engine.send(run, cancel).await }
    });
    let read = tokio::time::timeout(PATIENCE, async {
        // Nobody is told to look, so it looks again and again.
        let last = async || engine.log().events(run, 0).await.expect("readable").pop();
        while last().await.expect("an event").entry.name != "run_finished" {
            tokio::task::yield_now().await;
        }
    });
    read.await.expect("in time");
    assert_eq!(engine.view(run).await.expect("a run").0.status, "cancelled");
    assert!(engine.state(run).await.expect("a run").status().is_final());
    drop(mute);
    asked.await.expect("no panic").expect("taken");
}

#[tokio::test]
async fn b_02_an_engine_stops_even_when_the_store_takes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let command = "cat >/dev/null; while [ ! -e full ]; do sleep 0.01; done";
    let run = start(&engine, workflow(command)).await.expect("a run");
    store.refuse.store(u32::MAX, Ordering::SeqCst);
    std::fs::write(folder.path().join("full"), "").expect("written");
    let refused = async {
        while engine.view(run).await.is_ok_and(|(_, trouble)| trouble.is_none()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("the store refuses");
    tokio::time::timeout(PATIENCE, engine.stop()).await.expect("it stops");
    assert_eq!(store.unfinished().await.expect("readable"), [run]);
}

#[tokio::test]
async fn b_02_a_run_that_is_cancelled_while_its_agent_ends_lets_the_engine_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let command = "cat >/dev/null; while [ ! -e go ]; do sleep 0.01; done; touch done";
    let run = start(&engine, workflow(command)).await.expect("a run");
    let mute = store.mute.lock().await;
    let cancel = Input::Cancel { by: "test".into(), why: String::new() };
    let asked = tokio::spawn({
        let engine = engine.clone();
        async move { engine.send(run, cancel).await }
    });
    let is_over = async || {
        let events = engine.log().events(run, 0).await.expect("readable");
        events.last().is_some_and(|stored| stored.entry.name == "run_finished")
    };
    let ended = async {
        while !is_over().await {
            tokio::task::yield_now().await;
        }
        std::fs::write(folder.path().join("go"), "").expect("written");
        while !folder.path().join("done").exists() {
            tokio::task::yield_now().await;
        }
        // The result is on its way to a run that takes nothing any more.
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("the agent ends");
    drop(mute);
    asked.await.expect("no panic").expect("taken");
    tokio::time::timeout(PATIENCE, engine.stop()).await.expect("it stops");
}

#[tokio::test]
async fn b_01_a_living_run_whose_past_is_damaged_is_paused_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let command = "cat >/dev/null; while [ ! -e go ]; do sleep 0.01; done";
    let run = start(&engine, workflow(command)).await.expect("a run");
    let other = start(&engine, workflow(command)).await.expect("a run");
    let damage = stafette_store::Damage::Event { run, seq: 1, position: Some(1) };
    for _ in 0..2 {
        engine.stopped().stop_damaged(run, damage).await;
    }
    assert_eq!(engine.stopped().damaged(), 1);
    let (view, stopped) = engine.view(run).await.expect("a run");
    assert_eq!(stopped, Some(format!("stopped: event 1 of run {run} is damaged")));
    assert_eq!(view.status, "paused");
    let events = engine.log().events(run, 0).await.expect("events");
    let told = events.iter().filter(|it| it.entry.body.contains("STORE_DAMAGED")).count();
    assert_eq!(told, 1, "it is told once");
    // A person decides that it goes on.
    engine.send(run, Input::Unpause { by: "me".into() }).await.expect("it is paused");
    std::fs::write(folder.path().join("go"), "").expect("written");
    assert_eq!(end(&engine, other).await, "succeeded");
    assert_eq!(end(&engine, run).await, "succeeded");
}
