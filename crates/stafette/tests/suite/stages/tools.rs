//! Every tool for what is known, called by the stage that it is for and by those whom it is not for,
//! with good and bad input, and what the graph has of it afterwards.

use serde_json::{Value, json};

use super::{Wall, outside};
use crate::mcp_stdio::{Talk, next_turn};
use crate::world::{World, until};

const GOALS: &str = "odei.neo4j.goals.list.v1";
const LEARNED: &str = "odei.neo4j.insights.list.v1";
const LEARN: &str = "odei.neo4j.insights.create.v1";
const DECIDE: &str = "odei.neo4j.decisions.create.v1";
const PENDING: &str = "odei.neo4j.decisions.pending.v1";
const REPORT: &str = "odei.neo4j.tasks.report.v1";
const CALENDAR: &str = "odei.apple.calendar.read.v1";

/// A stage that has the work.
struct Stage<'a> {
    talk: &'a mut Talk,
    run: Value,
    turn: Value,
}

impl<'a> Stage<'a> {
    /// Takes the next turn of the run.
    fn next(talk: &'a mut Talk, run: &Value) -> Self {
        let turn = next_turn(talk, run);
        Stage { talk, run: run.clone(), turn }
    }

    fn call(&mut self, tool: &str, mut arguments: Value) -> Result<Value, String> {
        arguments["run"] = self.run.clone();
        arguments["turn"] = self.turn.clone();
        self.talk.call(tool, arguments)
    }

    fn gets(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).unwrap_or_else(|why| panic!("{tool}: {why}"))
    }

    /// Calls a tool that says no with these words.
    fn is_refused(&mut self, tool: &str, arguments: Value, words: &str) {
        let said = self.call(tool, arguments.clone());
        let why = said.expect_err(&format!("{tool} with {arguments}"));
        assert!(why.contains(words), "{tool} with {arguments}: {why}");
    }

    /// Hands on, and ends its turn.
    fn hands(mut self, to: &str, kind: &str, outputs: Value) {
        let offer = json!({ "to": to, "kind": kind, "summary": "On it goes", "outputs": outputs });
        self.gets("handoff", offer);
        let status = if kind == "delegate" { "partial" } else { "resolved" };
        self.gets("complete", json!({ "status": status, "summary": "Done with it" }));
    }
}

/// A call of each tool that would be good, for those who must not.
fn good(tool: &str) -> Value {
    match tool {
        LEARN => json!({ "id": "x", "pattern": "p", "confidence": 0.5, "evidence": "e" }),
        DECIDE => json!({ "reasoning": "because" }),
        REPORT => json!({ "task": "t", "actual_hours": 1 }),
        CALENDAR => json!({ "from": "2026-03-02T00:00:00Z", "to": "2026-03-09T00:00:00Z" }),
        _ => json!({}),
    }
}

fn node(world: &World, key: &str) -> Value {
    world.get(&format!("http://d/v1/graph/nodes/{key}"))
}

#[test]
fn s1_13_each_stage_has_its_tools_and_the_graph_has_what_they_wrote() {
    let world = outside("folder = \"calendar\"\n");
    let wall = Wall::at(world.home(), "2026-03-02T07:00:00Z");
    world.run_with(&["up"], b"", &[wall.env()]).ok();
    let mut talk = Talk::new(&world, &[]);
    let run = talk.call("start_run", json!({ "request": "Four days a week?" })).expect("a run");
    let run = run["run"].clone();
    let name = run.as_str().expect("a run").to_owned();

    // Discuss sees goals and the calendar, and writes in threads.
    let mut discuss = Stage::next(&mut talk, &run);
    let goals = discuss.gets(GOALS, json!({}));
    let ids: Vec<&str> = goals["goals"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|g| g["goal"]["id"].as_str())
        .collect();
    assert_eq!(ids, ["craft", "health", "income"], "{goals}");
    discuss.is_refused(GOALS, json!({ "all": true }), "has no argument `all`");
    let week = discuss.gets(CALENDAR, good(CALENDAR));
    assert_eq!(week["week"]["events"], json!([]));
    for (from, to, why) in [
        ("monday", "2026-03-09T00:00:00Z", "not a moment"),
        ("2026-03-09T00:00:00Z", "2026-03-02T00:00:00Z", "not after the beginning"),
        ("2026-03-02T00:00:00Z", "2027-03-02T00:00:00Z", "behind it"),
    ] {
        discuss.is_refused(CALENDAR, json!({ "from": from, "to": to }), why);
    }
    let said = json!({ "title": "Four days?", "body": "Only if support stays reachable" });
    let thread = discuss.gets("history_append", said)["thread_id"].clone();
    let more = json!({ "thread_id": thread, "body": "It does" });
    assert_eq!(discuss.gets("history_append", more)["seq"], 2);
    discuss.is_refused("history_append", json!({ "thread_id": thread, "body": "" }), "body");
    discuss.is_refused("history_append", json!({ "thread_id": "none", "body": "x" }), "none");
    discuss.is_refused("history_append", json!({ "title": "x" }), "body");
    let read = discuss.gets("history_read", json!({ "thread_id": thread, "after": 1 }));
    assert_eq!(read["messages"][0]["body"], "It does", "{read}");
    discuss.is_refused("history_read", json!({ "thread_id": "none" }), "none");
    let hits = discuss.gets("history_search", json!({ "words": "support reach" }));
    assert_eq!(hits["hits"].as_array().map(Vec::len), Some(1), "{hits}");
    let none = discuss.gets("history_search", json!({ "words": "support", "module": "mind" }));
    assert_eq!(none["hits"], json!([]));
    for tool in [LEARNED, LEARN, PENDING, DECIDE, REPORT] {
        let words = if tool == DECIDE { "No person has approved" } else { "discuss may not" };
        discuss.is_refused(tool, good(tool), words);
    }
    let past = discuss.turn.clone();
    let answers: Vec<Value> = (1..=4)
        .map(|n| json!({ "principle": n.to_string(), "verdict": "holds", "reason": "It does." }))
        .collect();
    discuss.hands(
        "decisions",
        "transfer",
        json!({
            "thread_id": thread, "check_results": answers, "score": 0.8, "recommendation": "APPROVE",
        }),
    );
    let talked = until("the discussion", || {
        let found = node(&world, &format!("discussion:{}", thread.as_str()?));
        (found["recommendation"] == "APPROVE").then_some(found)
    });
    assert_eq!((&talked["alignment"], &talked["made"]["by"]), (&json!(0.8), &json!("discuss")));

    // Decisions sees what was learned, and records what a person approved.
    let mut decisions = Stage::next(&mut talk, &run);
    assert_eq!(decisions.gets(LEARNED, json!({ "topic": "estimate" }))["insights"], json!([]));
    decisions.is_refused(LEARNED, json!({ "topic": 7 }), "do not fit");
    decisions.is_refused(DECIDE, good(DECIDE), "No person has approved");
    for tool in [PENDING, REPORT, CALENDAR, LEARN] {
        decisions.is_refused(tool, good(tool), "decisions may not");
    }
    // A turn that is over gives nobody its role.
    let own = std::mem::replace(&mut decisions.turn, past);
    decisions.is_refused(GOALS, json!({}), "is over");
    decisions.turn = own;
    let options = json!([
        { "id": "a", "title": "Do it", "benefit": 1000, "cost": 0, "hours": 10, "risk": 0,
          "probability": 1, "goals": [{ "goal": "craft", "strength": 0.5 }] },
        { "id": "b", "title": "Leave it", "benefit": 0, "cost": 0, "hours": 0, "risk": 0, "probability": 1 },
    ]);
    decisions.hands("human", "delegate", json!({ "candidates": options }));
    world.answer(&world.question(&name, "decision_approval"), "a");
    let mut decisions = Stage::next(&mut talk, &run);
    decisions.is_refused(DECIDE, json!({}), "reasoning");
    let why = "It serves craft, and pays back at once";
    let given = decisions.gets(DECIDE, json!({ "reasoning": why }));
    let evidence = given["evidence"].clone();
    assert_eq!(evidence["goals"], json!(["craft"]));
    let decision = evidence["decision_id"].as_str().expect("an id").to_owned();
    let kept = node(&world, &format!("decision:{decision}"));
    assert_eq!((&kept["reasoning"], &kept["status"]), (&json!(why), &json!("pending")), "{kept}");
    assert_eq!(kept["changed"]["by"], "decisions");
    decisions.gets(DECIDE, json!({ "reasoning": why }));
    let around = world.get(&format!("http://d/v1/graph/nodes/decision:{decision}/around"));
    let linked = around["links"].to_string();
    assert!(linked.contains("goal:craft") && linked.contains("discussion:"), "{around}");
    decisions.hands("execute", "transfer", evidence);

    // Execute takes it up, and tells how its tasks went.
    let mut execute = Stage::next(&mut talk, &run);
    let pending = execute.gets(PENDING, json!({}));
    assert_eq!(pending["decisions"][0]["id"], json!(decision), "{pending}");
    execute.gets(CALENDAR, good(CALENDAR));
    for tool in [GOALS, LEARNED, LEARN] {
        execute.is_refused(tool, good(tool), "execute may not");
    }
    execute.is_refused(REPORT, good(REPORT), "there is no task:t");
    let tasks = json!([{ "id": "t1", "title": "Ask everyone", "hours": 2, "kind": "talk" }]);
    execute.hands("human", "delegate", json!({ "tasks": tasks }));
    world.answer(&world.question(&name, "plan_approval"), "approve");
    let mut execute = Stage::next(&mut talk, &run);
    let task = until("the task", || {
        let list = world.get("http://d/v1/graph/nodes?label=Task");
        Some(list["nodes"].as_array()?.first()?["id"].as_str()?.to_owned())
    });
    for (report, why) in [
        (json!({ "task": task, "actual_hours": -1 }), "actualHours is -1"),
        (json!({ "task": task, "actual_hours": 1, "done_at": "soon" }), "not a moment"),
        (json!({ "actual_hours": 1 }), "task"),
    ] {
        execute.is_refused(REPORT, report, why);
    }
    assert_eq!(node(&world, &format!("task:{task}"))["actualHours"], Value::Null);
    let done = json!({ "task": task, "actual_hours": 3.5, "done_at": "2026-03-02T13:00:00Z" });
    assert_eq!(execute.gets(REPORT, done)["task"]["actualHours"], 3.5);
    let kept = node(&world, &format!("task:{task}"));
    assert_eq!((&kept["actualHours"], &kept["status"]), (&json!(3.5), &json!("done")), "{kept}");
    assert_eq!((&kept["estimatedHours"], &kept["changed"]["by"]), (&json!(2.0), &json!("execute")));
    assert_eq!(execute.gets(PENDING, json!({}))["decisions"], json!([]), "it is planned");
    execute.hands("mind", "transfer", json!({}));

    // Mind sees it all, and keeps what it found.
    let mut mind = Stage::next(&mut talk, &run);
    let served = mind.gets(GOALS, json!({})).to_string();
    assert!(served.contains(&decision), "it may see decisions: {served}");
    mind.gets(PENDING, json!({}));
    for tool in [REPORT, CALENDAR] {
        mind.is_refused(tool, good(tool), "mind may not");
    }
    let from = format!("task:{task}");
    let found = |confidence: f64, from: &str| {
        json!({
            "id": "talk", "pattern": "Talks take longer", "confidence": confidence,
            "evidence": "one of one", "topic": "talk", "learned_from": [from],
        })
    };
    mind.is_refused(LEARN, found(7.0, &from), "confidence is 7");
    mind.is_refused(LEARN, found(0.7, "task:none"), "task:none");
    mind.is_refused(LEARN, found(0.7, "nothing"), "nothing");
    let insight =
        mind.gets(LEARN, found(0.7, &from))["insight"].as_str().expect("a key").to_owned();
    assert_eq!(mind.gets(LEARN, found(0.7, &from))["insight"], json!(insight), "once is enough");
    let around = world.get(&format!("http://d/v1/graph/nodes/{insight}/around"));
    assert!(around["links"].to_string().contains(&from), "{around}");
    let listed = mind.gets(LEARNED, json!({ "topic": "talk" }));
    assert_eq!(listed["insights"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(mind.gets(LEARNED, json!({ "topic": "elephants" }))["insights"], json!([]));
    mind.gets("complete", json!({ "summary": "That was it" }));
    world.ends(&name);
    world.run(&["down"]).ok();
}
