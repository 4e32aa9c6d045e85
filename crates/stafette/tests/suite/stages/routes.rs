//! Every route for what is known, with good and bad input. Which there are is read from the
//! description of the API, so that a new one has to be tried here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::door::Door;
use super::{Wall, project};
use crate::world::until;

/// Calls as a person, and remembers which routes answered how.
struct Caller<'a> {
    door: &'a Door,
    templates: Vec<(String, Vec<String>, bool)>,
    heard: BTreeMap<String, BTreeSet<u16>>,
}

impl<'a> Caller<'a> {
    fn new(door: &'a Door) -> Self {
        let (_, api) = door.ask(door.person(), "GET /openapi.json", None);
        let paths = api["paths"].as_object().expect("paths").clone();
        let mut templates = Vec::new();
        for (path, operations) in &paths {
            for (method, about) in operations.as_object().into_iter().flatten() {
                if about["tags"] == json!(["knowledge"]) {
                    let parts = path.split('/').map(str::to_owned).collect();
                    let takes =
                        about.get("parameters").is_some() || about.get("requestBody").is_some();
                    templates.push((format!("{} {path}", method.to_uppercase()), parts, takes));
                }
            }
        }
        Caller { door, templates, heard: BTreeMap::new() }
    }

    /// The route that a request is for: the one with the fewest blanks that fits.
    fn route(&self, first: &str) -> String {
        let (method, path) = first.split_once(' ').expect("a method");
        let path: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').collect();
        let fits = self.templates.iter().filter(|(name, parts, _)| {
            name.starts_with(&format!("{method} "))
                && parts.len() == path.len()
                && parts
                    .iter()
                    .zip(&path)
                    .all(|(part, given)| part.starts_with('{') || part == given)
        });
        let blanks = |parts: &[String]| parts.iter().filter(|part| part.starts_with('{')).count();
        let found = fits.min_by_key(|(_, parts, _)| blanks(parts));
        found.unwrap_or_else(|| panic!("{first} is in no description")).0.clone()
    }

    fn call(&mut self, first: &str, body: Option<Value>) -> (u16, Value) {
        let (status, said) = self.door.ask(self.door.person(), first, body.as_ref());
        self.heard.entry(self.route(first)).or_default().insert(status);
        (status, said)
    }

    fn gets(&mut self, first: &str) -> Value {
        let (status, said) = self.call(first, None);
        assert_eq!(status, 200, "{first}: {said}");
        said
    }

    fn posts(&mut self, first: &str, body: Value) -> Value {
        let (status, said) = self.call(first, Some(body));
        assert!(status == 200 || status == 201, "{first}: {status} {said}");
        said
    }

    /// Says no with this status and code.
    fn refuses(&mut self, first: &str, body: Option<Value>, status: u16, code: &str) {
        let said = self.call(first, body);
        assert_eq!((said.0, &said.1["code"]), (status, &json!(code)), "{first}: {}", said.1);
    }

    /// Every route was tried: well, badly where it takes anything, and without a token.
    fn tried_everything(&self) {
        for (route, _, takes) in &self.templates {
            let heard = self.heard.get(route).cloned().unwrap_or_default();
            assert!(heard.iter().any(|status| *status < 300), "{route} was never good: {heard:?}");
            let bad = heard.iter().any(|status| (400..500).contains(status));
            assert!(bad || !takes, "{route} was never given anything bad: {heard:?}");
            assert!(heard.iter().all(|status| *status < 500), "{route}: {heard:?}");
            let first = route.replace(['{', '}'], "");
            assert_eq!(self.door.ask("", &first, None).0, 401, "{route} for nobody");
        }
        assert!(self.templates.len() >= 25, "{:?}", self.templates);
    }
}

#[test]
fn s1_13_every_route_for_what_is_known_takes_what_is_good_and_says_what_is_bad() {
    let world = project("graph = \"sqlite\"\n", "folder = \"calendar\"\n");
    let wall = Wall::at(world.home(), "2026-03-23T07:30:00Z");
    let door = Door::open(world, &[wall.env()]);
    let mut caller = Caller::new(&door);
    let world = door.world();
    let run = world.begin("Have a better tool");
    let choice = world.question(&run, "decision_approval");
    let decision = format!("{run}.{}", choice["id"].as_str().expect("an id"));
    world.answer(&choice, "a");
    world.question(&run, "plan_approval");
    let week = until("blocks", || {
        let week =
            caller.gets("GET /v1/calendar?from=2026-03-23T00:00:00Z&to=2026-04-20T00:00:00Z");
        (week["proposals"].as_array()?.len() == 6).then_some(week)
    });
    let health = caller.gets("GET /v1/knowledge");
    assert_eq!((&health["graph"], &health["set_aside"]), (&json!("sqlite"), &json!([])));

    // Threads.
    let said = caller.posts("POST /v1/threads", json!({ "title": "T", "body": "An apple a day" }));
    let thread = said["thread_id"].as_str().expect("a thread").to_owned();
    let twice = json!({ "thread_id": thread, "body": "keeps", "id": "m-1" });
    let first = caller.posts("POST /v1/threads", twice.clone());
    assert_eq!(caller.posts("POST /v1/threads", twice)["seq"], first["seq"], "once is enough");
    caller.refuses(
        "POST /v1/threads",
        Some(json!({ "title": "T", "body": "" })),
        422,
        "bad_length",
    );
    let nowhere = json!({ "thread_id": "none", "body": "x" });
    caller.refuses("POST /v1/threads", Some(nowhere), 404, "no_thread");
    let (status, _) = caller.call("POST /v1/threads", Some(json!({ "title": "T" })));
    assert!((400..500).contains(&status), "{status}");
    let talk = caller.gets(&format!("GET /v1/threads/{thread}?after=1"));
    assert_eq!(talk["messages"][0]["body"], "keeps", "{talk}");
    caller.refuses("GET /v1/threads/none", None, 404, "no_thread");
    let own = caller.gets("GET /v1/threads?module=human");
    assert_eq!(own["threads"].as_array().map(Vec::len), Some(1), "{own}");
    let (status, _) = caller.call("GET /v1/threads?limit=0", None);
    assert_eq!(status, 422);
    let hits = caller.gets("GET /v1/threads/search?q=apple%20da");
    assert_eq!(hits["hits"].as_array().map(Vec::len), Some(1), "{hits}");
    let (status, _) = caller.call("GET /v1/threads/search", None);
    assert!((400..500).contains(&status), "{status}");

    // Goals, the graph and the constitution.
    assert_eq!(caller.gets("GET /v1/goals")["goals"].as_array().map(Vec::len), Some(3));
    assert!(caller.gets("GET /v1/graph")["nodes"].as_u64() > Some(3));
    let page = caller.gets("GET /v1/graph/export?limit=2");
    assert_eq!(page["records"].as_array().map(Vec::len), Some(2), "{page}");
    let taken = json!({ "stafette_graph": page["stafette_graph"], "records": page["records"] });
    assert_eq!(caller.posts("POST /v1/graph/import", taken.clone())["nodes"], 2);
    let mut newer = taken;
    newer["stafette_graph"] = json!(2);
    caller.refuses("POST /v1/graph/import", Some(newer), 422, "bad_query");
    caller.refuses("GET /v1/graph/export?after=here", None, 422, "not_a_place");
    let nodes = caller.gets("GET /v1/graph/nodes?label=Goal&after=craft&limit=1");
    assert_eq!(nodes["nodes"][0]["id"], "health", "{nodes}");
    let (status, _) = caller.call("GET /v1/graph/nodes?label=Elephant", None);
    assert!((400..500).contains(&status), "{status}");
    assert_eq!(caller.gets("GET /v1/graph/nodes/goal:craft")["horizon"], "quarter");
    caller.refuses("GET /v1/graph/nodes/goal:none", None, 404, "no_node");
    caller.refuses("GET /v1/graph/nodes/nonsense", None, 422, "not_a_node");
    let around = caller.gets("GET /v1/graph/nodes/goal:craft/around?reach=2");
    assert!(around.to_string().contains(&decision), "{around}");
    let (status, _) = caller.call("GET /v1/graph/nodes/goal:craft/around?reach=9", None);
    assert_eq!(status, 422);
    let answers = caller.gets(&format!("GET /v1/constitution?run={run}"));
    assert_eq!(answers["answers"][0]["answers"].as_array().map(Vec::len), Some(4), "{answers}");
    caller.refuses("GET /v1/constitution?run=ffffffff", None, 404, "no_run");

    // Decisions, what they return, and what came of them.
    assert_eq!(caller.gets("GET /v1/decisions")["decisions"][0]["id"], json!(decision));
    let options = |probability: f64| {
        let one = json!({
            "id": "a", "title": "A", "benefit": 100, "cost": 0, "hours": 1, "risk": 0,
            "probability": probability,
        });
        json!({ "options": [one] })
    };
    let ranked = caller.posts("POST /v1/decisions/rank", options(1.0));
    assert_eq!(ranked["ranked"][0]["total"], 50.0, "{ranked}");
    caller.refuses("POST /v1/decisions/rank", Some(options(3.0)), 422, "bad_options");
    let seen = caller.gets(&format!("GET /v1/decisions/{decision}"));
    assert_eq!((&seen["ranking"]["winner"], &seen["tasks"]), (&json!("a"), &json!([])));
    caller.refuses("GET /v1/decisions/none", None, 404, "no_node");
    let outcome = format!("POST /v1/decisions/{decision}/outcome");
    assert_eq!(caller.posts(&outcome, json!({ "actual": 900 }))["actualReturn"], 900.0);
    let kept = caller.gets(&format!("GET /v1/graph/nodes/decision:{decision}"));
    assert_eq!((&kept["actualReturn"], &kept["changed"]["by"]), (&json!(900.0), &json!("human")));
    let (status, _) = caller.call(&outcome, Some(json!({ "actual": "much" })));
    assert!((400..500).contains(&status), "{status}");
    caller.refuses("POST /v1/decisions/none/outcome", Some(json!({ "actual": 1 })), 404, "no_node");

    // Blocks of time.
    let id = |place: usize| week["proposals"][place]["id"].as_str().expect("an id").to_owned();
    let block = |place: usize, what: &str| format!("POST /v1/calendar/blocks/{}/{what}", id(place));
    let time = |day: &str| json!({ "start": format!("2026-{day}T09:00:00Z"), "end": format!("2026-{day}T11:00:00Z") });
    let moved = caller.posts(&block(5, "move"), time("04-03"));
    assert_eq!(moved["state"], "proposed");
    caller.refuses(&block(4, "move"), Some(time("04-03")), 409, "block_taken");
    let (status, _) = caller.call(&block(4, "move"), Some(json!({ "start": "x", "end": "y" })));
    assert_eq!(status, 422);
    for what in ["accept", "drop"] {
        caller.refuses(
            &format!("POST /v1/calendar/blocks/none/{what}"),
            Some(json!({})),
            404,
            "no_block",
        );
    }
    assert_eq!(caller.posts(&block(0, "accept"), json!({}))["state"], "written");
    caller.refuses(&block(0, "accept"), Some(json!({})), 409, "block_state");
    assert_eq!(caller.posts(&block(4, "drop"), json!({}))["state"], "dropped");
    caller.refuses(&block(4, "drop"), Some(json!({})), 409, "block_state");
    for place in [1, 2, 3, 5] {
        caller.posts(&block(place, "accept"), json!({}));
    }
    world.ends(&run);
    caller.refuses("GET /v1/calendar?from=soon", None, 422, "bad_time");
    caller.refuses("GET /v1/calendar?to=2026-03-01T00:00:00Z", None, 422, "bad_time");
    let week = caller.gets("GET /v1/calendar?to=2026-04-20T00:00:00Z");
    assert_eq!(week["events"].as_array().map(Vec::len), Some(5), "{week}");

    // Tasks, and what is learned from them.
    let tasks = until("the tasks", || {
        let seen = caller.gets(&format!("GET /v1/decisions/{decision}"));
        Some(seen["tasks"].as_array()?.clone()).filter(|tasks| tasks.len() == 6)
    });
    for task in &tasks {
        let first = format!("POST /v1/tasks/{}", task["id"].as_str().expect("an id"));
        assert_eq!(caller.posts(&first, json!({ "actual_hours": 3 }))["status"], "done");
    }
    let first = format!("POST /v1/tasks/{}", tasks[0]["id"].as_str().expect("an id"));
    caller.refuses(&first, Some(json!({ "actual_hours": -3 })), 422, "GRAPH_BATCH_MALFORMED");
    let late = json!({ "actual_hours": 3, "done_at": "later" });
    caller.refuses(&first, Some(late), 422, "mistaken");
    caller.refuses("POST /v1/tasks/none", Some(json!({ "actual_hours": 3 })), 404, "no_node");
    let found = caller.posts("POST /v1/insights/reflect", json!({}));
    assert!(found["insights"].to_string().contains("insight:estimate-code"), "{found}");
    let listed = caller.gets("GET /v1/insights?topic=estimate%20code");
    assert_eq!(listed["insights"][0]["change"]["factor"], 1.5, "{listed}");
    let (status, _) = caller.call("GET /v1/insights?limit=100000", None);
    assert_eq!(status, 422);
    let ways = caller.gets("GET /v1/insights/estimate-code/evidence");
    assert!(ways["ways"].to_string().contains(&decision), "{ways}");
    caller.refuses("GET /v1/insights/none/evidence", None, 404, "no_node");
    caller.refuses("POST /v1/insights/none/accept", Some(json!({})), 404, "no_node");
    let version = caller.posts("POST /v1/insights/estimate-code/accept", json!({}));
    assert_eq!(version["number"], 2, "{version}");
    caller.refuses("POST /v1/insights/estimate-code/accept", Some(json!({})), 409, "not_accepted");
    let own = caller.gets("GET /v1/insights?topic=options");
    let own = own["insights"][0]["id"].as_str().expect("the mind's own").to_owned();
    let first = format!("POST /v1/insights/{own}/accept");
    caller.refuses(&first, Some(json!({})), 422, "mistaken");
    let ranked = caller.posts("POST /v1/decisions/rank", options(1.0));
    assert_eq!(ranked["version"], 2);
    caller.posts("POST /v1/parameters/rollback", json!({ "to": 1 }));
    caller.refuses("POST /v1/parameters/rollback", Some(json!({ "to": 99 })), 404, "no_version");
    let versions = caller.gets("GET /v1/parameters");
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(3), "{versions}");
    caller.tried_everything();
    world.run(&["down"]).ok();
}
