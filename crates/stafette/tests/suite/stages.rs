//! The four stages as a person uses them: scripted agents, a real calendar server, the graph in
//! SQLite and in a real Neo4j. Two weeks of work are dates in the data.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stafette_core::Time;
use stafette_kit::neo4j::Neo4j;
use stafette_kit::radicale::{PASSWORD, Radicale, USER};
use stafette_knowledge::calendar::{CalDav, CalDavSettings, Calendar, Entry, Seen, entry};

use crate::world::World;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const DISCUSS: &str = r#"
[[turn]]
steps = [
  { say = "Is it worth it?" },
  { emit = "HANDOFF", payload = { to = "decisions", summary = "It fits the goals", thread_id = "this", score = 0.8, recommendation = "APPROVE", check_results = [
    { principle = "1", verdict = "holds", reason = "It can be undone." },
    { principle = "2", verdict = "holds", reason = "It serves craft." },
    { principle = "3", verdict = "not_applicable", reason = "Nothing is promised." },
    { principle = "4", verdict = "holds", reason = "Nobody else pays." },
  ] } },
]
"#;

const DECISIONS: &str = r#"
[[turn]]
when = { has = ["decision_id"] }
steps = [{ emit = "HANDOFF", payload = { to = "execute", summary = "It is decided" } }]

[[turn]]
steps = [
  { emit = "HANDOFF", payload = { to = "human", question = "Which option?", summary = "Three ways", candidates = [
    { id = "a", title = "Build it", kind = "code", benefit = 1000, cost = 0, hours = 10, risk = 0, probability = 1, goals = [{ goal = "craft", strength = 0.1 }] },
    { id = "b", title = "Buy it", kind = "shopping", benefit = 400, cost = 0, hours = 1, risk = 0, probability = 1, goals = [{ goal = "craft", strength = 0.1 }] },
    { id = "c", title = "Borrow it", kind = "shopping", benefit = 300, cost = 0, hours = 1, risk = 0, probability = 1, goals = [{ goal = "craft", strength = 0.1 }] },
  ] } },
]
"#;

const EXECUTE: &str = r#"
[[turn]]
when = { has = ["task_ids"] }
steps = [{ emit = "HANDOFF", payload = { to = "mind", summary = "It is planned" } }]

[[turn]]
steps = [
  { emit = "HANDOFF", payload = { to = "human", question = "Is this time right?", summary = "Six pieces", tasks = [
    { id = "t1", title = "One", hours = 2, kind = "code" },
    { id = "t2", title = "Two", hours = 2, kind = "code", after = ["t1"] },
    { id = "t3", title = "Three", hours = 2, kind = "code" },
    { id = "t4", title = "Four", hours = 2, kind = "code" },
    { id = "t5", title = "Five", hours = 2, kind = "code" },
    { id = "t6", title = "Six", hours = 2, kind = "code" },
  ] } },
]
"#;

const MIND: &str = r#"
[[turn]]
steps = [{ emit = "RESULT", payload = { status = "resolved", summary = "One thing was seen", outputs = { insights = [
  { pattern = "Options are always three", confidence = 0.6, evidence = "every run", topic = "options" },
] } } }]
"#;

/// A project of the template with scripted agents.
fn project(knowledge: &str, calendar: &str) -> World {
    let world = World::new();
    world.run(&["init", "--template", "odei", "--agent", "true", "--yes"]).ok();
    let mut text = world.read("stafette.toml");
    for (name, script) in
        [("discuss", DISCUSS), ("decisions", DECISIONS), ("execute", EXECUTE), ("mind", MIND)]
    {
        world.write(&format!("agents/{name}.toml"), script);
        let scripted = format!("runner = \"scripted\"\nscript = \"agents/{name}.toml\"");
        text = text.replacen("runner = \"exec\"\ncommand = [\"true\"]", &scripted, 1);
    }
    let text = text
        .replace("graph = \"sqlite\"\n", knowledge)
        .replace("folder = \"calendar\"\n", calendar)
        .replace(
            "hours = [\"09:00-12:00\", \"13:00-17:00\"]\n",
            "hours = [\"00:00-24:00\"]\ndays = [\"monday\", \"tuesday\", \"wednesday\", \
             \"thursday\", \"friday\", \"saturday\", \"sunday\"]\n",
        )
        .replace("[limits]\n", "[limits]\ncooldown = 0\n");
    world.write("stafette.toml", &text);
    world.run(&["check"]).ok();
    world.run(&["trust", "--yes"]).ok();
    world
}

/// Asks again and again until there is an answer.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "{what} does not come");
    }
}

impl World {
    fn asked(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        self.run(&all).ok().json()
    }

    /// The next question of a run with this reason.
    fn question(&self, run: &str, reason: &str) -> Value {
        until(reason, || {
            let inbox = self.asked(&["inbox"]);
            let rows = inbox.get("questions").unwrap_or(&inbox).as_array()?.clone();
            rows.into_iter().find(|row| {
                row["run"] == run
                    && row.pointer("/handoff/offer/question/reason") == Some(&json!(reason))
            })
        })
    }

    fn answer(&self, question: &Value, word: &str) {
        let run = question["run"].as_str().expect("a run");
        let id = question["id"].as_str().expect("a handoff");
        self.run(&["answer", &format!("{run}:{id}"), word, "--json"]).ok();
    }

    fn begin(&self, request: &str) -> String {
        let begun = self.run(&["run", request, "--detach", "--json"]).ok().json();
        begun["run"].as_str().expect("a run").to_owned()
    }

    fn ends(&self, run: &str) {
        until("the end", || {
            let view = self.asked(&["status", run]);
            assert!(view["status"] != "failed", "{view}");
            (view["status"] == "succeeded").then_some(())
        });
    }

    fn blocks(&self, run: &str) -> Vec<Value> {
        let to = Time(now() + 20 * 24 * 3_600_000).rfc3339();
        let week = self.asked(&["calendar", "--to", &to]);
        let all = week["proposals"].as_array().expect("proposals").clone();
        all.into_iter().filter(|one| one["run"] == run).collect()
    }

    /// The numbers of the graph once everything that happened is in it.
    fn mirrored(&self, run: &str) -> usize {
        let handoffs = self.asked(&["handoffs", run]);
        let expected = handoffs.as_array().expect("handoffs").len();
        until("the mirror", || {
            let found = self.nodes("Handoff", run);
            (found >= expected).then_some(())
        });
        assert_eq!(self.nodes("Handoff", run), expected, "each is there once");
        expected
    }

    fn nodes(&self, label: &str, run: &str) -> usize {
        let path = format!("http://d/v1/graph/nodes?label={label}&limit=1000");
        let nodes = self.get(&path);
        let all = nodes["nodes"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|node| node["id"].as_str().is_some_and(|id| id.starts_with(run))).count()
    }

    fn get(&self, url: &str) -> Value {
        let mut curl = self.command("curl");
        let socket = self.project().join(".stafette/daemon.sock");
        curl.args(["--silent", "--max-time", "30", "--unix-socket"]).arg(socket).arg(url);
        serde_json::from_str(&crate::mcp::said(&mut curl).ok().out).expect("JSON")
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.expect("after 1970").as_millis()).expect("not so late")
}

/// A real calendar server, and a client of its own beside Stafette's.
pub(crate) struct Office {
    server: Radicale,
    calendar: CalDav,
    lines: String,
}

impl Office {
    pub(crate) fn open(folder: &std::path::Path) -> Self {
        let server = Radicale::start(folder).expect("Radicale starts");
        let settings = CalDavSettings {
            url: server.url(),
            user: USER.into(),
            password: PASSWORD.into(),
            calendar: None,
        };
        let calendar = CalDav::new(&settings).expect("an address");
        wait(calendar.make("work", "Work")).expect("made");
        let lines = format!(
            "url = \"{}\"\nuser_env = \"CAL_USER\"\npassword_env = \"CAL_PASSWORD\"\nlook = \"1s\"\n",
            server.url()
        );
        Office { server, calendar, lines }
    }

    /// Where its one calendar is.
    pub(crate) fn address(&self) -> String {
        format!("{}{USER}/work/", self.server.url())
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        wait(self.calendar.changes(&Seen::default())).expect("read").changed
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// From a proposal to what was learned from it, and to a second run that uses it.
fn what_was_learned_changes_the_second_run(world: &World, office: &Office) {
    let env = [("CAL_USER", USER), ("CAL_PASSWORD", PASSWORD)];
    world.run_with(&["up"], b"", &env).ok();
    let first = world.begin("Have a better tool");

    // A decision among three options: the table is in the inbox.
    let choice = world.question(&first, "decision_approval");
    let ranking = choice.pointer("/handoff/offer/outputs/ranking").expect("a ranking");
    assert_eq!(ranking["winner"], "a");
    assert_eq!(ranking["learned"], json!([]));
    let shown = world.run(&["inbox"]).ok().out;
    assert!(shown.contains("1. a: 550.00") && shown.contains("wins when"), "{shown}");
    world.answer(&choice, "a");

    // Tasks with time that waits for a yes; nothing is in the calendar before.
    let plan = world.question(&first, "plan_approval");
    let blocks = until("proposals", || Some(world.blocks(&first)).filter(|all| all.len() == 6));
    assert!(blocks.iter().all(|one| one["state"] == "proposed"), "{blocks:?}");
    assert_eq!(office.entries().len(), 0);
    // One of them is moved to a day without anything else before it is accepted.
    let free = now() / 86_400_000 * 86_400_000 + 12 * 86_400_000;
    let (start, end) = (Time(free).rfc3339(), Time(free + 7_200_000).rfc3339());
    let id = blocks[5]["id"].as_str().expect("an id");
    world.run(&["calendar", "move", id, &start, &end]).ok();
    world.answer(&plan, "approve");
    world.ends(&first);
    until("the events", || (office.entries().len() == 6).then_some(()));
    let text: String = office.entries().into_iter().map(|entry| entry.text).collect();
    assert!(text.contains("X-STAFETTE-TASK") && text.contains("SUMMARY:Three"), "{text}");
    let written = until("the notes", || {
        let all = world.blocks(&first);
        all.iter().all(|one| one["state"] == "written").then_some(all)
    });
    assert!(written.iter().any(|one| one["start"] == free), "it is where it was moved to");
    world.mirrored(&first);

    // Somebody moves one event and deletes another in a calendar program.
    let mut entries = office.entries();
    let moved = entries.remove(0);
    let (from, to) = (Time(free + 86_400_000), Time(free + 86_400_000 + 7_200_000));
    let text = entry::moved(&moved.text, from, to, Time(now())).expect("an event");
    wait(office.calendar.put(&moved.name, &text, Some(&moved.etag))).expect("moved");
    let gone = entries.remove(0);
    wait(office.calendar.remove(&gone.name, &gone.etag)).expect("deleted");
    until("what somebody changed", || {
        let all = world.blocks(&first);
        let state = |entry: &str| {
            all.iter().find(|one| one["entry"] == entry).map(|one| one["state"].clone())
        };
        let both = (state(&moved.name), state(&gone.name));
        (both == (Some(json!("moved")), Some(json!("deleted")))).then_some(())
    });

    // The work took half as long again as its agent had thought.
    let decisions = world.asked(&["roi"]);
    assert_eq!(decisions["decisions"], json!([]), "it is planned, so nobody has to take it up");
    let decision = choice["id"].as_str().map(|id| format!("{first}.{id}")).expect("an id");
    let seen = world.asked(&["roi", &decision]);
    let tasks = seen["tasks"].as_array().expect("tasks").clone();
    assert_eq!(tasks.len(), 6, "{seen}");
    assert!(seen["ranking"]["sensitivity"].as_array().is_some_and(|tips| !tips.is_empty()));
    for (number, task) in tasks.iter().enumerate() {
        assert_eq!(task["effortHours"], 2.0);
        let day = Time(now() + i64::try_from(number).expect("few") * 2 * 86_400_000).rfc3339();
        let hours = format!("{}", 2.9 + 0.04 * number as f64);
        let id = task["id"].as_str().expect("an id");
        world.run(&["calendar", "done", id, &hours, "--at", &day]).ok();
    }

    // What was learned counts once a person says so.
    world.run(&["insights", "reflect"]).ok();
    let insights = world.asked(&["insights"]);
    let all = insights["insights"].as_array().expect("insights");
    let found = |id: &str| all.iter().find(|one| one["id"] == id).cloned();
    let learned = found("estimate-code").unwrap_or_else(|| panic!("{insights}"));
    assert_eq!(learned["in_force"], Value::Null);
    let factor = learned["change"]["factor"].as_f64().expect("a factor");
    assert!((1.45..1.55).contains(&factor), "{learned}");
    let own = all.iter().any(|one| one["pattern"] == "Options are always three");
    assert!(own, "what the mind stage said is kept: {insights}");
    let evidence = world.run(&["insights", "evidence", "estimate-code"]).ok().out;
    assert!(evidence.contains("task:") && evidence.contains("decision:"), "{evidence}");
    world.run(&["insights", "accept", "estimate-code"]).ok();
    assert_eq!(world.run(&["insights", "accept", "estimate-code"]).code, 1, "once is enough");
    let versions = world.asked(&["params"]);
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2), "{versions}");

    // The second run ranks and estimates by it, and says why.
    let second = world.begin("Have another tool");
    let choice = world.question(&second, "decision_approval");
    let ranking = choice.pointer("/handoff/offer/outputs/ranking").expect("a ranking");
    assert_eq!(ranking["winner"], "b", "{ranking}");
    assert_eq!((&ranking["version"], &ranking["learned"][0]["version"]), (&json!(2), &json!(2)));
    let id = choice["id"].as_str().expect("a handoff");
    let why = world.run(&["why", &format!("{second}:{id}")]).ok().out;
    let says = "work of the kind `code` takes 1.5";
    assert!(why.contains(says) && why.contains("insight:estimate-code, version 2"), "{why}");
    world.answer(&choice, "a");
    let plan = world.question(&second, "plan_approval");
    let estimate = plan.pointer("/handoff/offer/outputs/plan/estimates/0").expect("an estimate");
    let hours = estimate["hours"].as_f64().expect("hours");
    assert_eq!(estimate["estimated"], 2.0);
    assert!((2.9..3.1).contains(&hours), "{estimate}");
    let id = plan["id"].as_str().expect("a handoff");
    let why = world.run(&["why", &format!("{second}:{id}")]).ok().out;
    assert!(why.contains(says), "{why}");
    world.answer(&plan, "drop");

    // Going back behind it takes it away again.
    world.run(&["params", "rollback", "1"]).ok();
    let insights = world.asked(&["insights"]);
    let list = insights["insights"].as_array().expect("insights");
    assert!(list.iter().all(|one| one["in_force"].is_null()), "{insights}");

    // The talk can be found.
    let hits = world.asked(&["threads", "--search", "fits goals"]);
    assert!(hits["hits"].as_array().is_some_and(|hits| !hits.is_empty()), "{hits}");
    let talk = world.asked(&["threads", &format!("{first}.decisions")]);
    let roles: Vec<&str> = talk["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|m| m["role"].as_str())
        .collect();
    assert!(roles.contains(&"human") && roles.contains(&"decisions"), "{talk}");
    world.run(&["down"]).ok();
}

#[test]
fn s1_10_what_was_learned_changes_the_second_run_with_the_graph_in_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let office = Office::open(&folder.path().join("radicale"));
    let world = project("graph = \"sqlite\"\n", &office.lines);
    what_was_learned_changes_the_second_run(&world, &office);
}

#[test]
fn s1_12_what_was_learned_changes_the_second_run_with_the_graph_in_neo4j() {
    let folder = tempfile::tempdir().expect("a folder");
    let office = Office::open(&folder.path().join("radicale"));
    let server = Neo4j::start(&folder.path().join("neo4j")).expect("Neo4j starts");
    let lines = format!("graph = \"neo4j\"\nneo4j = {{ uri = \"{}\" }}\n", server.uri());
    let world = project(&lines, &office.lines);
    what_was_learned_changes_the_second_run(&world, &office);
}

#[test]
fn s1_05_while_neo4j_is_away_people_are_told_and_afterwards_everything_is_there_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Neo4j::start(&folder.path().join("neo4j")).expect("Neo4j starts");
    let lines = format!("graph = \"neo4j\"\nneo4j = {{ uri = \"{}\" }}\n", server.uri());
    let world = project(&lines, "folder = \"calendar\"\n");
    world.run(&["up"]).ok();
    let before = world.begin("While all is well");
    world.question(&before, "decision_approval");
    world.mirrored(&before);
    server.kill();

    // The work goes on, and everyone who looks hears of it.
    let during = world.begin("While the graph is away");
    let choice = world.question(&during, "decision_approval");
    world.answer(&choice, "b");
    world.question(&during, "plan_approval");
    let code = "MCP_CONNECTION_FAILED";
    until("the word of it", || world.run(&["status"]).ok().err.contains(code).then_some(()));
    let doctor = world.run(&["doctor"]).out;
    assert!(doctor.contains(code), "{doctor}");
    until("an alert in the run", || {
        let events = world.run(&["log", &before, "--json"]).ok().out;
        events.contains(code).then_some(())
    });

    // The daemon dies as well; what waits is in its file.
    let pid = world.get("http://d/healthz")["pid"].as_u64().expect("a process");
    let mut kill = world.command("kill");
    crate::mcp::said(kill.args(["-9", &pid.to_string()])).ok();
    world.run(&["up"]).ok();
    server.start_again().expect("Neo4j starts again");
    until("the queue to drain", || {
        let health = world.get("http://d/v1/knowledge");
        (health.pointer("/condition/code") == Some(&Value::Null)).then_some(())
    });
    for run in [&before, &during] {
        world.mirrored(run);
    }
    let health = world.get("http://d/v1/knowledge");
    assert_eq!(health["set_aside"], json!([]), "none was refused: {health}");
    let decisions = world.asked(&["roi"]);
    assert_eq!(decisions["decisions"].as_array().map(Vec::len), Some(1), "{decisions}");
    world.run(&["down"]).ok();
}

#[test]
fn s1_18_a_daemon_that_is_killed_mirrors_and_records_everything_once() {
    let world = project("graph = \"sqlite\"\n", "folder = \"calendar\"\n");
    let mut runs = Vec::new();
    for round in 0..4 {
        runs.push(world.begin(&format!("Round {round}")));
        // In the midst of it, wherever that is.
        world.run(&["handoffs", "latest", "--json"]);
        let pid = world.get("http://d/healthz")["pid"].as_u64().expect("a process");
        let mut kill = world.command("kill");
        crate::mcp::said(kill.args(["-9", &pid.to_string()])).ok();
    }
    world.run(&["up"]).ok();
    for run in &runs {
        world.question(run, "decision_approval");
        world.mirrored(run);
        let talk = until("the talk", || {
            let talk = world.asked(&["threads", &format!("{run}.discuss")]);
            (talk["messages"].as_array()?.len() >= 2).then_some(talk)
        });
        let bodies: Vec<&Value> =
            talk["messages"].as_array().into_iter().flatten().map(|m| &m["id"]).collect();
        let mut once = bodies.clone();
        once.dedup();
        assert_eq!(bodies, once, "{talk}");
    }
    world.run(&["down"]).ok();
}
