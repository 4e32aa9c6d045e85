//! What only scripts do.

use std::fs;
use std::os::unix::fs::symlink;

use stafette_agents::Signal;
use stafette_core::FailureKind;
use stafette_core::handoff::Receipt;
use stafette_core::workflow::Runner;

use crate::world::{World, failed, finished, run};

#[tokio::test]
async fn a_script_that_cannot_be_played_is_fatal_and_says_where() {
    let world = World::new();
    let cases = [
        ("[[turn]]\nsteps = [{ shout = \"x\" }]", "line 3, column 12: unknown field `shout`"),
        ("[[turn]]\nwhen = { round = 7 }", "has no turn for round 1, attempt 1, turn 1"),
    ];
    for (script, expected) in cases {
        let failure = failed(world.job_of(Runner::Scripted, script)).await;
        assert_eq!(failure.kind, FailureKind::Fatal);
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
    let mut job = world.job(Runner::Scripted, "");
    job.agent.script = Some("nowhere.toml".into());
    let failure = failed(job).await;
    assert_eq!(failure.kind, FailureKind::Fatal);
    assert!(failure.message.contains("nowhere.toml"), "{}", failure.message);
}

#[tokio::test]
async fn s4_07_a_script_writes_only_in_its_folder() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), world.work().join("out")).unwrap();
    let job = world.job(Runner::Scripted, r#"{ write = "out/a", text = "1" }"#);
    let failure = failed(job).await;
    assert!(failure.message.contains("out leads out of"), "{}", failure.message);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_command_that_fails_breaks_the_turn_unless_it_may() {
    let world = World::new();
    let failure = failed(world.job(Runner::Scripted, r#"{ run = "exit 3" }"#)).await;
    assert_eq!(failure.kind, FailureKind::Recoverable);
    assert!(failure.message.starts_with("`exit 3` failed"), "{}", failure.message);
    let job =
        world.job(Runner::Scripted, r#"{ run = "echo $STAFETTE_REQUEST; exit 3", ok = false }"#);
    assert_eq!(finished(job).await.response.summary, "Add user auth");
}

#[tokio::test]
async fn b_06_a_turn_is_ingested_when_the_agent_says_so() {
    let world = World::new();
    let mut job = world.job(Runner::Scripted, "");
    // A player that reads its order and says nothing.
    let silent = world.work().join("silent.sh");
    stafette_testkit::program::write(&silent, "#!/bin/sh\nread -r order\nexit 4\n").unwrap();
    job.program = silent;
    let heard = run(job).await;
    assert_eq!(heard[0], Signal::Receipt(Receipt::Delivered));
    assert!(matches!(&heard[1..], [Signal::Session { .. }, Signal::Failed { .. }]), "{heard:?}");
}
