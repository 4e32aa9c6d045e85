//! What is known holds no secrets, whoever wrote it.

use stafette_core::redact::Redactor;
use stafette_core::{Party, Time};
use stafette_knowledge::graph::{Entity, Goal, Node, Provenance, Record};
use stafette_stages::{Actor, Saying, Stages, StagesSettings};

const WORKFLOW: &str = "[workflow]\nname = \"w\"\nentry = \"one\"\n\
    [agents.one]\nrunner = \"external\"\n[knowledge]\n";

/// A value of the environment, which looks like nothing in particular.
const OWN: &str = "zX9-kkQ2.mm7";

#[tokio::test]
async fn b_17_threads_and_the_graph_keep_no_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let workflow = stafette_workflow::parse(WORKFLOW).expect("it can be read");
    let stages = Stages::open(StagesSettings {
        knowledge: workflow.knowledge.expect("it knows"),
        root: folder.path(),
        state: folder.path(),
        secret: &|_| None,
        redactor: Redactor::knowing([OWN]),
    })
    .expect("opened");
    let person = Actor::person();
    let token = format!("ghp_{:036}", 7);
    let secret = format!("use {token} or {OWN}");
    let saying = Saying {
        title: Some(secret.clone()),
        body: format!("\x1b[1mghp_\x1b[0m{} and {OWN}", &token[4..]),
        ..Saying::default()
    };
    let said = stages.say(&person, saying).await.expect("said");
    assert!(said.body.contains("[redacted:github]"), "{said:?}");
    let made = Provenance { by: Party::Human, at: Time(1), run: None, handoff: None };
    let goal = Goal {
        id: "g1".into(),
        title: secret.clone(),
        horizon: "week".into(),
        target: secret.clone(),
    };
    let node = Node { entity: Entity::Goal(goal), changed: made.clone(), made };
    stages.import(&person, &[Record::Node(node)]).await.expect("imported");
    let kept: Vec<u8> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .flatten()
        .flat_map(|entry| std::fs::read(entry.path()).unwrap_or_default())
        .collect();
    let has = |what: &str| kept.windows(what.len()).any(|part| part == what.as_bytes());
    assert!(has("[redacted:github] or [redacted:environment]"), "it is kept without them");
    assert!(!has(OWN) && !has(&token[10..]), "nothing of them is");
}
