//! The four stages as a person uses them: scripted agents, a real calendar server, the graph in
//! SQLite and in a real Neo4j, and a clock that is set from one date to the next.

#[path = "stages/away.rs"]
mod away;
#[path = "stages/booking.rs"]
mod booking;
#[path = "stages/changed.rs"]
mod changed;
#[path = "stages/door.rs"]
mod door;
#[path = "stages/exchange.rs"]
mod exchange;
#[path = "stages/fortnight.rs"]
mod fortnight;
#[path = "stages/meanwhile.rs"]
mod meanwhile;
#[path = "stages/order.rs"]
mod order;
#[path = "stages/rights.rs"]
mod rights;
#[path = "stages/routes.rs"]
mod routes;
#[path = "stages/tools.rs"]
mod tools;

use std::path::PathBuf;

use serde_json::{Value, json};
use stafette_core::{Millis, Time};
use stafette_knowledge::calendar::{CalDav, CalDavSettings, Calendar, Entry, Seen};
use stafette_testkit::radicale::{PASSWORD, Radicale, USER};

use crate::world::{World, until};

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
    { id = "t2", title = "Two", hours = 2, kind = "code", after = ["t1"], not_before = "2026-03-25T00:00:00Z" },
    { id = "t3", title = "Three", hours = 2, kind = "code", not_before = "2026-03-26T00:00:00Z" },
    { id = "t4", title = "Four", hours = 2, kind = "code", not_before = "2026-03-30T00:00:00Z" },
    { id = "t5", title = "Five", hours = 2, kind = "code", not_before = "2026-03-31T00:00:00Z" },
    { id = "t6", title = "Six", hours = 2, kind = "code", not_before = "2026-04-01T00:00:00Z" },
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
    let world = template(knowledge, calendar);
    let mut text = world.read("stafette.toml");
    for (name, script) in
        [("discuss", DISCUSS), ("decisions", DECISIONS), ("execute", EXECUTE), ("mind", MIND)]
    {
        world.write(&format!("agents/{name}.toml"), script);
        let scripted = format!("runner = \"scripted\"\nscript = \"agents/{name}.toml\"");
        text = text.replacen(PLAIN, &scripted, 1);
    }
    trusted(world, &text)
}

/// A project of the template with agents of the outside.
fn outside(calendar: &str) -> World {
    let world = template("graph = \"sqlite\"\n", calendar);
    let text = world.read("stafette.toml").replace(PLAIN, "runner = \"external\"");
    // Nobody here starts them, so that nothing they print is read.
    trusted(world, &text.replace("result = \"frames\"\n", "").replace("beside = \"mind\"\n", ""))
}

/// How `init` puts an agent in.
const PLAIN: &str = "runner = \"exec\"\ncommand = [\"true\"]";

/// What the template starts from, with its graph and its calendar elsewhere, in Berlin.
fn template(knowledge: &str, calendar: &str) -> World {
    let world = World::new();
    world.run(&["init", "--template", "odei", "--agent", "true", "--yes"]).ok();
    let text = world.read("stafette.toml");
    let text = text
        .replace("graph = \"sqlite\"\n", knowledge)
        .replace("folder = \"calendar\"\n", calendar)
        .replace("timezone = \"UTC\"", "timezone = \"Europe/Berlin\"")
        .replace("[limits]\n", "[limits]\ncooldown = 0\n");
    world.write("stafette.toml", &text);
    world
}

fn trusted(world: World, text: &str) -> World {
    world.write("stafette.toml", text);
    world.run(&["check"]).ok();
    world.run(&["trust", "--yes"]).ok();
    world
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

    /// The blocks of a run in these four weeks.
    fn blocks(&self, run: &str, from: &str) -> Vec<Value> {
        let to = (at(from) + Millis::hours(28 * 24)).rfc3339();
        let week = self.asked(&["calendar", "--from", from, "--to", &to]);
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
        let socket = self.state().join("daemon.sock");
        curl.args(["--silent", "--max-time", "120", "--unix-socket"]).arg(socket).arg(url);
        serde_json::from_str(&crate::mcp::said(&mut curl).ok().out).expect("JSON")
    }
}

/// A moment.
fn at(text: &str) -> Time {
    Time::parse(text).expect("a moment")
}

/// The clock on the daemon's wall, which the test sets.
pub(crate) struct Wall {
    file: PathBuf,
}

impl Wall {
    /// A clock that shows this moment.
    pub(crate) fn at(folder: &std::path::Path, moment: &str) -> Self {
        let wall = Wall { file: folder.join("clock") };
        wall.set(at(moment));
        wall
    }

    /// What the daemon has to be told to go by it.
    pub(crate) fn env(&self) -> (&str, &str) {
        (stafette_engine::clock::VARIABLE, self.file.to_str().expect("a plain path"))
    }

    /// Sets it; whoever looks from now on sees the new time.
    pub(crate) fn set(&self, moment: Time) {
        let shift = moment.0 - stafette_engine::clock::now().0;
        let draft = self.file.with_extension("draft");
        std::fs::write(&draft, shift.to_string()).expect("written");
        std::fs::rename(draft, &self.file).expect("in one piece");
    }
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
        let calendar = client(&server.url());
        server.calendar("work", "Work").expect("made");
        let lines = lines(&server.url());
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

/// A client of a calendar server of ours.
fn client(url: &str) -> CalDav {
    let (user, password) = (USER.into(), PASSWORD.into());
    let settings = CalDavSettings { url: url.to_owned(), user, password, calendar: None };
    CalDav::new(&settings).expect("an address")
}

/// What a project says of a calendar server.
fn lines(url: &str) -> String {
    format!(
        "url = \"{url}\"\nuser_env = \"CAL_USER\"\npassword_env = \"CAL_PASSWORD\"\nlook = \"1s\"\n"
    )
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}
