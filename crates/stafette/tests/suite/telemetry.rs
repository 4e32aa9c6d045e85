//! What can be seen from outside: a real collector, a real Prometheus, and files.

#[path = "telemetry/prometheus.rs"]
mod prometheus;
#[path = "telemetry/rotel.rs"]
mod rotel;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::around::{Received, Taker, receiver};
use crate::web::Web;
use crate::world::{PATIENCE, World, copy, repository, until_so};
use prometheus::Prometheus;
use rotel::Rotel;

/// The project of the demonstration, with some settings of its own.
fn demo(settings: &str) -> World {
    let world = World::new();
    copy(&repository().join("crates/stafette/demo"), &world.project());
    let text = format!("{}\n{settings}", world.read("stafette.toml"));
    world.write("stafette.toml", &text);
    world.write(".gitignore", "/.stafette/\n");
    world.write(".stafette/ledger/.keep", "");
    for words in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["config", "user.name", "demo"],
        &["config", "user.email", "demo@stafette.local"],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "a little program"],
    ] {
        assert!(world.command("git").args(words).status().expect("git").success());
    }
    world.run(&["trust", "--yes"]).ok();
    world
}

fn run(world: &World) -> String {
    let view = world.run(&["run", "Add user auth", "--json"]).ok().json();
    view["run"].as_str().expect("a run").to_owned()
}

#[test]
fn s2_10_a_collector_gets_exactly_the_spans_of_the_demonstration() {
    let mut rotel = Rotel::start();
    for (protocol, port) in
        [("http/protobuf", rotel.http), ("http/json", rotel.http), ("grpc", rotel.grpc)]
    {
        let settings =
            format!("[telemetry]\notlp = \"http://127.0.0.1:{port}\"\nprotocol = \"{protocol}\"\n");
        let world = demo(&settings);
        let run = run(&world);
        let trace = run.replace('-', "");
        let spans = rotel.wait_for(&trace, 11);
        let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
        assert_eq!(spans.len(), 11, "{protocol}: {spans:#?}");
        assert_eq!((named("run demo").len(), named("handoff").len()), (1, 5), "{protocol}");
        let whole = named("run demo")[0];
        assert_eq!(
            (whole.parent.as_str(), whole["stafette.run.status"].as_str()),
            ("", "succeeded")
        );
        let path = ["human", "planner", "builder", "reviewer", "fixer", "reviewer"];
        let reasons =
            ["task_handoff", "task_handoff", "review_request", "fix_request", "rereview_request"];
        for (number, reason) in reasons.iter().enumerate() {
            let id = format!("h{}", number + 1);
            let span = named("handoff").into_iter().find(|span| span["stafette.handoff"] == id);
            let span = span.unwrap_or_else(|| panic!("{id} in {spans:#?}"));
            assert_eq!(span["handoff.source_agent"], path[number]);
            assert_eq!(span["handoff.target_agent"], path[number + 1]);
            assert_eq!(span["handoff.reason"], *reason);
            assert_eq!(span["handoff.status"], "resolved");
            assert_eq!(span["handoff.inputs_missing"], "0");
            assert_eq!(span["handoff.trace_id"].len(), 36, "a UUID");
            let took: u64 = span["handoff.execution_time_ms"].parse().expect("a number");
            assert_eq!(took, span.millis(), "as long as it took");
            assert!(span["handoff.inputs_provided"].parse::<u64>().is_ok());
            let of_protocol = span.attributes.keys().filter(|key| key.starts_with("handoff."));
            assert_eq!(of_protocol.count(), 8, "{span:?}");
            let turn = spans.iter().find(|turn| turn.parent == span.id && turn.name != "handoff");
            let turn = turn.unwrap_or_else(|| panic!("a turn in {id}"));
            assert_eq!(turn.name, format!("invoke_agent {}", path[number + 1]));
            assert_eq!(turn["gen_ai.operation.name"], "invoke_agent");
            assert_eq!(turn["gen_ai.agent.name"], path[number + 1]);
        }
    }
}

#[test]
fn s2_10_a_collector_gets_exactly_the_spans_of_a_change_until_it_is_in_and_out_again() {
    let mut rotel = Rotel::start();
    let world = World::workflow(&format!(
        "[workflow]\nname = \"one\"\nentry = \"a\"\n[agents.a]\nrunner = \"scripted\"\nscript = \"a.toml\"\n\
         [telemetry]\notlp = \"http://127.0.0.1:{}\"\nprotocol = \"grpc\"\n",
        rotel.grpc
    ));
    world.write("words.txt", "old\n");
    world.write(
        "a.toml",
        r#"
[[turn]]
steps = [{ emit = "CHANGE", payload = { reason = "They were old", changes = [
  { file = "words.txt", action = "modify", content = "new\n" } ] } }]
"#,
    );
    world.run(&["trust", "--yes"]).ok();
    let run = run(&world);
    world.run(&["apply", "c1"]).ok();
    assert_eq!(world.read("words.txt"), "new\n");
    world.run(&["undo", "c1"]).ok();
    assert_eq!(world.read("words.txt"), "old\n");
    let spans = rotel.wait_for(&run.replace('-', ""), 6);
    let count = |name: &str| spans.iter().filter(|span| span.name == name).count();
    let counts = ["run one", "handoff", "invoke_agent a", "change"].map(count);
    assert_eq!((spans.len(), counts), (6, [1, 1, 1, 3]), "{spans:#?}");
    let handoff = spans.iter().find(|span| span.name == "handoff").expect("h1");
    let changes = spans.iter().filter(|span| span.name == "change");
    // Proposed and left as it is when the run ends; in; and out again.
    for (span, status) in changes.zip(["pending", "applied", "undone"]) {
        let told: Vec<_> =
            span.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let wanted = [
            ("gen_ai.agent.name", "a"),
            ("stafette.change", "c1"),
            ("stafette.change.files", "1"),
            ("stafette.change.revision", "1"),
            ("stafette.change.status", status),
            ("stafette.handoff", "h1"),
            ("stafette.run", run.as_str()),
        ];
        assert_eq!((told.as_slice(), &span.parent), (&wanted[..], &handoff.id));
    }
}

#[test]
fn s2_10_agents_get_the_context_of_their_turn_and_nothing_is_sent_by_default() {
    let workflow = |more: &str| {
        format!(
            "[workflow]\nname = \"one\"\nentry = \"a\"\n[agents.a]\nrunner = \"exec\"\nresult = \"exit\"\n\
             command = [\"sh\", \"-c\", 'cat >/dev/null; echo \"[$TRACEPARENT]\" > context; echo done']\n{more}"
        )
    };
    let world = World::workflow(&workflow(""));
    world.run(&["run", "x"]).ok();
    assert_eq!(world.read("context"), "[]\n");
    let world = World::workflow(&workflow("[telemetry]\notlp = \"http://127.0.0.1:9\"\n"));
    let listed = world.run(&["trust", "--list"]).ok().out;
    assert!(listed.contains("telemetry.otlp  http://127.0.0.1:9"), "{listed}");
    let view = world.run(&["run", "x", "--json"]).ok().json();
    let trace = view["run"].as_str().expect("a run").replace('-', "");
    let context = world.read("context");
    assert!(
        context.starts_with(&format!("[00-{trace}-")) && context.ends_with("-01]\n"),
        "{context}"
    );
}

#[test]
fn s2_10_promtool_accepts_the_page_and_the_rules() {
    let promtool = prometheus::promtool();
    let world = demo("");
    let web = Web::up(&world);
    run(&world);
    let answer = web.get("/metrics");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("text/plain; version=0.0.4"), "{}", answer.head);
    for line in ["handoff_total 4", "handoff_success_total 4", "handoff_failed_total 0"] {
        assert!(answer.body.lines().any(|known| known == line), "{line} in {}", answer.body);
    }
    for line in
        ["workflow_fix_iterations_total{workflow=\"demo\"} 1", "run_total{status=\"succeeded\"} 1"]
    {
        assert!(answer.body.contains(line), "{line} in {}", answer.body);
    }
    let (_, said) = promtool.check(&["check", "metrics"], &answer.body);
    // The protocol's own names have an abbreviated unit, which it does not like.
    let remarks: Vec<_> = said.lines().filter(|line| !line.contains("_duration_ms")).collect();
    assert_eq!(remarks, [""; 0], "{said}");
    let rules = world.run(&["alerts", "--format", "prometheus"]).ok().out;
    world.write("rules.yml", &rules);
    let path = world.project().join("rules.yml");
    let (good, said) = promtool.check(&["check", "rules", path.to_str().expect("UTF-8")], "");
    assert!(good && said.contains("4 rules found"), "{said}");
    assert_eq!(web.plain("GET /metrics", &[], "").status, 401, "not for everyone");
}

/// Agents who do everything at once that people should look at: a circle, a failure, a question. An alert that fires
/// is looked at before it is over, though the machine may stand still meanwhile.
const TROUBLE: &str = r#"
[workflow]
name = "trouble"
entry = "writer"
[agents.writer]
runner = "scripted"
script = "writer.toml"
[agents.editor]
runner = "scripted"
script = "editor.toml"
[agents.reader]
runner = "scripted"
script = "reader.toml"
[[routes]]
from = "writer"
to = "editor"
alternatives = ["reader"]
[limits]
cooldown = "0s"
[alerts]
failed = { above = 0, within = "30s" }
escalated = { above = 0, within = "30s" }
circular_blocked = { above = 0, within = "30s" }
duration_ms_p95 = { above = 100, within = "30s" }
"#;

fn trouble() -> World {
    trouble_with("")
}

fn trouble_with(settings: &str) -> World {
    let world = World::new();
    world.write("stafette.toml", &format!("{TROUBLE}{settings}"));
    world.write(
        "writer.toml",
        "[[turn]]\nsteps = [{ emit = \"HANDOFF\", payload = { to = \"editor\", summary = \"Edit\" } }]\n",
    );
    world.write(
        "editor.toml",
        "[[turn]]\nwhen = { turn = 1 }\nsteps = [{ wait = \"300ms\" }, { emit = \"HANDOFF\", payload = { to = \"writer\", summary = \"Again\" } }]\n\
         [[turn]]\nwhen = { turn = 2 }\nsteps = [{ emit = \"RESULT\", payload = { status = \"failed\", summary = \"I give up\" } }]\n",
    );
    world.write(
        "reader.toml",
        "[[turn]]\nwhen = { turn = 1 }\nsteps = [{ emit = \"HANDOFF\", payload = { to = \"human\", summary = \"Which one?\", question = { details = \"Which one?\", blocking = true } } }]\n\
         [[turn]]\nsteps = [{ emit = \"RESULT\", payload = { status = \"resolved\", summary = \"Done\" } }]\n",
    );
    world.run(&["trust", "--yes"]).ok();
    world
}

/// The names of the four alerts.
const ALL: [&str; 4] =
    ["HandoffCircularBlocked", "HandoffEscalated", "HandoffFailed", "HandoffSlow"];

/// People who are told of alerts.
struct People {
    settings: String,
    messages: mpsc::Receiver<Received>,
    seen: BTreeSet<String>,
}

impl People {
    const ENV: [(&str, &str); 1] = [("NEWS_SECRET", "shared between us")];

    fn new() -> Self {
        let (url, messages) = receiver();
        let settings = format!(
            "[notify]\nbatch = \"100ms\"\non = [\"alert\"]\n\
             [notify.webhook]\nurl = \"{url}\"\nsecret_env = \"NEWS_SECRET\"\n"
        );
        People { settings, messages, seen: BTreeSet::new() }
    }

    /// The titles of the next message that they have not had before.
    fn hear(&mut self) -> Vec<String> {
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("a message");
            let body: Value = serde_json::from_str(&message.body).expect("JSON");
            if !self.seen.insert(message.header("webhook-id").to_owned()) {
                continue;
            }
            let notes = body["notes"].as_array().expect("notes").clone();
            let title = |note: &Value| note["title"].as_str().expect("a title").to_owned();
            return notes.iter().map(title).collect();
        }
    }

    /// What they hear until each of the four alerts is over, sorted.
    fn hear_all(&mut self) -> Vec<String> {
        let mut titles = Vec::new();
        while titles.iter().filter(|title: &&String| title.contains(" is over: ")).count() < 4 {
            titles.extend(self.hear());
        }
        let mut short: Vec<String> = titles
            .iter()
            .map(|title| title.split_once(": ").map_or(title.as_str(), |(first, _)| first))
            .map(str::to_owned)
            .collect();
        short.sort();
        short
    }

    /// What is to be heard: each alert, and that it is over.
    fn each_once() -> Vec<String> {
        ALL.iter().flat_map(|name| [(*name).to_owned(), format!("{name} is over")]).collect()
    }
}

#[test]
fn s2_10_each_alert_fires_and_clears_here_and_in_a_real_prometheus() {
    let mut people = People::new();
    let world = trouble_with(&people.settings);
    let web = Web::up_with(&world, &People::ENV);
    let rules = world.run(&["alerts", "--format", "prometheus"]).ok().out;
    let prometheus = Prometheus::start(world.home(), web.port, &web.token, &rules);
    prometheus.wait_for(&[prometheus::LOOKED], true);
    assert_eq!(world.run(&["run", "x"]).code, 3, "a person is asked");
    world.run(&["answer", "5", "this"]).ok();
    world.run(&["resume"]).ok();
    prometheus.wait_for(&ALL, true);
    prometheus.wait_for(&ALL, false);
    assert_eq!(people.hear_all(), People::each_once(), "people are told of it");
    let list = world.run(&["alerts", "--json"]).ok().json();
    for firing in [true, false] {
        let changes = list["changes"].as_array().expect("changes").iter();
        let named = changes.filter(|change| change["firing"] == firing);
        let mut names: Vec<_> = named.map(|change| change["condition"].as_str()).collect();
        names.sort();
        let all = ["circular_blocked", "duration_ms_p95", "escalated", "failed"];
        assert_eq!(names, all.map(Some), "{firing}");
    }
}

#[test]
fn b_13_people_hear_of_an_alert_once_however_often_the_daemon_starts() {
    let mut people = People::new();
    let world = trouble_with(&people.settings);
    let web = Web::up_with(&world, &People::ENV);
    assert_eq!(world.run(&["run", "x"]).code, 3, "a person is asked");
    let mut heard = 0;
    while heard < 4 {
        heard += people.hear().len();
    }
    // It fires still, and the next daemon finds so by itself.
    web.kill();
    world.run(&["token", "revoke", "test"]).ok();
    let web = Web::up_with(&world, &People::ENV);
    let mut over = BTreeSet::new();
    while over.len() < 4 {
        for title in people.hear() {
            let (name, _) = title.split_once(" is over: ").unwrap_or_else(|| panic!("{title}"));
            assert!(over.insert(name.to_owned()), "{title}");
        }
    }
    drop(web);
    world.run(&["token", "revoke", "test"]).ok();
    let web = Web::up_with(&world, &People::ENV);
    web.get("/v1/alerts").ok();
    drop(web);
    let fresh = |message: &Received| !people.seen.contains(message.header("webhook-id"));
    let late = people.messages.try_iter().filter(fresh).map(|message| message.body);
    assert_eq!(late.collect::<Vec<_>>(), [""; 0], "nothing is told again");
}

#[test]
fn s2_10_a_receiver_elsewhere_is_reached_by_tls_when_this_system_trusts_it() {
    let world = World::new();
    let taker = Taker::start(&world);
    let port = taker.port;
    world.write(
        "stafette.toml",
        &format!(
            "[workflow]\nname = \"one\"\nentry = \"a\"\n[agents.a]\nrunner = \"exec\"\nresult = \"exit\"\n\
             command = [\"true\"]\n[telemetry]\notlp = \"https://localhost:{port}\"\n\
             headers = {{ x-key = \"TRACE_KEY\" }}\n"
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    let trusted = world.project().join("ca.pem").display().to_string();
    let env = [("SSL_CERT_FILE", trusted.as_str()), ("TRACE_KEY", "secret")];
    // Nobody is trusted at first: what cannot be sent is kept.
    world.run_with(&["up"], b"", &env[1..]).ok();
    world.run(&["run", "x"]).ok();
    world.run(&["down"]).ok();
    world.run_with(&["up"], b"", &env).ok();
    let taken = taker.hear();
    assert_eq!(
        (&taken["path"], &taken["headers"]["x-key"]),
        (&json!("/v1/traces"), &json!("secret"))
    );
    assert!(taken["body"].as_str().is_some_and(|body| body.len() > 100), "{taken}");
}

#[test]
fn s2_10_what_fires_is_shown_in_every_view() {
    let world = trouble();
    assert_eq!(world.run(&["run", "x"]).code, 3);
    let status = world.run(&["status"]).ok();
    assert!(status.err.contains("HandoffCircularBlocked"), "{status:?}");
    let top = world.run(&["top", "--json"]).ok().json();
    assert!(top["alerts"].to_string().contains("HandoffCircularBlocked"), "{top}");
    let alerts = world.run(&["alerts"]).ok().out;
    assert!(alerts.contains("Review handoff logic") && alerts.contains("fires since"), "{alerts}");
}

/// The lines about handoffs, agents, workflows and runs: what events tell.
fn counted(web: &Web<'_>) -> Vec<String> {
    let page = web.get("/metrics").body;
    let ours = ["handoff_", "agent_t", "workflow_", "run_", "lease_"];
    let lines = page.lines().filter(|line| ours.iter().any(|name| line.starts_with(name)));
    lines.map(str::to_owned).collect()
}

/// The daemon once more, with a token of its own.
fn up_again(world: &World) -> Web<'_> {
    world.run(&["token", "revoke", "test"]).ok();
    Web::up(world)
}

#[test]
fn s2_10_metrics_survive_a_kill_without_counting_twice() {
    let world = trouble();
    let web = Web::up(&world);
    assert_eq!(world.run(&["run", "x"]).code, 3);
    let once = counted(&web);
    assert!(once.contains(&"handoff_total 4".to_owned()), "{once:?}");
    web.kill();
    let web = up_again(&world);
    assert_eq!(counted(&web), once, "made again from the events");
    // Stopped in good order it keeps them, and goes on from there.
    drop(web);
    assert!(world.kept("telemetry.json").contains("\"total\":4"));
    let web = up_again(&world);
    assert_eq!(world.run(&["run", "x"]).code, 3);
    let twice = counted(&web);
    assert!(twice.contains(&"handoff_total 8".to_owned()), "{twice:?}");
    web.kill();
    let web = up_again(&world);
    assert_eq!(counted(&web), twice, "some were kept, the others are made again");
    web.kill();
    let log = world.kept("logs/events.jsonl");
    let whole: std::collections::BTreeSet<_> = log.lines().collect();
    assert_eq!(whole.len(), log.lines().count(), "no line of the log is there twice");
}

#[test]
fn s5_09_the_event_log_has_the_six_events_one_object_a_line() {
    let world = demo("");
    run(&world);
    let asked = world.run(&["log", "--protocol"]).ok().lines();
    // Whoever is told of alerts is told of all that is in the log.
    world.run(&["alerts"]).ok();
    let log = world.kept("logs/events.jsonl");
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines, asked, "the file and the command tell the same");
    let count = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    assert_eq!(count("handoff_created"), 5);
    assert_eq!((count("agent_started"), count("agent_completed")), (5, 5));
    assert_eq!((count("handoff_accepted"), count("error_occurred")), (5, 0));
    let builder =
        lines.iter().find(|line| line["event"] == "agent_started" && line["agent"] == "builder");
    let builder = builder.expect("the builder started");
    assert_eq!(builder["context"]["workflow"], "demo");
    assert_eq!(builder["context"]["spec"], "specs/auth.md");
    assert!(builder["timestamp"].as_str().is_some_and(|at| at.ends_with('Z')));
    let of_fixer = world.run(&["log", "--protocol", "--agent", "fixer"]).ok().lines();
    assert!(of_fixer.len() < lines.len() && of_fixer.len() >= 4, "{of_fixer:?}");
    assert_eq!(world.run(&["log", "--since", "0s", "--json"]).ok().out, "");
    let plain = world.run(&["log", "--agent", "fixer", "--since", "1h"]).ok().out;
    assert!(plain.contains("reviewer → fixer") && !plain.contains("human → planner"), "{plain}");

    let world = trouble();
    assert_eq!(world.run(&["run", "x"]).code, 3);
    let lines = world.run(&["log", "--protocol"]).ok().lines();
    let of = |event: &str| {
        lines.iter().find(|line| line["event"] == event).map(|line| line["agent"].clone())
    };
    assert_eq!(of("escalation_triggered"), Some(json!("reader")));
    assert_eq!(of("error_occurred"), Some(json!("editor")));
}

#[test]
fn s5_09_the_daemons_own_log_is_put_aside_while_it_lives_and_the_oldest_goes() {
    let world = World::workflow(crate::world::ECHO);
    let limit = 2000;
    let text = limit.to_string();
    let env = [("STAFETTE_DEBUG", "1"), ("STAFETTE_LOG_MAX_BYTES", text.as_str())];
    let up = world.run_with(&["up", "--json"], b"", &env).ok().json();
    let said = world.kept("daemon.log");
    let mut said = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let socket = said.find_map(|line| Some(line["socket"].as_str()?.to_owned())).expect("where");
    let size = |name: &str| {
        let found = std::fs::metadata(world.state().join(name));
        found.map(|found| found.len()).ok()
    };
    // Whatever is no request is noted.
    for _ in 0..400 {
        let mut stream = UnixStream::connect(&socket).expect("the daemon");
        stream.write_all(b"nonsense\r\n\r\n").expect("sent");
        stream.read_to_end(&mut Vec::new()).expect("an answer");
    }
    let kept = ["daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"];
    // One that is put aside in this moment has no name.
    until_so("four logs", || {
        let sizes = kept.map(size);
        let small = sizes.iter().flatten().all(|size| *size <= limit);
        assert!(small, "{kept:?} have {sizes:?} bytes");
        sizes.iter().all(Option::is_some)
    });
    assert_eq!(size("daemon.log.4"), None);
    assert_eq!(world.run(&["up", "--json"]).ok().json()["pid"], up["pid"], "it still lives");
}

#[test]
fn b_17_what_was_said_is_found_and_leads_to_its_handoff() {
    let world = demo("");
    run(&world);
    let hits = world.run(&["find", "password", "printed", "--json"]).ok().json();
    let hit = hits.as_array().and_then(|hits| hits.iter().find(|hit| hit["handoff"] == "h4"));
    let hit = hit.unwrap_or_else(|| panic!("h4 in {hits}"));
    assert_eq!((&hit["kind"], &hit["who"]), (&json!("handoff_admitted"), &json!("reviewer")));
    assert!(hit["text"].as_str().is_some_and(|text| text.contains("[password]")), "{hit}");
    let shown = world.run(&["find", "Approv"]).ok().out;
    assert!(shown.contains(":h5") && shown.contains("[Approved]"), "{shown}");
    assert_eq!(world.run(&["find", "nothing-of-the-kind"]).ok().out, "");
}

#[test]
fn b_17_a_run_is_explained_and_told_on_one_page() {
    let world = demo("");
    let run = run(&world);
    let why = world.run(&["why", &run]).ok().out;
    assert!(why.starts_with("● Add user auth") && why.contains("h5 fixer → reviewer"), "{why}");
    assert!(why.trim_end().ends_with("○ succeeded: nothing is left to do"), "{why}");
    assert_eq!(world.run(&["why"]).ok().out, why, "the newest one");
    world.run(&["report", "-o", "report.html"]).ok();
    let page = world.read("report.html");
    for wanted in ["<svg", "rereview_request", "Approved: all tests pass", "fixer", &run] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(!page.contains("<script") && !page.contains("http://"), "it needs nothing else");
}

#[test]
fn b_17_a_change_is_explained_back_to_the_request_and_is_in_the_report() {
    let world = World::workflow(
        "[workflow]\nname = \"one\"\nentry = \"a\"\n[agents.a]\nrunner = \"scripted\"\nscript = \"a.toml\"\n",
    );
    world.write("words.txt", "old\n");
    world.write(
        "a.toml",
        r#"
[[turn]]
steps = [{ emit = "CHANGE", payload = { reason = "They were old", changes = [
  { file = "words.txt", action = "modify", content = "new <b>\n" } ] } }]
"#,
    );
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "Find better words"]).ok();
    let why = world.run(&["why", "c1"]).ok().out;
    for wanted in
        ["● Find better words", "h1 human → a", "c1 by a in", "They were old", "words.txt"]
    {
        assert!(why.contains(wanted), "{wanted} in {why}");
    }
    let told = world.run(&["why", "c1", "--json"]).ok().json();
    assert_eq!(told["way"]["legs"][0]["id"], "h1", "{told}");
    assert_eq!(world.run(&["why", "c9"]).code, 1);
    let page = world.run(&["report"]).ok().out;
    assert!(page.contains("c1: pending, by a") && page.contains("+new &lt;b&gt;"), "{page}");
}

#[test]
fn s2_11_the_gate_finds_the_observability_that_is_there() {
    let world = World::new();
    let said = world.run(&["init", "--template", "feature", "--agent", "true", "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    let gate = world.run(&["check", "--gate", "--json"]).json();
    let items = gate["gate"].as_array().expect("items").clone();
    let observed = items.iter().find(|item| item["name"] == "observability").expect("an item");
    assert!(observed.to_string().contains("8 span attributes, 6 metrics"), "{observed}");
}

/// A command with nothing of ours in it, for tools.
fn tool(program: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}
