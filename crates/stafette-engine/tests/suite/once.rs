//! A run that is asked for twice begins once.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stafette_core::run::create::RunCreated;
use stafette_engine::{Engine, EngineError};

use crate::flaky::Flaky;
use crate::outside::workflow;
use crate::runs::open;

#[tokio::test]
async fn b_01_the_same_key_is_the_same_run_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let begin = async |engine: &Engine, key: &str, request: &str| {
        let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow()), request, "ada");
        engine.start_keyed(key, created).await
    };
    let (run, repeated) = begin(&engine, "k", "write").await.expect("a run");
    assert!(!repeated);
    // Ids tell the time by the millisecond.
    let then = run.0.get_timestamp().expect("a time").to_unix();
    while SystemTime::now().duration_since(UNIX_EPOCH).expect("a time")
        < Duration::new(then.0, then.1) + Duration::from_millis(1)
    {
        tokio::task::yield_now().await;
    }
    let two = tokio::join!(begin(&engine, "j", "write"), begin(&engine, "j", "write"));
    let (one, other) = (two.0.expect("a run"), two.1.expect("a run"));
    assert_eq!(one.0, other.0, "two at once are one");
    assert_ne!(one.0, run, "another key is another run");
    engine.stop().await;
    let engine = open(&store, folder.path()).await;
    assert_eq!(begin(&engine, "k", "write").await.expect("the run"), (run, true));
    let reused = begin(&engine, "k", "read").await;
    assert!(matches!(reused, Err(EngineError::OtherRequest { run: first }) if first == run));
    assert_eq!(engine.runs(9).await.expect("runs").len(), 2);
    assert!(run < one.0, "runs still sort by the time they began");
    engine.ready().await.expect("it can work");
    engine.stop().await;
    assert!(matches!(engine.ready().await, Err(EngineError::Stopping)));
}
