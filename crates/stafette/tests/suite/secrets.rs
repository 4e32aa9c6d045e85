//! Secrets that people, programs and agents let slip: whichever way they come in, none is kept.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::web::Web;
use crate::world::{World, program, repository, until};

#[path = "../../../stafette-text/src/redact/tests/kinds.rs"]
mod kinds;

use kinds::{Planted, planted};

/// A value of the daemon's environment, which looks like nothing in particular.
const OWN: &str = "zX9-kkQ2.mm7";

/// A file of the project is what it is, whatever it looks like.
const FILE: &str = "api_key = \"a1b2c3d4e5\"\n";

const TEAM: &str = r#"
[workflow]
name = "team"
entry = "planner"
[agents.planner]
runner = "external"
[agents.builder]
runner = "external"
[agents.teller]
runner = "exec"
command = ["sh", "teller.sh"]
[[routes]]
from = "planner"
to = "builder"
[[routes]]
from = "human"
to = "teller"
[limits]
cooldown = 0
"#;

/// The secrets of a test, each with the place that it was put in.
#[derive(Default)]
struct Secrets {
    all: RefCell<Vec<(String, String)>>,
    /// What was answered with a secret in it.
    told: RefCell<Vec<String>>,
}

impl Secrets {
    /// A sentence with a token in it that is nowhere else.
    fn at(&self, place: &str) -> String {
        let mut all = self.all.borrow_mut();
        let token = format!("ghp_{:036}", all.len() + 1);
        all.push((place.to_owned(), token.clone()));
        format!("use {token} or {OWN}")
    }

    /// A value that only the name of its field says to be a secret.
    fn named(&self, place: &str) -> String {
        let mut all = self.all.borrow_mut();
        let value = format!("s3cr3t-word-{}", all.len() + 1);
        all.push((place.to_owned(), value.clone()));
        value
    }

    /// What comes back is as it is kept.
    fn hear(&self, what: &str, answer: &str) {
        let is_clean = !answer.contains("ghp_") && !answer.contains(OWN);
        if !is_clean || !answer.contains("[redacted:") {
            self.told.borrow_mut().push(format!("{what} is told: {answer}"));
        }
    }

    /// Where each secret was put that is in one of the files of a folder.
    fn found_in(&self, folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for path in files(folder) {
            // A socket has no bytes.
            let Ok(bytes) = fs::read(&path) else { continue };
            let has =
                |secret: &str| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            let all = self.all.borrow();
            let own = [("the environment".to_owned(), OWN.to_owned())];
            for (place, _) in all.iter().chain(&own).filter(|(_, secret)| has(secret)) {
                found.push(format!("{place}, in {}", path.display()));
            }
        }
        found
    }
}

/// The files in a folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files
}

/// The contract's request, between these two.
fn request(from: &str, to: &str) -> Value {
    let path = repository().join("fixtures/wire/handoff-request.json");
    let text = fs::read_to_string(path).expect("a document");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    document["sourceAgent"] = from.into();
    document["handoffTo"] = to.into();
    document
}

fn begin(web: &Web<'_>, key: &str, body: &Value) -> Value {
    let headers = [web.bearer(), format!("Idempotency-Key: {key}")];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    web.plain("POST /v1/runs", &headers, &body.to_string()).ok()
}

/// The turn that an agent has waiting: where it is, and its key.
fn turn_of(web: &Web<'_>, agent: &str) -> (String, String) {
    let offered = web.get(&format!("/v1/turns?agent={agent}&within=60")).ok();
    let key = offered[0]["key"].as_str().unwrap_or_else(|| panic!("{offered}")).to_owned();
    let parts: Vec<&str> = key.split('/').collect();
    (format!("/v1/runs/{}/handoffs/{}", parts[0], parts[1]), key)
}

#[test]
fn b_17_secrets_that_people_and_programs_let_slip_are_not_stored() {
    let world = World::workflow(TEAM);
    let secrets = Secrets::default();
    let says = |place: &str| secrets.at(place);
    world.write(
        "teller.sh",
        &format!(
            "cat >/dev/null\nS='{}'\n$S emit ERROR '{}' || true\n\
             $S emit CHANGE '{}'\n$S emit RESULT '{}'\necho \"{}\" >&2\n",
            program(),
            json!({ "code": "ODD", "message": says("an error that is emitted") }),
            json!({ "reason": says("the reason of a change that is emitted"),
                "changes": [{ "file": "a.txt", "action": "create", "content": FILE }] }),
            json!({ "status": "resolved", "summary": says("a result that is emitted"),
                "outputs": { "api_key": secrets.named("an output that is emitted") } }),
            says("what an agent prints"),
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    let web = Web::up_with(&world, &[("DEPLOY_TOKEN", OWN)]);

    let start = json!({
        "request": says("a request"),
        "inputs": {
            "note": says("an input of a run"),
            "password": secrets.named("an input of a run, by its name"),
            "deep": [{ "er": says("a deep input of a run") }],
        },
        "by": says("who begins a run"),
    });
    let run = begin(&web, "one", &start)["run"].as_str().expect("a run").to_owned();
    let again = begin(&web, "one", &start);
    assert_eq!((&again["run"], &again["repeated"]), (&json!(run), &json!(true)), "the same again");

    // An agent of the outside.
    let (place, key) = turn_of(&web, "planner");
    let by = says("who takes a turn");
    for _ in 0..2 {
        let order = web.post(&format!("{place}/accept"), &json!({ "by": by })).ok();
        assert_eq!(order["key"], key, "to take it again is to be told the same again");
        secrets.hear("an order", &order.to_string());
    }
    let note = json!({ "turn": key, "note": says("a report") });
    web.post(&format!("{place}/report"), &note).ok();
    let mut document = request("planner", "builder");
    document["reasonDetail"] = says("the detail of a handoff").into();
    document["contextForTarget"]["summary"] = says("the summary of a handoff").into();
    document["contextForTarget"]["relevantOutputs"]["draft"] = says("an output").into();
    document["contextForTarget"]["priorAttempts"][0]["result"] = says("an earlier try").into();
    document["contextForTarget"]["audience"] = says("a field of a dialect").into();
    document["missingInputs"][0]["description"] = says("what is missing").into();
    let proposed = web.post("/v1/handoffs", &document).ok();
    secrets.hear("a handoff", &proposed.to_string());
    let mut refused = request("planner", "nobody");
    refused["reasonDetail"] = says("a handoff that is refused").into();
    assert_eq!(web.post("/v1/handoffs", &refused).status, 409);
    web.post(&format!("{place}/complete"), &json!({ "turn": key })).ok();
    let (place, key) = turn_of(&web, "builder");
    web.post(&format!("{place}/accept"), &json!({ "by": "builder" })).ok();
    let result = json!({
        "turn": key,
        "summary": says("a summary"),
        "outputs": { "token": secrets.named("an output by its name") },
        "failure": says("a failure"),
        "unresolved": [says("what is not resolved")],
        "recommendations": [says("a recommendation")],
        "handoffs": [{ "to": "human", "wait": true, "summary": says("a question"),
            "missing": [{ "key": "size", "expected_type": "string",
                "description": says("what a person is asked for") }] }],
    });
    let ended = web.post(&format!("{place}/complete"), &result).ok();
    let question = ended["admitted"][0].as_str().expect("a question").to_owned();
    let answer = json!({
        "text": says("an answer"),
        "values": { "size": says("a value of an answer"), "secret": secrets.named("a named value") },
        "by": says("who answers"),
    });
    let answered = web.post(&format!("/v1/inbox/{run}:{question}"), &answer).ok();
    secrets.hear("an answer", &answered.to_string());
    let (place, key) = turn_of(&web, "builder");
    web.post(&format!("{place}/accept"), &json!({ "by": "builder" })).ok();
    web.post(&format!("{place}/reject"), &json!({ "turn": key, "why": says("a rejection") })).ok();

    // A person outside of any turn, and an agent by its own channel.
    let mut document = request("human", "teller");
    document["reasonDetail"] = says("a handoff of a person").into();
    web.post(&format!("/v1/runs/{run}/handoffs"), &document).ok();
    until("the teller is done", || {
        let log = world.run(&["log", &run, "--json"]).ok().lines();
        let over = |event: &Value| {
            event["event"] == "turn_finished" && event.to_string().contains("teller")
        };
        log.iter().any(over).then_some(())
    });
    web.post(
        &format!("/v1/runs/{run}/notes"),
        &json!({ "text": says("a note"), "by": says("who leaves a note") }),
    )
    .ok();
    let said = json!({ "text": says("a comment"), "by": says("who comments"), "file": "a.txt" });
    let commented = web.post("/v1/changes/c1/comment", &said).ok();
    secrets.hear("a comment", &commented["comments"].to_string());
    let change = web.get("/v1/changes/c1").ok();
    assert!(change["diff"].to_string().contains("a1b2c3d4e5"), "{change}");
    let no = json!({ "why": says("why a change is refused"), "by": says("who refuses a change") });
    web.post("/v1/changes/c1/refuse", &no).ok();
    let aside = json!({
        "reason": says("the reason of a change"),
        "author": { "run": run, "person": says("who proposes a change") },
        "changes": [{ "file": "b.txt", "action": "create", "content": "b\n" }],
    });
    let aside = web.post("/v1/changes", &aside);
    assert_eq!(aside.status, 201, "{aside:?}");
    secrets.hear("a change", &aside.body);
    let lock = json!({ "patterns": ["c.txt"], "reason": says("the reason of a lock") });
    web.post("/v1/locks", &lock).ok();
    web.post(&format!("/v1/runs/{run}/fork"), &json!({ "by": says("who forks") })).ok();
    let pause = json!({ "by": says("who pauses") });
    web.post(&format!("/v1/runs/{run}/pause"), &pause).ok();
    let cancel = json!({ "why": says("why a run is cancelled"), "by": says("who cancels") });
    let cancelled = web.post(&format!("/v1/runs/{run}/cancel"), &cancel).ok();
    secrets.hear("a cancelled run", &cancelled.to_string());
    let late = json!({ "text": says("a note to a run that is over") });
    web.post(&format!("/v1/runs/{run}/notes"), &late).ok();

    let mut context: Value = serde_json::from_str(
        &fs::read_to_string(repository().join("fixtures/wire/context.json")).expect("a context"),
    )
    .expect("JSON");
    context["humanNotes"] = says("the notes of a context").into();
    context["discussionSummary"]["keyDecisions"][0] = says("a decision of a context").into();
    context["codeChanges"][0]["content"] = says("a file of a context").into();
    context["aside"] = says("a field of a context").into();
    let next = begin(&web, "two", &json!({ "request": "Go on", "context": context }));
    let next = next["run"].as_str().expect("a run");
    until("a file without its secret is not proposed", || {
        let log = world.run(&["log", next, "--json"]).ok().out;
        (log.contains("IMPORTED_CHANGES") && log.contains("holds a secret")).then_some(())
    });

    let log = world.run(&["log", &run, "--json"]).ok().out;
    assert!(log.contains("[redacted:github]") && log.contains("[redacted:environment]"), "{log}");
    drop(web);
    let mut found = secrets.found_in(&world.state());
    found.extend(secrets.told.take());
    assert!(found.is_empty(), "secrets slip through:\n{}", found.join("\n"));
}

/// A run that waits for an agent of the outside, and an agent that prints what it has in a terminal.
const PLANTED: &str = r#"
[workflow]
name = "planted"
entry = "worker"
[agents.worker]
runner = "pty"
command = ["sh", "worker.sh"]
env = ["INJECTED"]
[agents.clerk]
runner = "external"
[[routes]]
from = "worker"
to = "clerk"
[limits]
ready_timeout = "2m"
accept_timeout = "5m"
"#;

/// The bytes by which a secret is recognised in a file: an index keeps words in small letters.
type Trace = [u8; 12];

fn trace(secret: &Planted) -> Trace {
    let core = secret.core.trim_end_matches('=').to_ascii_lowercase().into_bytes();
    *core.last_chunk().expect("a long one")
}

/// How many secrets of each kind are in the files of a folder.
fn leaked(folder: &Path, planted: &[Planted]) -> BTreeMap<&'static str, usize> {
    let mut traces: HashMap<Trace, &'static str> =
        planted.iter().map(|secret| (trace(secret), secret.kind)).collect();
    let mut leaked = BTreeMap::new();
    for path in files(folder) {
        // A socket has no bytes.
        let Ok(bytes) = fs::read(&path) else { continue };
        for window in bytes.to_ascii_lowercase().windows(size_of::<Trace>()) {
            if let Some(kind) = traces.remove(window) {
                *leaked.entry(kind).or_default() += 1;
            }
        }
    }
    leaked
}

/// What an agent prints: each secret whole, or cut by colours.
fn printed(planted: &[Planted]) -> String {
    let line = |(number, secret): (usize, &Planted)| {
        let (text, cut) = (&secret.text, secret.text.len() / 2);
        match number % 3 {
            0 => format!("it is {text}\n"),
            1 => format!("\x1b[1m{}\x1b[31m{}\x1b[0m\n", &text[..cut], &text[cut..]),
            _ => text.chars().map(|c| format!("\x1b[32m{c}")).collect::<String>() + "\x1b[0m\n",
        }
    };
    planted.iter().enumerate().map(line).collect()
}

#[test]
fn b_17_of_ten_thousand_planted_secrets_practically_none_reaches_a_file() {
    let world = World::workflow(PLANTED);
    let aside = tempfile::tempdir().expect("a folder");
    let planted = planted();
    assert_eq!(planted.len(), 10_000);
    // Every kind goes every way.
    let way = |way: usize| planted.iter().skip(way).step_by(4).collect::<Vec<_>>();
    let shown: Vec<Planted> = way(0).into_iter().chain(way(1)).map(Planted::clone).collect();
    let file = aside.path().join("shown");
    // What is no secret is kept: where it is found, a secret would have been found, too.
    let control = ["printed", "requested", "valued", "keyed"].map(|way| Planted {
        kind: way,
        text: format!("nosecretatall{way}"),
        core: format!("nosecretatall{way}"),
    });
    fs::write(&file, printed(&[&control[..1], &shown].concat())).expect("written");
    world.write(
        "worker.sh",
        &format!(
            "stty -echo -icanon\necho up\nhead -c 1 >/dev/null\nexec 3<&0\ncat <&3 >/dev/null &\n\
             cat '{}'\necho thatisall\nhead -c 2000 /dev/zero | tr '\\0' '.'\n\
             while [ ! -e go ]; do sleep 0.01; done\n\
             '{}' emit RESULT '{{\"status\":\"resolved\"}}'\nwait\n",
            file.display(),
            program(),
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    let injected = planted.iter().filter(|secret| secret.kind == "injected");
    let names: Vec<String> = (0..kinds::EACH).map(|n| format!("INJECTED_{n}_TOKEN")).collect();
    let injected: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(injected.map(|secret| secret.core.as_str())).collect();
    let web = Web::up_with(&world, &injected);
    let said = |secret: &&Planted| format!("so {}", secret.text);
    let values: Vec<String> = [&control[3], &control[2]].iter().chain(&way(3)).map(said).collect();
    let keys: serde_json::Map<String, Value> =
        values.iter().step_by(2).map(|text| (text.clone(), Value::from(1))).collect();
    let asked = |secret: &&Planted| format!("use {}", secret.text);
    let request: Vec<String> = [&control[1]].iter().chain(&way(2)).map(asked).collect();
    let start = json!({
        "request": request.join("\n"),
        "inputs": { "values": values.iter().skip(1).step_by(2).collect::<Vec<_>>(), "keys": keys },
    });
    let run = begin(&web, "one", &start)["run"].as_str().expect("a run").to_owned();
    until("all of it was recorded", || {
        let is_cast = |path: &&PathBuf| path.extension().is_some_and(|end| end == "cast");
        let all = files(world.home());
        let cast = all.iter().find(is_cast)?;
        fs::read_to_string(cast).ok()?.contains("thatisall").then_some(())
    });
    world.write("go", "");
    until("all of it is found", || {
        world.run(&["find", "thatisall"]).ok().out.contains("thatisall").then_some(())
    });
    world.run(&["report", &run, "-o", "report.html"]).ok();
    drop(web);
    let mut leaked = leaked(world.home(), &[planted, control.to_vec()].concat());
    for way in ["printed", "requested", "valued", "keyed"] {
        assert_eq!(leaked.remove(way), Some(1), "what is kept of it can be read here: {way}");
    }
    assert_eq!(leaked.remove("injected"), None, "{leaked:?}");
    assert!(leaked.values().sum::<usize>() <= 49, "more than 0.5 % of 9,750: {leaked:?}");
}
