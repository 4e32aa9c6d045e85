//! What only commands do.

use serde_json::json;
use stafette_core::handoff::Receipt;
use stafette_core::workflow::{PromptVia, ResultFormat, Runner};
use stafette_core::{FailureKind, Outcome};

use crate::world::{World, failed, finished, hears, run};
use stafette_agents::{Job, Signal};

fn shell(world: &World, script: &str) -> Job {
    let mut job = world.job(Runner::Exec, "");
    job.agent.command = ["sh", "-c", script, "sh"].map(str::to_owned).to_vec();
    job
}

#[tokio::test]
async fn b_07_a_command_that_echoes_its_prompt_moves_nothing() {
    let world = World::new();
    let result = finished(shell(&world, "cat")).await;
    assert!(result.offers.is_empty());
    assert!(result.response.summary.contains("must not be done twice"), "{result:?}");
}

#[tokio::test]
async fn s5_06_a_prompt_may_be_an_argument() {
    let world = World::new();
    let mut job =
        shell(&world, r#"echo "$2"; test "$1" = -p && echo "$2" | grep "^Add user auth""#);
    job.agent.command.push("-p".into());
    job.agent.prompt_via = PromptVia::Argument;
    assert!(finished(job).await.response.summary.ends_with("Add user auth"));
}

#[tokio::test]
async fn s5_06_a_prompt_that_nobody_reads_is_no_trouble() {
    let world = World::new();
    let mut job = shell(&world, "exec <&-; echo done");
    job.agent.prompt = "x".repeat(1024 * 1024);
    let heard = run(job).await;
    assert_eq!(heard[0], Signal::Receipt(Receipt::Delivered));
    assert!(matches!(heard.last(), Some(Signal::Finished(_))), "{heard:?}");
}

#[tokio::test]
async fn a_prompt_too_long_for_an_argument_says_what_to_do() {
    let world = World::new();
    let mut job = shell(&world, "true");
    job.agent.prompt = "x".repeat(4 * 1024 * 1024);
    job.agent.prompt_via = PromptVia::Argument;
    let failure = failed(job).await;
    assert_eq!(failure.kind, FailureKind::Fatal);
    assert!(failure.message.contains("prompt_via = \"stdin\""), "{}", failure.message);
}

#[tokio::test]
async fn s5_06_a_json_result_is_read_off_the_end_of_the_output() {
    let world = World::new();
    let script = r#"
        echo thinking
        echo '[{"status":"partial","unresolved":["tests"],"commit":"abc"},'
        echo ' {"to":"reviewer","summary":"look"}]'
    "#;
    let mut job = shell(&world, script);
    job.agent.result = ResultFormat::Json;
    let result = finished(job).await;
    assert_eq!(result.response.outcome, Outcome::Partial);
    assert_eq!(json!(result.response.outputs), json!({"commit": "abc"}));
    assert_eq!(result.offers[0].to.as_str(), "reviewer");
    assert!(!result.bare);
}

#[tokio::test]
async fn s2_01_output_without_a_json_result_is_told_so() {
    let world = World::new();
    let mut job = shell(&world, "echo '<<<ODEI:HANDOFF:reviewer>>>'");
    job.agent.result = ResultFormat::Json;
    let failure = failed(job).await;
    assert_eq!(failure.kind, FailureKind::Recoverable);
    assert!(failure.message.contains("does not end with a JSON document"));
}

#[tokio::test]
async fn s5_07_a_program_that_is_missing_inside_is_fatal_and_errors_are_told() {
    let world = World::new();
    let failure = failed(shell(&world, "no-such-program")).await;
    assert_eq!(failure.kind, FailureKind::Fatal);
    assert!(failure.message.starts_with("exit status 127: "), "{}", failure.message);
    let failure = failed(shell(&world, "echo talk; echo broken >&2; exit 2")).await;
    assert_eq!(failure.message, "exit status 2: broken");
}

#[tokio::test]
async fn b_02_children_that_hold_the_pipes_are_gone_after_the_end() {
    let world = World::new();
    let result = finished(shell(&world, "sleep 1000 & sleep 1000 >&2 & echo done")).await;
    assert_eq!(result.response.summary, "done");
    assert!(world.is_clean());
}

#[tokio::test]
async fn b_02_whoever_leaves_the_group_with_the_pipe_holds_nobody_up() {
    let world = World::new();
    // It ends with its input, so that the test leaves nothing behind.
    let heard = run(shell(&world, "setsid sh -c 'cat; sleep 4' & echo done")).await;
    assert!(matches!(heard.last(), Some(Signal::Finished(_))), "{heard:?}");
}

#[tokio::test]
async fn b_02_a_command_that_works_or_complains_is_not_silent() {
    let world = World::new();
    let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; echo done";
    let complains = "for i in 1 2 3 4 5; do sleep 0.5; echo $i >&2; done; echo done";
    for script in [busy, complains] {
        let mut job = shell(&world, script);
        job.agent.stall = Some(stafette_core::Millis(1500));
        assert_eq!(finished(job).await.response.summary, "done", "{script}");
    }
}

#[tokio::test]
async fn b_02_a_command_that_reports_by_its_own_channel_is_not_silent() {
    let world = World::new();
    let mut job = shell(&world, "sleep 3; echo done");
    job.agent.stall = Some(stafette_core::Millis(1000));
    let pulse = job.pulse.clone();
    let reports = tokio::spawn(async move {
        let mut next = tokio::time::interval(std::time::Duration::from_millis(100));
        loop {
            next.tick().await;
            pulse.beat();
        }
    });
    assert_eq!(finished(job).await.response.summary, "done");
    reports.abort();
}

#[tokio::test]
async fn b_02_a_command_that_is_asked_to_end_may_tidy_up() {
    let world = World::new();
    let script = "trap 'echo leaving; echo leaving >&2; touch tidied; exit 1' TERM; echo begun; \
                  while :; do sleep 0.02; done";
    let mut session = stafette_agents::start(shell(&world, script));
    hears(&mut session, "begun").await;
    session.stop().await;
    assert!(world.work().join("tidied").exists());
}
