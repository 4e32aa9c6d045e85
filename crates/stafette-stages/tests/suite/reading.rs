//! What a look for patterns reads does not grow with the history.

use std::path::Path;
use std::sync::Arc;

use stafette_core::Workflow;
use stafette_core::redact::Redactor;
use stafette_core::run::create::RunCreated;
use stafette_core::{Input, Party, Priority, RunId, Time};
use stafette_engine::{Engine, Plugins, Settings};
use stafette_knowledge::graph::{Entity, Node, PAGE, Provenance, Record, Task, TaskStatus};
use stafette_stages::{Actor, Reading, Stages, StagesSettings};
use stafette_store::MemoryStore;

/// A workflow whose four newest runs are looked through.
const FEW: &str = r#"
[workflow]
name = "few"
entry = "one"
[agents.one]
runner = "external"
[knowledge.mind]
runs = 4
"#;

fn workflow() -> Workflow {
    stafette_workflow::parse(FEW).expect("it can be read")
}

async fn engine(folder: &Path) -> Engine {
    let settings = Settings {
        project: folder.to_owned(),
        state: folder.to_owned(),
        scratch: folder.join("turns"),
        program: folder.join("none"),
        socket: folder.join("none.sock"),
        closed: Vec::new(),
        redactor: Redactor::default(),
        node: "here".into(),
    };
    let opened = Engine::open(Arc::new(MemoryStore::new()), settings, Plugins::default());
    opened.await.expect("opened")
}

/// A run that is over at once.
async fn over(engine: &Engine) -> RunId {
    let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow()), "Again", "ada");
    let begun = engine.start(created).await;
    let run = begun.expect("it begins");
    let cancel = Input::Cancel { by: "ada".into(), why: "enough".into() };
    engine.send(run, cancel).await.expect("it ends");
    assert!(engine.settled(run).await.expect("it is over").is_over());
    run
}

/// So many tasks that are done, from a number on.
fn done(from: usize, count: usize) -> Vec<Record> {
    let node = |number: usize| {
        let at = Time(i64::try_from(number).expect("a small number"));
        let made = Provenance { by: Party::Human, at, run: None, handoff: None };
        let entity = Entity::Task(Task {
            id: format!("t{number:05}"),
            title: "A task".into(),
            effort_hours: 1.0,
            priority: Priority::Medium,
            status: TaskStatus::Done,
            kind: Some("code".into()),
            estimated_hours: Some(1.0),
            // The first ones took as long as was thought, later ones twice that.
            actual_hours: Some(if number < PAGE { 1.0 } else { 2.0 + number as f64 / 1e6 }),
            event: None,
        });
        Record::Node(Node { entity, changed: made.clone(), made })
    };
    (from..from + count).map(node).collect()
}

#[tokio::test]
async fn s1_10_a_look_for_patterns_reads_what_is_new_and_no_more_of_the_rest_than_it_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = engine(folder.path()).await;
    let stages = Stages::open(StagesSettings {
        knowledge: workflow().knowledge.expect("it knows"),
        root: folder.path(),
        state: folder.path(),
        secret: &|_| None,
        redactor: Redactor::new(),
    })
    .expect("opened");
    let person = Actor::person();
    let look = async || stages.reflect(&person, &engine).await.expect("a look");

    // Of ten runs the newest four, with all their events, and each once.
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(over(&engine).await);
    }
    let mut events = 0;
    for run in &runs[6..] {
        events += engine.log().events(*run, 0).await.expect("its events").len();
    }
    assert_eq!(look().await.read, Reading { runs: 4, events, ..Reading::default() });
    assert_eq!(look().await.read, Reading::default(), "nothing has happened since");
    let one = over(&engine).await;
    let events = engine.log().events(one, 0).await.expect("its events").len();
    assert_eq!(look().await.read, Reading { runs: 1, events, ..Reading::default() });

    // Of the graph a page of the newest, however much there is.
    for (from, expected) in [(0, PAGE), (PAGE, PAGE), (2 * PAGE, PAGE)] {
        stages.import(&person, &done(from, PAGE)).await.expect("they are there");
        let looked = look().await;
        assert_eq!(looked.read, Reading { nodes: expected, ..Reading::default() });
        let told = looked.insights.iter().any(|insight| insight.id == "estimate-code");
        assert_eq!(told, from > 0, "it is the newest that count: {looked:?}");
    }
    engine.stop().await;
}
