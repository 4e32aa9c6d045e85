//! What the tests write into graphs.

use std::sync::Arc;

use stafette_core::{HandoffId, Party, Priority, RunId, Time};
use stafette_knowledge::constitution::Recommendation;
use stafette_knowledge::graph::{
    Batch, Cursor, Decision, DecisionStatus, Discussion, Entity, Goal, Graph, Handoff, InsightNode,
    NodeKey, PAGE, Provenance, Record, Relation, Task, TaskStatus, Write,
};
use stafette_knowledge::{Base, SqliteGraph};

/// A graph in a folder of its own.
pub(crate) fn sqlite() -> (Arc<dyn Graph>, Base, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let base = Base::open(&folder.path().join("knowledge.db")).expect("a file");
    (Arc::new(SqliteGraph::new(base.clone())), base, folder)
}

/// All that a graph holds.
pub(crate) async fn records(graph: &dyn Graph) -> Vec<Record> {
    let (mut all, mut next) = (Vec::new(), Some(Cursor::Start));
    while let Some(cursor) = next {
        let page = graph.page(&cursor, PAGE).await.expect("a page");
        next = cursor.next(&page);
        all.extend(page);
    }
    all
}

pub(crate) fn run() -> RunId {
    "01890000-0000-7000-8000-000000000001".parse().expect("a run")
}

pub(crate) fn by(who: &str, at: i64) -> Provenance {
    let handoff = Some(HandoffId(3));
    Provenance { by: Party::from(who), at: Time(at), run: Some(run()), handoff }
}

pub(crate) fn batch(key: &str, at: i64, writes: Vec<Write>) -> Batch {
    Batch { key: key.into(), provenance: by("decisions", at), writes }
}

pub(crate) fn goal(id: &str) -> Entity {
    Entity::Goal(Goal {
        id: id.into(),
        title: format!("Goal {id}"),
        horizon: "quarter".into(),
        target: "seen".into(),
    })
}

pub(crate) fn discussion(id: &str) -> Entity {
    Entity::Discussion(Discussion {
        id: id.into(),
        topic: "Übung \"quoted\" 'and' {braced} \\ $param".into(),
        alignment: 0.75,
        recommendation: Recommendation::Approve,
        thread: Some("th1".into()),
    })
}

pub(crate) fn decision(id: &str, status: DecisionStatus) -> Entity {
    let mut breakdown = stafette_core::Fields::new();
    breakdown.insert("benefit".into(), serde_json::json!({"amount": 100.5, "weight": 1}));
    Entity::Decision(Decision {
        id: id.into(),
        option: "build".into(),
        roi: 12.0,
        reasoning: "most for least".into(),
        serves_goal_type: Some("quarter".into()),
        status,
        actual_return: None,
        breakdown,
    })
}

pub(crate) fn task(id: &str, hours: f64) -> Entity {
    Entity::Task(Task {
        id: id.into(),
        title: format!("Task {id}"),
        effort_hours: hours,
        priority: Priority::High,
        status: TaskStatus::Open,
        kind: Some("code".into()),
        estimated_hours: None,
        actual_hours: None,
        event: None,
    })
}

pub(crate) fn insight(id: &str, topic: &str, confidence: f64) -> Entity {
    Entity::Insight(InsightNode {
        id: id.into(),
        pattern: "code takes 1.5 times what is estimated".into(),
        confidence,
        evidence: "six tasks".into(),
        topic: topic.into(),
        finding: stafette_core::Fields::new(),
    })
}

pub(crate) fn handoff(number: u32) -> Entity {
    Entity::Handoff(Handoff {
        id: NodeKey::handoff(run(), HandoffId(number)).id,
        from: "decisions".into(),
        to: "execute".into(),
        reason: "stage".into(),
        state: "closed".into(),
        summary: String::new(),
        seconds: Some(12.5),
        dollars: None,
    })
}

pub(crate) fn link(from: NodeKey, relation: Relation, to: NodeKey) -> Write {
    Write::Link { from, relation, to }
}

/// A whole small story: a goal, a discussion, a decision, two tasks, an insight and a handoff.
pub(crate) async fn told(graph: &dyn Graph) {
    let d1 = || NodeKey::decision("d1");
    let writes = vec![
        Write::Put(goal("g1")),
        Write::Put(discussion("talk1")),
        Write::Put(decision("d1", DecisionStatus::Planned)),
        Write::Put(task("t1", 2.0)),
        Write::Put(task("t2", 3.5)),
        Write::Put(insight("i1", "estimates of code", 0.9)),
        Write::Put(handoff(3)),
        link(d1(), Relation::Serves, NodeKey::goal("g1")),
        link(d1(), Relation::DecidedIn, NodeKey::discussion("talk1")),
        link(NodeKey::task("t1"), Relation::PartOf, d1()),
        link(NodeKey::task("t2"), Relation::PartOf, d1()),
        link(NodeKey::task("t2"), Relation::DependsOn, NodeKey::task("t1")),
        link(NodeKey::insight("i1"), Relation::LearnedFrom, NodeKey::task("t1")),
        link(NodeKey::handoff(run(), HandoffId(3)), Relation::Produced, d1()),
    ];
    graph.apply(&batch("story", 1000, writes)).await.expect("the story is written");
}
