//! Agents that know nothing but files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stafette_core::run::create::RunCreated;
use stafette_core::{RunId, Workflow};
use stafette_engine::{Engine, Plugins, Settings};
use stafette_files::{Coordination, MAX_FILE};
use stafette_store::MemoryStore;

const PATIENCE: Duration = Duration::from_secs(120);

struct Room {
    folder: tempfile::TempDir,
    engine: Engine,
    _task: tokio::task::JoinHandle<()>,
}

fn workflow() -> Workflow {
    let text = r#"
        workflow = { name = "files", entry = "planner" }
        coordination = {}
        [agents.planner]
        runner = "external"
        [agents.builder]
        runner = "external"
        [[routes]]
        from = "planner"
        to = "builder"
        "#;
    stafette_workflow::parse(text).expect("a workflow")
}

impl Room {
    async fn new() -> Room {
        Room::keeping(1000).await
    }

    /// One that keeps so many files of what is over.
    async fn keeping(keep: usize) -> Room {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            project: folder.path().to_owned(),
            state: folder.path().join("state"),
            scratch: folder.path().join("scratch"),
            program: "unused".into(),
            socket: "unused".into(),
            closed: Vec::new(),
            redactor: stafette_core::redact::Redactor::new(),
            node: "test".into(),
        };
        let store = Arc::new(MemoryStore::new());
        let engine = Engine::open(store, settings, Plugins::default()).await.expect("opens");
        let at = folder.path().join(".claude");
        let memory = folder.path().join("memory/state.json");
        let read = Arc::new(|| Ok(workflow()));
        let coordination =
            Coordination::open(engine.clone(), read, &at, memory, keep, 0).expect("opens");
        let task = tokio::spawn(coordination.live());
        Room { folder, engine, _task: task }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(".claude").join(path)
    }

    fn drop(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.at("handoffs/pending").join(name), text).expect("written");
    }

    async fn start(&self) -> RunId {
        let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow()), "auth", "test");
        let run = self.engine.start(created);
        run.await.expect("a run")
    }

    /// The files in a folder, once they are as expected.
    async fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "waited in vain for {what}: {}",
                self.tree()
            );
            tokio::task::yield_now().await;
            tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>())
                .await
                .ok();
        }
    }

    fn tree(&self) -> String {
        let mut all = Vec::new();
        for place in ["pending", "accepted", "completed", "rejected"] {
            for entry in
                fs::read_dir(self.at("handoffs").join(place)).into_iter().flatten().flatten()
            {
                all.push(format!("{place}/{}", entry.file_name().to_string_lossy()));
            }
        }
        all.join(" ")
    }

    /// The only file that a folder has for `to`.
    async fn file_for(&self, place: &str, to: &str) -> (PathBuf, Value) {
        self.until(&format!("a file for {to} in {place}"), || {
            let entries = fs::read_dir(self.at("handoffs").join(place)).ok()?;
            entries.flatten().find_map(|entry| {
                let value: Value = serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
                // Ours, not what somebody dropped, and not while it is being made.
                let whole = !entry.file_name().to_string_lossy().starts_with('.');
                let ours = value["to"] == to && value["context"]["handoff"].is_string() && whole;
                ours.then(|| (entry.path(), value))
            })
        })
        .await
    }

    async fn rejection(&self, name: &str) -> Value {
        let reason = self.reason(name.trim_end_matches(".json")).await;
        self.until(&format!("{name} in rejected"), || {
            fs::symlink_metadata(self.at("handoffs/pending").join(name)).is_err().then_some(())
        })
        .await;
        reason
    }

    /// Waits for the reason why a file is not taken.
    async fn reason(&self, name: &str) -> Value {
        let place = self.at("handoffs/rejected").join(format!("{name}.reason.json"));
        let read = || serde_json::from_slice(&fs::read(&place).ok()?).ok();
        self.until(&format!("the reason of {name}"), read).await
    }
}

fn message(id: &str, from: &str, to: &str, kind: &str) -> Value {
    json!({
        "schema_version": "1.0.0",
        "message_id": id,
        "timestamp": "2026-01-01T00:00:00Z",
        "from": from,
        "to": to,
        "type": kind,
        "priority": "high",
        "payload": { "summary": "the plan is in specs/auth.md" },
        "context": { "workflow": "feature", "spec": "specs/auth.md", "iteration": 1 },
        "status": "pending",
    })
}

const FIRST: &str = "0b6f1c1e-1111-4a3c-9d5e-000000000001";
const SECOND: &str = "0b6f1c1e-1111-4a3c-9d5e-000000000002";

fn moved(from: &Path, to: &str) -> PathBuf {
    let target = from.parent().and_then(Path::parent).expect("a folder").join(to);
    let target = target.join(from.file_name().expect("a name"));
    fs::rename(from, &target).expect("moved");
    target
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_02_two_agents_pass_the_work_on_with_nothing_but_files() {
    let room = Room::new().await;
    let run = room.start().await;
    // The planner finds its handoff and takes it; then it drops one for the builder.
    let (pending, _) = room.file_for("pending", "planner").await;
    moved(&pending, "accepted");
    let (_, accepted) = room.file_for("accepted", "planner").await;
    room.until("the planner is at work", || {
        let text = fs::read(room.at("state.json")).ok()?;
        let state: Value = serde_json::from_slice(&text).ok()?;
        (state["current_agent"] == "planner").then_some(())
    })
    .await;
    assert_eq!(accepted["to"], "planner");
    room.drop("plan.json", message(FIRST, "planner", "builder", "task_handoff").to_string());
    let (_, done) = room.file_for("completed", "planner").await;
    assert_eq!(done["status"], "completed");
    let (pending, for_builder) = room.file_for("pending", "builder").await;
    assert_eq!(for_builder["message_id"], FIRST);
    assert_eq!(for_builder["context"]["spec"], "specs/auth.md");
    let dropped = room.at("handoffs/pending/plan.json");
    room.until("the dropped file to go", || (!dropped.exists()).then_some(())).await;
    // The builder writes its answer into its file, which it puts straight into completed.
    let mut answer = for_builder.clone();
    answer["response"] = json!({ "summary": "built", "outputs": { "commit": "abc123" } });
    // Elsewhere, since the folder's keeper may look at any time and put right what it finds there.
    let draft = room.folder.path().join("draft.json");
    fs::rename(&pending, &draft).expect("taken");
    fs::write(&draft, answer.to_string()).expect("written");
    let completed = room.at("handoffs/completed").join(pending.file_name().expect("a name"));
    fs::rename(&draft, completed).expect("moved");
    let view = tokio::time::timeout(PATIENCE, room.engine.settled(run)).await;
    let view = view.expect("in time").expect("a run");
    assert_eq!(view.status, "succeeded", "{}", room.tree());
    let (_, built) = room.file_for("completed", "builder").await;
    assert_eq!(built["response"]["outputs"]["commit"], "abc123");
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_02_a_file_of_a_person_begins_a_run() {
    let room = Room::new().await;
    room.drop("wish.json", json!({ "request": "Add user auth" }).to_string());
    room.file_for("pending", "planner").await;
    let runs = room.engine.runs(10).await.expect("runs");
    assert_eq!((runs.len(), runs[0].request.as_str()), (1, "Add user auth"));
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_02_a_file_that_cannot_be_put_away_begins_one_run() {
    let room = Room::new().await;
    // As if the daemon was killed each time before it could put the file away.
    fs::create_dir(room.at("handoffs/completed/a.json")).expect("a folder in its place");
    room.drop("a.json", r#"{"request": "Add auth"}"#);
    let runs = async || room.engine.runs(100).await.expect("runs").len();
    while runs().await == 0 {
        tokio::task::yield_now().await;
    }
    // A file that is taken later shows that the first one was looked at again.
    for name in ["b.json", "c.json"] {
        room.drop(name, r#"{"request": "Add tests"}"#);
        room.until(name, || room.at("handoffs/completed").join(name).exists().then_some(())).await;
    }
    fs::remove_dir(room.at("handoffs/completed/a.json")).expect("removed");
    room.until("a.json", || room.at("handoffs/completed/a.json").is_file().then_some(())).await;
    assert_eq!(runs().await, 3, "one for each file");
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_02_what_is_not_right_ends_in_rejected_with_its_reason() {
    let room = Room::new().await;
    let run = room.start().await;
    room.file_for("pending", "planner").await;
    let outside = room.folder.path().join("outside.json");
    fs::write(&outside, message(FIRST, "planner", "builder", "task_handoff").to_string())
        .expect("written");
    symlink(&outside, room.at("handoffs/pending/link.json")).expect("linked");
    assert_eq!(room.rejection("link.json").await["code"], "link");
    assert!(outside.exists(), "what it led to is untouched");

    let half = message(FIRST, "planner", "builder", "task_handoff").to_string();
    room.drop("half.json", &half[..half.len() / 2]);
    assert_eq!(room.rejection("half.json").await["code"], "not_json");

    let large = fs::File::create(room.at("handoffs/pending/large.json")).expect("made");
    large.set_len(100 * 1024 * 1024).expect("long");
    let reason = room.rejection("large.json").await;
    assert_eq!(reason["code"], "too_large");
    assert!(reason["reason"].as_str().is_some_and(|text| text.contains(&MAX_FILE.to_string())));

    room.drop("limit.json", json!({ "request": "Clean up", "budget": "1usd" }).to_string());
    let reason = room.rejection("limit.json").await;
    assert_eq!(reason["code"], "invalid");
    assert!(reason["reason"].as_str().is_some_and(|text| text.contains("`budget`")), "{reason}");
    room.drop("list.json", json!({ "request": "Clean up", "inputs": [1] }).to_string());
    assert_eq!(room.rejection("list.json").await["code"], "invalid");

    for passed_over in [".wish", "wish.json.tmp", "wish.json~"] {
        room.drop(passed_over, json!({ "request": "Clean up" }).to_string());
    }
    room.drop("wish.txt", json!({ "request": "Clean up" }).to_string());
    let reason = room.reason("wish.txt").await;
    assert!(reason["reason"].as_str().is_some_and(|text| text.contains("`.json`")), "{reason}");
    for passed_over in [".wish", "wish.json.tmp", "wish.json~", "wish.txt"] {
        assert!(room.at(&format!("handoffs/pending/{passed_over}")).exists(), "{passed_over}");
    }
    assert_eq!(room.engine.runs(10).await.expect("runs").len(), 1, "nothing was begun");

    let mut wrong = message(FIRST, "planner", "builder", "task_handoff");
    wrong["priority"] = "urgent".into();
    room.drop("wrong.json", wrong.to_string());
    let reason = room.rejection("wrong.json").await;
    assert_eq!(reason["code"], "invalid");
    assert!(reason["reason"].as_str().is_some_and(|text| text.contains("priority")), "{reason}");

    let nobody = message(FIRST, "planner", "nobody", "task_handoff");
    room.drop("nobody.json", nobody.to_string());
    assert_eq!(room.rejection("nobody.json").await["code"], "invalid", "not a pair of the table");

    room.drop("good.json", message(FIRST, "planner", "builder", "task_handoff").to_string());
    room.file_for("pending", "builder").await;
    room.drop("again.json", message(FIRST, "planner", "builder", "task_handoff").to_string());
    assert_eq!(room.rejection("again.json").await["code"], "duplicate");
    room.drop("early.json", message(SECOND, "planner", "builder", "task_handoff").to_string());
    assert_eq!(room.rejection("early.json").await["code"], "no_turn");

    // A copy of a handoff's file, and one that names a handoff that is not there.
    for (name, handoff) in [("copy.json", "h1"), ("lost.json", "h77")] {
        let mut copy = message(SECOND, "planner", "builder", "task_handoff");
        copy["context"]["run"] = json!(run);
        copy["context"]["handoff"] = handoff.into();
        room.drop(name, copy.to_string());
        let reason = room.rejection(name).await;
        assert_eq!(reason["code"], "not_a_message", "{reason}");
        assert!(reason["reason"].as_str().is_some_and(|text| text.contains(handoff)), "{reason}");
    }
    let handoffs = room.engine.log().handoffs(run).await.expect("handoffs");
    assert_eq!(handoffs.len(), 2, "only the good one was taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_03_an_edit_of_the_state_is_taken_in_or_becomes_a_question() {
    let room = Room::new().await;
    room.start().await;
    let read =
        || -> Option<Value> { serde_json::from_slice(&fs::read(room.at("state.json")).ok()?).ok() };
    let mut state = room
        .until("the run in state.json", || {
            read().filter(|state| state["current_agent"] == "planner")
        })
        .await;
    state["color"] = "blue".into();
    state["current_agent"] = "mallory".into();
    let draft = room.folder.path().join("draft.json");
    fs::write(&draft, state.to_string()).expect("written");
    fs::rename(&draft, room.at("state.json")).expect("put there whole");
    let state = room
        .until("the state put right", || read().filter(|state| state["current_agent"] == "planner"))
        .await;
    assert_eq!(state["color"], "blue", "the rest is the writer's");
    let questions = room.engine.log().questions().await.expect("questions");
    assert_eq!(questions.len(), 1);
    assert!(questions[0].body.contains("mallory"), "{}", questions[0].body);
}

#[tokio::test]
async fn s5_02_of_what_is_over_only_the_latest_files_stay() {
    let room = Room::keeping(2).await;
    for n in 0..5 {
        room.drop(&format!("bad-{n}.json"), "no JSON");
        let last = format!("bad-{n}.json");
        room.until("the last one", || room.tree().contains(&last).then_some(())).await;
        room.rejection(&last).await;
    }
    room.until("the older ones to go", || {
        let tree = room.tree();
        (tree.split(' ').count() == 4 && tree.contains("bad-4.reason.json")).then_some(())
    })
    .await;
    assert!(room.at("handoffs/rejected/bad-3.json").exists(), "{}", room.tree());
}
