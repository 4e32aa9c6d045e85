//! What becomes of agents' processes, as the run tells it.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use stafette_core::{HandoffId, RunId};
use stafette_engine::Engine;
use stafette_store::MemoryStore;

use tokio::time::timeout;

use crate::runs::{PATIENCE, opened, settings, start};

const HEAD: &str = r#"
    workflow = { name = "one", entry = "a", trust_bare_frames = true }
    retries = { max = 2, backoff = "10ms" }
"#;

/// An engine, a run of this workflow in it, and how that settled.
async fn run(folder: &Path, agents: &str) -> (Engine, RunId, String) {
    let store = Arc::new(MemoryStore::new());
    let engine = opened(store, settings(folder)).await;
    let text = format!("{HEAD}\n{agents}");
    let workflow = stafette_workflow::parse(&text).expect("a workflow");
    let run = start(&engine, workflow).await.expect("a run");
    let Ok(settled) = timeout(PATIENCE, engine.settled(run)).await else {
        panic!("not settled: {:#?}", events(&engine, run).await);
    };
    (engine, run, settled.expect("a run").status)
}

async fn events(engine: &Engine, run: RunId) -> Vec<Value> {
    let events = engine.log().events(run, 0).await.expect("events");
    events.iter().map(|stored| read(&stored.entry.body)).collect()
}

/// Everything up to an event, as soon as there is one like it.
async fn until(engine: &Engine, like: impl Fn(&Value) -> bool) -> Vec<Value> {
    let (mut feed, mut seen) = (engine.feed(0), Vec::new());
    while !seen.iter().any(&like) {
        let page = timeout(PATIENCE, feed.next()).await.expect("in time").expect("readable");
        let page = page.expect("an engine");
        seen.extend(page.iter().map(|stored| read(&stored.entry.body)));
    }
    seen
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The states of an agent's process, in order.
fn states(events: &[Value]) -> Vec<&str> {
    let of = |event: &&Value| event["event"] == "session_changed";
    events.iter().filter(of).filter_map(|event| event["state"].as_str()).collect()
}

#[tokio::test]
async fn s1_16_the_life_of_a_command_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = r#"
        limits = { cooldown = 0 }
        [agents.a]
        runner = "exec"
        result = "exit"
        command = ["sh", "-c", 'cat >/dev/null; [ -e again ] || { touch again; echo no key found >&2; exit 3; }']
    "#;
    let (engine, run, status) = run(folder.path(), agent).await;
    assert_eq!(status, "succeeded");
    let events = events(&engine, run).await;
    let expected = ["starting", "working", "crashed", "starting", "working", "ended"];
    assert_eq!(states(&events), expected);
    let crashed = events.iter().find(|event| event["state"] == "crashed").expect("a death");
    assert_eq!(crashed["note"], "exit status 3; last output:\nno key found");
    engine.stop().await;
}

/// A profile as it goes along with a workflow.
fn profile(pty: &str) -> String {
    format!(
        r#"
        name = "odd"
        title = "Odd"
        detect = {{ program = "sh" }}
        [pty]
        command = ["sh"]
        {pty}
        "#
    )
}

#[tokio::test]
async fn s1_15_a_terminal_that_keeps_dying_ends_with_a_person_who_sees_its_last_screen() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = r#"
        [agents.a]
        runner = "pty"
        profile = "odd"
        command = ["sh", "-c", "echo no key found; exit 4"]
        [profiles]
        odd = """PROFILE"""
    "#
    .replace("PROFILE", &profile("restarts = 1"));
    let (engine, run, status) = run(folder.path(), &agent).await;
    assert_eq!(status, "waiting");
    // What becomes of a terminal is told beside its turns.
    let events = until(&engine, |event| event["code"] == "AGENT_CRASHED").await;
    assert_eq!(states(&events), ["starting", "crashed", "restarting", "starting", "crashed"]);
    let died = events.iter().find(|event| event["state"] == "crashed").expect("a death");
    assert_eq!(died["note"], "died (exit status 4); last screen:\nno key found");
    let alert = events.iter().find(|event| event["code"] == "AGENT_CRASHED").expect("an alert");
    assert!(alert["message"].as_str().is_some_and(|text| text.contains("2 times in a row")));
    let question = engine.state(run).await.expect("a state");
    let question =
        question.handoff(HandoffId(2)).and_then(|handoff| handoff.offer.question.clone());
    let details = question.expect("a question").details;
    assert!(details.contains("is not started again; last screen:\nno key found"), "{details}");
    engine.stop().await;
}

/// Neither an interruption nor another attempt helps with this agent, wherever it runs. It has time
/// to get ready for the interruption, and the others to do their work within the lease.
async fn stalls(runner: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let agents = r#"
            limits = { cooldown = 0, lease = "5s", handoffs_per_item = 9 }
            [agents.a]
            runner = "exec"
            command = ["sh", "-c", 'cat >/dev/null; echo "<<<ODEI:HANDOFF:stuck>>>"']
            [agents.stuck]
            runner = "RUNNER"
            stall = "2s"
            command = ["sh", "-c", 'trap "echo x >> interrupted" INT; echo hi; while :; do sleep 0.05; done']
            [agents.other]
            runner = "exec"
            result = "exit"
            command = ["sh", "-c", "cat >/dev/null; echo done"]
            [[routes]]
            from = "a"
            to = "stuck"
            alternatives = ["other"]
            [[routes]]
            from = "a"
            to = "other"
        "#
    .replace("RUNNER", runner);
    let (engine, run, status) = run(folder.path(), &agents).await;
    let events = events(&engine, run).await;
    assert_eq!(status, "succeeded", "{events:#?}");
    let interrupted = std::fs::read_to_string(folder.path().join("interrupted"));
    assert!(interrupted.is_ok_and(|text| text.lines().count() >= 2), "both attempts");
    let told: Vec<&str> = events.iter().filter_map(|event| event["code"].as_str()).collect();
    assert!(told.iter().filter(|code| **code == "AGENT_STALLED").count() >= 2, "{told:?}");
    let silent = |event: &&Value| {
        let message = event.pointer("/failure/message").and_then(Value::as_str);
        message.is_some_and(|text| text.starts_with("no sign of life"))
    };
    assert_eq!(events.iter().filter(silent).count(), 2, "{events:#?}");
    let chosen = events.iter().find(|event| event["event"] == "recovery_chosen");
    assert_eq!(chosen.expect("a way out")["target"], "other");
    engine.stop().await;
}

#[tokio::test]
async fn b_02_a_stalled_agent_is_interrupted_then_retried_then_rerouted() {
    stalls("exec").await;
}

#[tokio::test]
async fn b_02_a_stalled_agent_in_a_terminal_is_interrupted_then_retried_then_rerouted() {
    stalls("pty").await;
}

#[tokio::test]
async fn s1_03_an_agent_that_is_not_ready_in_time_shows_so_and_people_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = r#"
        [agents.a]
        runner = "pty"
        ready_timeout = "50ms"
        result = "exit"
        command = ["sh", "-c", "while read -r line; do case $line in *'done twice.') exit;; esac; done"]
    "#;
    let (engine, run, status) = run(folder.path(), agent).await;
    assert_eq!(status, "succeeded");
    let events = events(&engine, run).await;
    assert_eq!(states(&events)[..3], ["starting", "not_ready", "working"]);
    let alert = events.iter().find(|event| event["code"] == "AGENT_NOT_READY");
    let alert = alert.and_then(|alert| alert["message"].as_str()).expect("an alert");
    assert!(alert.contains("within 0.05 s"), "{alert}");
    engine.stop().await;
}
