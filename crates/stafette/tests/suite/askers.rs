//! Many ask one run at the same moment: each gets the answer to its own question, at every
//! interface that waits for one.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use crate::doors::request;
use crate::web::{Response, Web};
use crate::world::{World, program, until};

/// An agent with as many turns at the same time as anybody wants.
const CROWD: &str = r#"
[workflow]
name = "crowd"
entry = "builder"
[agents.builder]
runner = "external"
estimate = { tokens = 1, money = 0.000001 }
[agents.reviewer]
runner = "external"
estimate = { tokens = 1, money = 0.000001 }
[[routes]]
from = "builder"
to = "reviewer"
[[routes]]
from = "reviewer"
to = "builder"
[[routes]]
from = "reviewer"
to = "orchestrator"
[[loops]]
name = "pair"
between = ["builder", "reviewer"]
[limits]
cooldown = 0
handoffs_per_item = 100000
handoffs_per_run = 100000
accept_timeout = "1h"
lease = "1h"
[budget]
handoffs = 100000
"#;

/// How many ask at the same time.
const CROWDS: [usize; 3] = [1, 48, 500];

/// Lets `count` askers begin at the same moment, and gives what each of them heard, in order.
fn at_the_same_time<T: Send>(count: usize, asks: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (start, asks) = (Barrier::new(count), &asks);
    thread::scope(|scope| {
        let asker = |number| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                asks(number)
            })
        };
        let askers: Vec<_> = (0..count).map(asker).collect();
        askers.into_iter().map(|asker| asker.join().expect("an answer")).collect()
    })
}

/// A proposal that can be told from all others by its id.
fn numbered(number: usize, from: &str, to: &str) -> Value {
    let mut document = request(from, to);
    document["traceId"] = format!("00000000-0000-4000-8000-{number:012}").into();
    document["timeoutMs"] = 3_600_000.into();
    document
}

/// A run in which as many turns of the builder are taken: where each is, and its key.
fn turns(web: &Web<'_>, count: usize) -> Vec<(String, String)> {
    web.post("/v1/runs", &json!({ "request": "Build it" })).ok();
    let place = |number: usize| {
        let proposed = web.post("/v1/handoffs?run=latest", &numbered(number, "human", "builder"));
        let proposed = proposed.ok();
        let text = |name: &str| proposed[name].as_str().expect("a name").to_owned();
        format!("/v1/runs/{}/handoffs/{}", text("run"), text("handoff"))
    };
    let take = |place: String| {
        let order = web.post(&format!("{place}/accept"), &json!({ "by": "builder" })).ok();
        (place, order["key"].as_str().expect("a key").to_owned())
    };
    (0..count).map(place).map(take).collect()
}

/// Whether every even asker was admitted under a number of its own, with its own proposal behind
/// it, and every odd one was refused with its own id.
fn each_has_its_own(web: &Web<'_>, answers: &[Response]) {
    let rows = web.get("/v1/runs/latest/handoffs").ok();
    let row = |id: &Value| rows.as_array()?.iter().find(|row| row["id"] == *id);
    let mut seen = BTreeSet::new();
    for (number, answer) in answers.iter().enumerate() {
        let trace = numbered(number, "a", "b")["traceId"].clone();
        if number % 2 == 1 {
            assert_eq!((answer.status, answer.code().as_str()), (409, "refused"), "{answer:?}");
            assert_eq!(answer.json()["answer"]["traceId"], trace);
            continue;
        }
        let id = answer.ok()["handoff"].clone();
        assert!(seen.insert(id.to_string()), "{id} was given twice");
        let row = row(&id).unwrap_or_else(|| panic!("there is no {id}"));
        assert_eq!(row["handoff"]["offer"]["foreign"]["id"], trace, "{id}");
    }
}

#[test]
fn b_18_everyone_who_proposes_hears_of_its_own_proposal() {
    for count in CROWDS {
        let world = World::workflow(CROWD);
        let web = Web::up(&world);
        web.post("/v1/runs", &json!({ "request": "Build it" })).ok();
        let answers = at_the_same_time(count, |number| {
            let to = if number % 2 == 0 { "builder" } else { "nobody" };
            web.post("/v1/handoffs?run=latest", &numbered(number, "human", to))
        });
        each_has_its_own(&web, &answers);
    }
}

#[test]
fn b_18_everyone_who_ends_a_turn_hears_of_its_own_turn() {
    for count in CROWDS {
        let world = World::workflow(CROWD);
        let web = Web::up(&world);
        let turns = turns(&web, count);
        let answers = at_the_same_time(count, |number| {
            let (place, key) = &turns[number];
            let to = if number % 2 == 0 { "reviewer" } else { "nobody" };
            let offer = json!({ "to": to, "summary": format!("part {number}") });
            web.post(&format!("{place}/complete"), &json!({ "turn": key, "handoffs": [offer] }))
        });
        let rows = web.get("/v1/runs/latest/handoffs").ok();
        for (number, answer) in answers.iter().enumerate() {
            let ended = answer.ok();
            assert_eq!(ended["turn"], turns[number].1);
            if number % 2 == 1 {
                assert_eq!(ended["admitted"], json!([]), "{ended}");
                assert!(ended["refused"].to_string().contains("Unknown target"), "{ended}");
                continue;
            }
            let [id] = ended["admitted"].as_array().expect("a list").as_slice() else {
                panic!("one proposal became {ended}");
            };
            let row = rows.as_array().and_then(|rows| rows.iter().find(|row| row["id"] == *id));
            let summary = &row.expect("its handoff")["handoff"]["offer"]["summary"];
            assert_eq!(*summary, format!("part {number}"));
        }
    }
}

#[test]
fn b_18_of_two_who_answer_one_question_or_take_one_turn_one_has_it() {
    for count in CROWDS {
        let world = World::workflow(CROWD);
        let web = Web::up(&world);
        web.post("/v1/runs", &json!({ "request": "Build it" })).ok();
        let ask = |number: usize, to: &str| {
            let document = numbered(number, "human", to);
            web.post("/v1/handoffs?run=latest", &document).ok()["handoff"].clone()
        };
        let pairs = count.div_ceil(2);
        let questions: Vec<Value> = (0..pairs).map(|number| ask(number, "human")).collect();
        let turns: Vec<Value> = (0..pairs).map(|number| ask(number, "builder")).collect();
        let text = |value: &Value| value.as_str().expect("a handoff").to_owned();
        let answers = at_the_same_time(2 * pairs, |number| {
            let question = text(&questions[number / 2]);
            let words = json!({ "text": format!("answer {number}") });
            let answered = web.post(&format!("/v1/inbox/latest:{question}"), &words);
            let turn = text(&turns[number / 2]);
            let place = format!("/v1/runs/latest/handoffs/{turn}/accept");
            (answered, web.post(&place, &json!({ "by": format!("agent {number}") })))
        });
        let rows = web.get("/v1/runs/latest/handoffs").ok();
        let row = |id: &Value| {
            let rows = rows.as_array().expect("rows").iter();
            rows.clone().find(|row| row["id"] == *id).expect("its row").clone()
        };
        for pair in 0..pairs {
            let had = |which: fn(&(Response, Response)) -> &Response| {
                let both = [2 * pair, 2 * pair + 1];
                let won: Vec<usize> =
                    both.into_iter().filter(|n| which(&answers[*n]).status == 200).collect();
                let statuses: Vec<u16> = both.iter().map(|n| which(&answers[*n]).status).collect();
                assert_eq!(won.len(), 1, "{statuses:?}");
                assert!(statuses.contains(&409), "{statuses:?}");
                won[0]
            };
            let answered = had(|(answered, _)| answered);
            let closed = row(&questions[pair]);
            assert!(closed.to_string().contains(&format!("\"answer {answered}\"")), "{closed}");
            let taken = had(|(_, taken)| taken);
            let held = row(&turns[pair]);
            assert!(held.to_string().contains(&format!("\"agent {taken} by test\"")), "{held}");
        }
    }
}

#[test]
fn b_18_everyone_who_comes_by_mcp_hears_of_its_own_turn() {
    for count in CROWDS {
        let world = World::workflow(CROWD);
        let web = Web::up(&world);
        let turns = turns(&web, count);
        let call = |tool: &str, arguments: &Value| {
            let body = json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {
                    "name": tool,
                    "arguments": arguments,
                    "_meta": {
                        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                        "io.modelcontextprotocol/clientInfo": { "name": "crowd", "version": "1" },
                        "io.modelcontextprotocol/clientCapabilities": {},
                    },
                },
            });
            let headers = [
                web.bearer(),
                "Accept: application/json, text/event-stream".to_owned(),
                "MCP-Protocol-Version: 2026-07-28".to_owned(),
                "Mcp-Method: tools/call".to_owned(),
                format!("Mcp-Name: {tool}"),
            ];
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            web.plain("POST /mcp", &headers, &body.to_string())
        };
        let answers = at_the_same_time(count, |number| {
            let to = if number % 2 == 0 { "reviewer" } else { "nobody" };
            let (_, key) = &turns[number];
            call("handoff", &json!({ "turn": key, "to": to, "summary": format!("part {number}") }))
        });
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(answer.status, 200, "{answer:?}");
            let refused = answer.body.contains("Unknown target");
            assert_eq!(refused, number % 2 == 1, "{number}: {answer:?}");
        }
    }
}

/// Sends a message by A2A, and gives what its sender hears.
fn message(web: &Web<'_>, id: &str, text: &str, more: &Value) -> Response {
    let mut message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    message.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("fields"));
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    web.post("/a2a/v1/message:send", &body)
}

#[test]
fn b_18_everyone_who_comes_by_a2a_has_its_own_task_and_one_of_two_answers() {
    for count in CROWDS {
        let world = World::workflow(CROWD);
        let web = Web::up(&world);
        let begun = at_the_same_time(count, |number| {
            message(&web, &format!("begins {number}"), &format!("part {number}"), &json!({}))
        });
        let mut seen = BTreeSet::new();
        for (number, answer) in begun.iter().enumerate() {
            let task = answer.ok()["task"]["id"].as_str().expect("a task").to_owned();
            let run = web.get(&format!("/v1/runs/{task}")).ok();
            assert_eq!(run["request"], format!("part {number}"), "{answer:?}");
            assert!(seen.insert(task), "{number}: a task was given twice");
        }

        let run = web.post("/v1/runs", &json!({ "request": "Build it" })).ok()["run"].clone();
        let ask = |number: usize| {
            let place = format!("/v1/runs/{}/handoffs", run.as_str().expect("a run"));
            web.post(&place, &numbered(number, "human", "human")).ok()["handoff"].clone()
        };
        let questions: Vec<Value> = (0..count.div_ceil(2)).map(ask).collect();
        let answers = at_the_same_time(2 * questions.len(), |number| {
            let place = json!({ "taskId": run, "metadata": { "question": questions[number / 2] } });
            message(&web, &format!("answers {number}"), &format!("answer {number}"), &place)
        });
        let rows = web.get(&format!("/v1/runs/{}/handoffs", run.as_str().expect("a run"))).ok();
        for (question, pair) in questions.iter().zip(answers.chunks(2)) {
            let first = 2 * questions.iter().position(|one| one == question).expect("it");
            let statuses: Vec<u16> = pair.iter().map(|answer| answer.status).collect();
            let won = statuses.iter().position(|status| *status == 200).expect("one is taken");
            assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{pair:?}");
            let row =
                rows.as_array().and_then(|rows| rows.iter().find(|row| row["id"] == *question));
            let kept = row.expect("its row").to_string();
            assert!(kept.contains(&format!("\"answer {}\"", first + won)), "{kept}");
        }
    }
}

#[test]
fn b_18_every_file_that_is_dropped_moves_by_its_own_fate() {
    for count in CROWDS {
        let team = CROWD.replace("reviewer", "fixer").replace("builder", "reviewer");
        let world = World::workflow(&format!("{team}\n[coordination]\n"));
        let web = Web::up(&world);
        let begin = |number: usize| {
            let request = json!({ "request": format!("part {number}") });
            web.post("/v1/runs", &request).ok()["run"].clone()
        };
        let runs: Vec<Value> = (0..count).map(begin).collect();
        let id = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
        let draft = world.project().join(".claude/draft");
        std::fs::create_dir_all(&draft).expect("a folder");
        let pending = world.project().join(".claude/handoffs/pending");
        at_the_same_time(count, |number| {
            // Odd ones are for a run that is not there.
            let run = if number % 2 == 0 { runs[number].clone() } else { json!(id(number)) };
            let message = json!({
                "schema_version": "1.0.0", "message_id": id(number),
                "timestamp": "2026-02-11T08:01:00Z", "from": "reviewer", "to": "fixer",
                "type": "fix_request", "priority": "medium", "status": "pending",
                "payload": { "summary": format!("part {number}") },
                "context": { "run": run, "workflow": "feature", "spec": "s.md", "iteration": 1 },
            });
            let (from, name) = (draft.join(number.to_string()), format!("{number}.json"));
            std::fs::write(&from, message.to_string()).expect("written");
            std::fs::rename(from, pending.join(name)).expect("dropped");
        });
        for (number, run) in runs.iter().enumerate() {
            let place = format!("/v1/runs/{}/handoffs", run.as_str().expect("a run"));
            let why = format!(".claude/handoffs/rejected/{number}.reason.json");
            let rejected = || serde_json::from_str::<Value>(&world.read(&why)).ok();
            if number % 2 == 1 {
                let why = until(&why, rejected);
                assert_eq!(why["message_id"], id(number), "{why}");
                assert_eq!(why["code"], "no_turn", "{why}");
                continue;
            }
            let mine = until("its handoff", || {
                assert_eq!(rejected(), None);
                let rows = web.get(&place).ok();
                let mut rows = rows.as_array()?.clone().into_iter();
                rows.find(|row| row["handoff"]["offer"]["to"] == "fixer")
            });
            let offer = &mine["handoff"]["offer"];
            assert_eq!(offer["foreign"]["id"], id(number), "{mine}");
            assert_eq!(offer["summary"], format!("part {number}"), "{mine}");
        }
    }
}

#[test]
fn b_18_every_emit_hears_what_became_of_its_own_words() {
    for count in CROWDS {
        let world = World::workflow(&CROWD.replacen(
            "runner = \"external\"",
            "runner = \"exec\"\ncommand = [\"sh\", \"crowd.sh\"]",
            1,
        ));
        let script = format!(
            r#"cat > /dev/null
number=0
while [ $number -lt {count} ]; do
  to=reviewer; [ $((number % 2)) = 1 ] && to=nobody
  (
    '{program}' emit --json HANDOFF "{{\"to\":\"$to\",\"summary\":\"part $number\"}}" > said.$number 2>&1
    echo "exit $?" >> said.$number
  ) &
  number=$((number + 1))
done
wait
"#,
            program = program(),
        );
        world.write("crowd.sh", &script);
        world.run(&["trust", "--yes"]).ok();
        let web = Web::up(&world);
        web.post("/v1/runs", &json!({ "request": "Build it" })).ok();
        let rows = until("the end of the turn", || {
            let rows = web.get("/v1/runs/latest/handoffs").ok();
            let rows = rows.as_array().expect("rows");
            let first = rows.iter().find(|row| row["id"] == "h1")?;
            (!first["closed_at"].is_null()).then(|| rows.clone())
        });
        let mut taken = 0;
        for number in 0..count {
            let said = world.read(&format!("said.{number}"));
            let summary = json!(format!("part {number}"));
            let is_mine = |row: &&Value| {
                let offer = &row["handoff"]["offer"];
                offer["summary"] == summary
                    && offer["to"] == "reviewer"
                    && row["handoff"]["refusal"].is_null()
            };
            let mine = rows.iter().filter(is_mine).count();
            if said.contains("exit 0") {
                taken += 1;
                assert_eq!((number % 2, mine), (0, 1), "{number}: {said}");
                continue;
            }
            assert_eq!(mine, 0, "{number}: {said}");
            let unknown = number % 2 == 1 && said.contains("Unknown target");
            assert!(unknown || said.contains("may propose 32 handoffs"), "{number}: {said}");
        }
        // A turn hands on to 32 at most.
        assert_eq!(taken, count.div_ceil(2).min(32));
    }
}
