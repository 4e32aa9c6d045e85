//! Who may see and write what, by real requests with the tokens of each role and of a person. What
//! is expected is asked of the one table.

use serde_json::{Value, json};
use stafette_core::Party;
use stafette_knowledge::rights::{Access, Data, check, roles};

use super::door::Door;
use super::outside;
use crate::world::until;

/// A request: its first line, its body, and what it needs.
type Request = (&'static str, Option<Value>, Vec<(Access, Data)>);

/// Requests for what roles may or may not see and write.
fn requests() -> Vec<Request> {
    use Access::{Read, Write};
    let options = json!({ "options": [{ "id": "a", "title": "A" }] });
    vec![
        ("GET /v1/threads", None, vec![(Read, Data::History)]),
        ("GET /v1/threads/search?q=x", None, vec![(Read, Data::History)]),
        ("GET /v1/threads/none", None, vec![(Read, Data::History)]),
        ("POST /v1/threads", Some(json!({ "body": "Said" })), vec![(Write, Data::History)]),
        ("GET /v1/goals", None, vec![(Read, Data::Goals)]),
        ("GET /v1/constitution", None, vec![(Read, Data::Goals)]),
        ("GET /v1/graph/nodes?label=Goal", None, vec![(Read, Data::Goals)]),
        ("GET /v1/graph/nodes?label=Discussion", None, vec![(Read, Data::Discussions)]),
        ("GET /v1/graph/nodes?label=Decision", None, vec![(Read, Data::Decisions)]),
        ("GET /v1/graph/nodes?label=Task", None, vec![(Read, Data::Tasks)]),
        ("GET /v1/graph/nodes?label=Insight", None, vec![(Read, Data::Insights)]),
        ("GET /v1/graph/nodes?label=Handoff", None, vec![(Read, Data::Handoffs)]),
        ("GET /v1/graph/nodes/task:none", None, vec![(Read, Data::Tasks)]),
        ("GET /v1/graph/nodes/goal:craft/around", None, vec![(Read, Data::Goals)]),
        ("GET /v1/decisions", None, vec![(Read, Data::Decisions)]),
        ("GET /v1/decisions/none", None, vec![(Read, Data::Decisions)]),
        (
            "POST /v1/decisions/rank",
            Some(options),
            vec![(Read, Data::Goals), (Read, Data::Insights)],
        ),
        ("POST /v1/tasks/none", Some(json!({ "actual_hours": 1 })), vec![(Write, Data::Tasks)]),
        ("GET /v1/calendar", None, vec![(Read, Data::Calendar)]),
        ("GET /v1/insights", None, vec![(Read, Data::Insights)]),
        ("GET /v1/insights/none/evidence", None, vec![(Read, Data::Insights)]),
        ("POST /v1/insights/reflect", Some(json!({})), vec![(Write, Data::Insights)]),
        ("GET /v1/parameters", None, vec![(Read, Data::Parameters)]),
    ]
}

/// What only a person does.
fn decisions() -> Vec<(&'static str, Value)> {
    let times = json!({ "start": "2026-03-02T09:00:00Z", "end": "2026-03-02T10:00:00Z" });
    vec![
        ("POST /v1/decisions/none/outcome", json!({ "actual": 1 })),
        ("POST /v1/calendar/blocks/none/accept", json!({})),
        ("POST /v1/calendar/blocks/none/drop", json!({})),
        ("POST /v1/calendar/blocks/none/move", times),
        ("POST /v1/insights/none/accept", json!({})),
        ("POST /v1/parameters/rollback", json!({ "to": 99 })),
    ]
}

#[test]
fn s1_13_a_token_of_an_agent_has_its_roles_rights_and_a_persons_token_a_persons() {
    let door = Door::open(outside("folder = \"calendar\"\n"), &[]);
    let person = door.person().to_owned();
    let stranger = ["token", "create", "stranger-1", "--agent", "stranger"];
    assert_eq!(door.world().run(&stranger).code, 2, "a token for no agent opens nothing");
    for role in roles() {
        let (token, who) = (door.agent(role), Party::from(role));
        for (first, body, needs) in requests() {
            let refused = needs.iter().find_map(|(access, data)| check(&who, *access, *data).err());
            let (status, said) = door.ask(&token, first, body.as_ref());
            match refused {
                Some(refused) => {
                    assert_eq!(
                        (status, &said["code"]),
                        (403, &json!("not_granted")),
                        "{role} {first}"
                    );
                    assert_eq!(said["title"], json!(refused.to_string()), "{role} {first}");
                    let log = door.world().kept("daemon.log");
                    assert!(log.contains(&refused.to_string()), "it is in the log: {refused}");
                }
                None => assert!(![401, 403].contains(&status), "{role} {first}: {status} {said}"),
            }
        }
        for (first, body) in decisions() {
            let (status, said) = door.ask(&token, first, Some(&body));
            assert_eq!((status, &said["code"]), (403, &json!("not_for_agents")), "{role} {first}");
        }
        let nothing = json!({ "stafette_graph": 1, "records": [] });
        for (first, body) in
            [("GET /v1/graph/export", None), ("POST /v1/graph/import", Some(nothing))]
        {
            let (status, said) = door.ask(&token, first, body.as_ref());
            assert_eq!((status, &said["code"]), (403, &json!("not_for_agents")), "{role} {first}");
        }
        // Nothing else is open to it.
        for (first, body) in [
            ("GET /v1/runs", None),
            ("POST /v1/runs", Some(json!({ "request": "More of me" }))),
            ("GET /v1/inbox", None),
            ("POST /v1/inbox/h1", Some(json!({ "text": "approve" }))),
            ("GET /v1/events", None),
            ("GET /v1/changes", None),
        ] {
            let (status, said) = door.ask(&token, first, body.as_ref());
            assert_eq!((status, &said["code"]), (403, &json!("not_for_agents")), "{role} {first}");
        }
        let (status, _) = door.ask(&token, "GET /v1/tokens", None);
        assert_eq!(status, 403, "{role}");
    }
    for (first, body, _) in requests() {
        let (status, said) = door.ask(&person, first, body.as_ref());
        assert!(![401, 403].contains(&status), "{first}: {status} {said}");
    }
    for (first, body) in decisions() {
        let (status, said) = door.ask(&person, first, Some(&body));
        assert_eq!(status, 404, "a person may, and there is none: {first} {said}");
    }
    let goal = door.ask(&person, "GET /v1/graph/nodes/goal:craft", None).1;
    assert_eq!(goal["made"]["by"], "human", "{goal}");
    let said = door.ask(&person, "GET /v1/threads?limit=500", None).1;
    let modules: Vec<&str> = said["threads"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|t| t["module"].as_str())
        .collect();
    assert!(modules.contains(&"human") && modules.contains(&"mind"), "each in its name: {said}");
    assert!(!modules.contains(&"stranger"), "{said}");
}

#[test]
fn s1_13_a_token_of_an_agent_takes_the_turns_of_that_agent_alone() {
    let door = Door::open(outside("folder = \"calendar\"\n"), &[]);
    let (discuss, mind) = (door.agent("discuss"), door.agent("mind"));
    let run = door.world().begin("Four days a week?");
    // By plain HTTP.
    let offered = until("the turn", || {
        let (_, offered) = door.ask(&discuss, "GET /v1/turns?within=5", None);
        offered.as_array().filter(|all| !all.is_empty()).cloned()
    });
    let handoff = offered[0]["key"].to_string();
    assert_eq!(door.ask(&mind, "GET /v1/turns", None), (200, json!([])), "{handoff}");
    let (status, said) = door.ask(&mind, "GET /v1/turns?agent=discuss", None);
    assert_eq!((status, &said["code"]), (403, &json!("not_yours")));
    let accept = format!("POST /v1/runs/{run}/handoffs/h1/accept");
    let (status, said) = door.ask(&mind, &accept, Some(&json!({})));
    assert_eq!((status, &said["code"]), (403, &json!("not_yours")), "{said}");
    let (status, said) = door.ask(&discuss, &accept, Some(&json!({})));
    assert_eq!(status, 200, "{said}");
    for (what, body) in [
        ("report", json!({ "turn": "1.1" })),
        ("complete", json!({ "turn": "1.1", "summary": "I did it" })),
        ("reject", json!({ "turn": "1.1", "why": "I will not" })),
    ] {
        let first = format!("POST /v1/runs/{run}/handoffs/h1/{what}");
        let (status, said) = door.ask(&mind, &first, Some(&body));
        assert_eq!((status, &said["code"]), (403, &json!("not_yours")), "{first}: {said}");
    }

    // By the tools: the turn's own agent has its rights, another one has none in it.
    let turn = json!({ "run": run, "turn": "h1/1.1" });
    let goals = "odei.neo4j.goals.list.v1";
    assert!(door.tool(&discuss, goals, &turn).is_ok());
    let why = door.tool(&mind, goals, &turn).expect_err("it is not its turn");
    assert!(why.contains("mind may not speak for discuss"), "{why}");
    let why = door.tool(&discuss, "odei.neo4j.decisions.pending.v1", &turn);
    let why = why.expect_err("its role may not");
    assert!(why.contains("discuss may not read decisions"), "{why}");
    for (tool, arguments) in [
        ("wait", json!({ "agent": "discuss", "within_seconds": 0 })),
        ("accept", json!({ "run": run, "handoff": "h1" })),
        ("complete", json!({ "run": run, "turn": "h1/1.1", "summary": "Mine" })),
    ] {
        let why = door.tool(&mind, tool, &arguments).expect_err(tool);
        assert!(why.contains("may not speak for discuss"), "{tool}: {why}");
    }
    let why = door.tool(&mind, "start_run", &json!({ "request": "More of me" }));
    assert!(why.expect_err("agents begin no runs").contains("may_not"));
    let log = door.world().kept("daemon.log");
    assert!(log.contains("an agent may not take the turns of another"), "{log}");
    assert!(log.contains("an agent may not speak for another"), "{log}");
}
