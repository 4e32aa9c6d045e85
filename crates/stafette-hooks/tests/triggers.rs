//! Triggers before a real engine: time is handed in, runs begin.

use std::sync::{Arc, Mutex};

use serde_json::json;
use stafette_core::{Millis, Time, Workflow};
use stafette_engine::{Engine, Plugins, Settings};
use stafette_hooks::{Delivery, Hooks, TriggerError, Triggers, sign_payload};
use stafette_store::MemoryStore;

/// A workflow that nobody here carries out, and its triggers. The secret is a variable that every
/// machine has.
const WORKFLOW: &str = r#"
workflow = { name = "one", entry = "a" }
[agents.a]
runner = "external"
[[triggers]]
name = "night"
cron = "0 3 * * *"
timezone = "Europe/Vienna"
request = "Sweep by {trigger} at {time}"
[[triggers]]
name = "issues"
webhook = true
secret_env = "PATH"
request = "Look at {payload.issue.title}"
"#;

struct World {
    folder: tempfile::TempDir,
    engine: Engine,
    text: Arc<Mutex<String>>,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            project: folder.path().to_owned(),
            state: folder.path().to_owned(),
            scratch: folder.path().to_owned(),
            program: "unused".into(),
            socket: "unused".into(),
            closed: Vec::new(),
            redactor: stafette_core::redact::Redactor::new(),
            node: "test".into(),
        };
        let hooks = Arc::new(Hooks::new(folder.path().to_owned()));
        let store = Arc::new(MemoryStore::default());
        let plugins = Plugins { interceptor: Some(hooks), ..Plugins::default() };
        let engine = Engine::open(store, settings, plugins).await.expect("opens");
        World { folder, engine, text: Arc::new(Mutex::new(WORKFLOW.to_owned())) }
    }

    /// The triggers as a daemon that starts now would have them.
    fn triggers(&self) -> Triggers {
        let text = self.text.clone();
        let read = move || -> Result<Workflow, String> {
            let text = text.lock().expect("a text");
            stafette_workflow::parse(&text).map_err(|wrong| format!("{wrong:?}"))
        };
        let memory = self.folder.path().join("triggers.json");
        Triggers::open(self.engine.clone(), Arc::new(read), memory)
    }

    async fn requests(&self) -> Vec<String> {
        let runs = self.engine.runs(100).await.expect("runs");
        runs.into_iter().rev().map(|run| run.request).collect()
    }
}

fn at(text: &str) -> Time {
    Time::parse(text).expect("a moment")
}

#[tokio::test]
async fn b_16_a_run_begins_at_its_time_and_once() {
    let world = World::new().await;
    let triggers = world.triggers();
    let evening = at("2026-07-10T20:00:00Z");
    assert_eq!(triggers.keep(evening).await, Some(at("2026-07-11T01:00:00Z")), "3 in Vienna");
    assert!(world.requests().await.is_empty());
    let night = at("2026-07-11T01:00:00.250Z");
    assert_eq!(triggers.keep(night).await, Some(at("2026-07-12T01:00:00Z")));
    let begun = ["Sweep by night at 2026-07-11T01:00:00.000Z"];
    assert_eq!(world.requests().await, begun);
    triggers.keep(night + Millis::seconds(30)).await;
    // A daemon that crashed before it noted anything begins nothing twice either.
    std::fs::remove_file(world.folder.path().join("triggers.json")).expect("removed");
    let again = world.triggers();
    again.keep(evening).await;
    again.keep(night).await;
    assert_eq!(world.requests().await, begun);
    assert_eq!(world.engine.runs(1).await.expect("runs").len(), 1);
}

#[tokio::test]
async fn b_16_times_that_nobody_kept_are_made_up_for_once_if_at_all() {
    let world = World::new().await;
    world.triggers().keep(at("2026-07-10T20:00:00Z")).await;
    // Four nights later.
    let back = at("2026-07-14T08:00:00Z");
    world.triggers().keep(back).await;
    assert!(world.requests().await.is_empty(), "nobody asked for it");
    let caught_up = WORKFLOW.replace("cron =", "catch_up = true\ncron =");
    *world.text.lock().expect("a text") = caught_up;
    let later = at("2026-07-18T08:00:00Z");
    let triggers = world.triggers();
    triggers.keep(later).await;
    triggers.keep(later + Millis::minutes(1)).await;
    assert_eq!(world.requests().await, ["Sweep by night at 2026-07-18T01:00:00.000Z"]);
}

#[tokio::test]
async fn b_16_a_new_time_counts_from_now_on() {
    let world = World::new().await;
    let triggers = world.triggers();
    triggers.keep(at("2026-07-10T20:00:00Z")).await;
    *world.text.lock().expect("a text") = WORKFLOW.replace("0 3 * * *", "0 4 * * *");
    let next = triggers.keep(at("2026-07-11T01:30:00Z")).await;
    assert_eq!(next, Some(at("2026-07-11T02:00:00Z")));
    assert!(world.requests().await.is_empty());
    let listed = triggers.list(at("2026-07-11T01:30:00Z")).expect("a list");
    let times = ["11", "12", "13"].map(|day| format!("2026-07-{day}T02:00:00.000Z"));
    assert_eq!((listed[0].name.as_str(), &listed[0].next), ("night", &times.to_vec()));
    assert_eq!((listed[1].webhook, listed[1].secret_set), (true, Some(true)));
}

#[tokio::test]
async fn b_16_a_webhook_begins_one_run_for_each_delivery() {
    let world = World::new().await;
    let triggers = world.triggers();
    let secret = std::env::var("PATH").expect("a path");
    let now = at("2026-07-10T20:00:00Z");
    let body = json!({ "issue": { "title": "It broke" } }).to_string();
    let signed = |body: &str, id: &str| Delivery {
        signature: sign_payload(&secret, body.as_bytes()),
        id: Some(id.to_owned()),
        ..Delivery::default()
    };
    let first = triggers.deliver("issues", &signed(&body, "d1"), body.as_bytes(), now).await;
    let first = first.expect("a run");
    assert!(first.run.is_some() && !first.repeated);
    // The sender tries again; by then another daemon is there.
    let triggers = world.triggers();
    let again = triggers.deliver("issues", &signed(&body, "d1"), body.as_bytes(), now).await;
    assert_eq!(again.expect("the same run"), stafette_hooks::Fired { repeated: true, ..first });
    // Somebody who listened in gives it another name: the signature does not cover that.
    let replay = triggers.deliver("issues", &signed(&body, "d2"), body.as_bytes(), now).await;
    assert!(matches!(replay, Err(TriggerError::Replayed { .. })), "{replay:?}");
    assert_eq!(world.requests().await, ["Look at It broke"]);
    let other = body.replace("broke", "is slow");
    for (trigger, delivery, body) in [
        ("issues", signed(&body, "d3"), &other),
        ("night", signed(&other, "d3"), &other),
        ("nothing", signed(&other, "d3"), &other),
        ("issues", Delivery::default(), &other),
    ] {
        let refused = triggers.deliver(trigger, &delivery, body.as_bytes(), now).await;
        assert!(matches!(refused, Err(TriggerError::BadSignature)), "{trigger}: {refused:?}");
    }
    let ping = Delivery { is_ping: true, ..signed(&other, "d4") };
    let ping = triggers.deliver("issues", &ping, other.as_bytes(), now).await.expect("heard");
    assert_eq!(ping.run, None);
    let poor = json!({ "issue": null }).to_string();
    let poor = triggers.deliver("issues", &signed(&poor, "d5"), poor.as_bytes(), now).await;
    assert!(matches!(poor, Err(TriggerError::Request { .. })), "{poor:?}");
    assert_eq!(world.requests().await.len(), 1);
}

#[tokio::test]
async fn b_16_a_hook_that_says_no_holds_a_trigger_back_too() {
    let world = World::new().await;
    let hook = "[[hooks]]\non = \"before_run\"\ncommand = [\"sh\", \"-c\", \"cat > asked; echo closed >&2; exit 2\"]\n";
    world.text.lock().expect("a text").push_str(hook);
    let refused = world
        .triggers()
        .fire("issues", "ada".into(), &json!({"issue": {"title": "x"}}), at("2026-07-10T20:00:00Z"))
        .await;
    let why = refused.expect_err("it is closed").to_string();
    assert_eq!(why, "a hook said no: closed");
    assert!(world.requests().await.is_empty());
    let asked = std::fs::read(world.folder.path().join("asked")).expect("it was asked");
    let asked: serde_json::Value = serde_json::from_slice(&asked).expect("JSON");
    assert_eq!((&asked["event"], &asked["request"]), (&"before_run".into(), &"Look at x".into()));
}

#[tokio::test]
async fn b_16_a_hook_holds_back_the_turn_of_an_agent_from_outside() {
    let world = World::new().await;
    let hook = "[[hooks]]\non = \"before_turn\"\ncommand = [\"sh\", \"-c\", \"echo not today >&2; exit 2\"]\n";
    world.text.lock().expect("a text").push_str(hook);
    let now = at("2026-07-10T20:00:00Z");
    let payload = json!({ "issue": { "title": "x" } });
    let run = world.triggers().fire("issues", "ada".into(), &payload, now).await.expect("a run");
    let wanted = stafette_engine::Wanted { run: Some(run), agent: None };
    let within = std::time::Duration::from_secs(60);
    let offered = world.engine.external().offered(&wanted, within).await;
    let handoff = offered.first().expect("a turn").key.handoff;
    let refused =
        world.engine.external().accept(run, handoff, "bob", None).await.expect_err("not today");
    assert_eq!(refused.to_string(), "a hook said no: not today");
    let settled = tokio::time::timeout(within, world.engine.settled(run)).await;
    let view = settled.expect("in time").expect("a run");
    assert_eq!(view.waiting_on.as_deref(), Some("human"), "a person has to look");
}
