//! The Agent2Agent protocol, with the SDK that its makers publish on both ends.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::around::{Received, Taker, certificates};
use crate::world::{World, gone, until, until_so};

/// A Python with the SDK.
fn python() -> PathBuf {
    let requirements = include_str!("a2a/requirements.txt");
    let folder = stafette_testkit::tools::python("a2a", requirements).expect("the SDK");
    folder.join("bin/python")
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/suite/a2a").join(name)
}

/// The daemon's door on TCP, and a token for it.
fn door(world: &World) -> (String, String) {
    let pid = world.run(&["up", "--json"]).ok().json()["pid"].clone();
    // It answers on its socket a moment before it says where its other door is.
    let url = until("the door", || {
        let log = world.kept("daemon.log");
        let mut said = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        said.find(|line| line["pid"] == pid)?["url"].as_str().map(str::to_owned)
    });
    let name = format!("sdk-{pid}");
    let made = world.run(&["token", "create", &name, "--scope", "act", "--json"]).ok().json();
    (url, made["token"].as_str().expect("a token").to_owned())
}

/// Has the SDK's client do something, and returns what it saw.
fn client(world: &World, phase: &str, mut settings: Value) -> Value {
    let (url, token) = door(world);
    // The name that certificates are for.
    settings["url"] = url.replace("https://127.0.0.1", "https://localhost").into();
    settings["token"] = token.into();
    let mut command = Command::new(python());
    command.arg(script("client.py")).args([phase, &settings.to_string()]);
    let output = command.output().expect("Python");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// Somebody who is notified, and keeps what they are told.
struct Notified {
    url: String,
    told: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Notified {
    fn new() -> Self {
        let door = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/told", door.local_addr().expect("an address"));
        let told: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let kept = Arc::clone(&told);
        // Ends with the test's process; nobody connects after the test.
        std::thread::spawn(move || {
            let mut busy = true;
            for mut stream in door.incoming().map_while(Result::ok) {
                let Some(received) = Received::from(&stream) else { continue };
                // The first one is lost, and comes again.
                let lost = std::mem::take(&mut busy);
                if !lost {
                    let body = serde_json::from_str(&received.body).expect("JSON");
                    kept.lock().expect("told").push((received.head, body));
                }
                let answer = if lost { "503 Busy" } else { "204 No Content" };
                let text =
                    format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                // Who was killed meanwhile does not hear it.
                let _ = stream.write_all(text.as_bytes());
            }
        });
        Notified { url, told }
    }

    /// Waits until something that fits has been told.
    fn hears(&self, fits: impl Fn(&Value) -> bool) -> (String, Value) {
        let told = || self.told.lock().expect("told").iter().find(|(_, told)| fits(told)).cloned();
        until("the notification", told)
    }
}

/// Has the project name an address of this machine that may be notified.
fn allow_push(world: &World, url: &str) {
    let workflow = world.read("stafette.toml");
    world.write("stafette.toml", &format!("{workflow}\n[server]\npush = [\"{url}\"]\n"));
    world.run(&["trust", "--yes"]).ok();
}

/// Kills the daemon as a power loss would, and starts the next one.
fn crash(world: &World) {
    let up = world.run(&["up", "--json"]).ok().json();
    let pid = up["pid"].as_u64().expect("a process");
    let kill = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(kill.expect("kill").success());
    gone(pid);
    world.run(&["up", "--listen", "127.0.0.1:0"]).ok();
}

#[test]
fn b_11_the_sdk_hands_work_over_answers_and_gets_the_result() {
    let world = World::example("report");
    // Research takes until somebody has seen it at work.
    let research = world.read("agents/research.toml");
    let waits = r#"steps = [{ run = "while [ ! -e go ]; do sleep 0.02; done" },"#;
    world.write("agents/research.toml", &research.replace("steps = [", waits));
    let notified = Notified::new();
    allow_push(&world, &notified.url);
    world.run(&["up", "--listen", "127.0.0.1:0"]).ok();
    let text = "Write the market report";
    let begun = client(&world, "begin", json!({ "text": text, "push": notified.url }));
    let skills = json!(["report", "agent/research", "agent/writer"]);
    assert_eq!(
        begun["card"],
        json!({
            "name": "report", "skills": skills, "streaming": true, "schemes": ["bearer"],
            "urls": ["/a2a", "/a2a/v1"],
        })
    );
    let seen = &begun["seen"];
    let states = seen["states"].as_array().expect("states");
    assert_eq!(states.last(), Some(&json!("TASK_STATE_INPUT_REQUIRED")), "{seen}");
    assert_eq!(seen["question"]["text"], "writer needs audience (who the report is for)");
    assert_eq!(seen["question"]["data"][0]["inputs"][0]["key"], "audience");
    assert_eq!(begun["again"], seen["task"], "the same message is the same task");
    let (head, _) = notified
        .hears(|told| told["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED");
    let head = head.to_lowercase();
    assert!(head.contains("x-a2a-notification-token: push-secret"), "{head}");
    assert!(head.contains("authorization: bearer push-credential"), "{head}");

    // Nothing of a task is in the daemon's memory alone.
    crash(&world);
    let task = &seen["task"];
    let go = world.project().join("go");
    let done = client(&world, "answer", json!({ "text": "founders", "task": task, "go": go }));
    assert_eq!(done["found"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(done["history"][0], begun["message"]);
    assert_eq!((&done["listed"], &done["asking"]), (&json!([task]), &json!([task])));
    let states = done["seen"]["states"].as_array().expect("states");
    assert_eq!(states.last(), Some(&json!("TASK_STATE_COMPLETED")), "{done}");
    assert!(states.contains(&json!("TASK_STATE_WORKING")), "{done}");
    assert_eq!(done["seen"]["artifacts"], json!(["The report is in report.md"]));
    assert_eq!(done["artifacts"], done["seen"]["artifacts"]);
    assert_eq!(done["again"], json!(["TASK_STATE_COMPLETED"]), "an answer counts once");
    assert_eq!(
        done["messages"],
        json!([text, "writer needs audience (who the report is for)", "founders"])
    );
    assert_eq!(done["late"], "UnsupportedOperationError");
    assert_eq!(done["subscribe"], "UnsupportedOperationError");
    assert_eq!(done["unknown"], "TaskNotFoundError");
    let (_, told) =
        notified.hears(|told| told["task"]["status"]["state"] == "TASK_STATE_COMPLETED");
    assert_eq!(told["task"]["id"], *task);
    assert!(world.read("report.md").starts_with("# The market"));
    let runs = world.run(&["status", "--json"]).ok().json();
    assert_eq!(runs[0]["run"], *task, "a task is a run: {runs}");
}

#[test]
fn b_11_the_sdk_waits_subscribes_cancels_and_lists_by_both_bindings() {
    let world = World::example("report");
    let notified = Notified::new();
    allow_push(&world, &notified.url);
    world.run(&["up", "--listen", "127.0.0.1:0"]).ok();
    let seen = client(&world, "steer", json!({ "push": notified.url }));
    assert_eq!(seen["first"]["states"], json!(["TASK_STATE_INPUT_REQUIRED"]), "it waited: {seen}");
    assert_eq!((&seen["made"], &seen["got"]), (&json!("mine"), &json!(notified.url)));
    assert_eq!((&seen["listed"], &seen["after"]), (&json!(1), &json!(0)));
    let refused = seen["refused"].as_array().expect("refusals");
    assert!(refused.iter().all(|error| error == "InvalidParamsError"), "{refused:?}");
    assert_eq!(seen["by_path"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(seen["opened"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(seen["cancelled"], "TASK_STATE_CANCELED");
    assert_eq!(seen["told"], json!(["TASK_STATE_CANCELED"]));
    assert_eq!(seen["twice"], "TaskNotCancelableError");
    assert_eq!(seen["together"], json!([seen["second"], seen["first"]["task"]]));
    assert_eq!((&seen["total"], &seen["more"]), (&json!(2), &json!("")));
}

/// A remote agent that is made with the SDK.
struct Remote {
    process: Child,
    url: String,
    folder: tempfile::TempDir,
}

impl Remote {
    fn new(words: &[&str]) -> Self {
        Self::start(tempfile::tempdir().expect("a folder"), words)
    }

    /// One that is reached by TLS, with the certificate of a world.
    fn by_tls(world: &World) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["cert.pem", "key.pem"] {
            fs::copy(world.project().join(name), folder.path().join(name)).expect("copied");
        }
        Self::start(folder, &["tls"])
    }

    fn start(folder: tempfile::TempDir, words: &[&str]) -> Self {
        let mut command = Command::new(python());
        command.arg(script("server.py"));
        command.args(["ledger", "gate"]).args(words).current_dir(folder.path());
        let mut process = command.stdout(Stdio::piped()).spawn().expect("Python");
        let mut url = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut url).expect("its address");
        Remote { process, url: url.trim().to_owned(), folder }
    }

    fn world(&self) -> World {
        World::workflow(&format!(
            "[workflow]\nname = \"far\"\nentry = \"builder\"\n\
             [agents.builder]\nrunner = \"a2a\"\nurl = \"{}\"\n",
            self.url
        ))
    }

    /// What it did so far.
    fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn open_gate(&self) {
        fs::write(self.folder.path().join("gate"), "").expect("written");
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn a_remote_agent_does_a_turn(words: &[&str]) {
    let remote = Remote::new(words);
    let world = remote.world();
    let said = world.run(&["run", "Build it"]);
    assert_eq!(said.code, 3, "it asks: {said:?}");
    assert!(said.out.contains("Which database?"), "{said:?}");
    assert!(said.out.contains("options: SQLite · PostgreSQL"), "{said:?}");
    world.run(&["answer", "2", "SQLite"]).ok();
    until_so("it goes on", || remote.ledger().len() == 2);
    // The daemon dies while the other side works: it goes on with the same task.
    crash(&world);
    remote.open_gate();
    let view = world.run(&["resume", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert_eq!(remote.ledger(), ["began", "answered SQLite"], "nothing was done twice");
    let handoffs = world.run(&["handoffs", "--json"]).ok().json();
    let response = &handoffs[0]["handoff"]["state"]["closed"]["response"];
    assert_eq!(response["outputs"], json!({ "database": "SQLite" }), "{response}");
    let summary = response["summary"].as_str().expect("a summary");
    assert!(summary.ends_with("It is built with SQLite"), "{summary}");
}

#[test]
fn b_11_a_turn_goes_to_a_remote_agent_and_survives_a_crash() {
    a_remote_agent_does_a_turn(&[]);
}

#[test]
fn b_11_a_remote_agent_that_does_not_stream_is_looked_at() {
    a_remote_agent_does_a_turn(&["plain"]);
}

#[test]
fn b_11_a_run_that_is_cancelled_calls_off_its_remote_task() {
    // At work, and while it waits for an answer.
    for answer in [true, false] {
        let remote = Remote::new(&[]);
        let world = remote.world();
        assert_eq!(world.run(&["run", "Build it"]).code, 3);
        if answer {
            world.run(&["answer", "2", "SQLite"]).ok();
            until_so("it goes on", || remote.ledger().len() == 2);
        }
        world.run(&["cancel"]).ok();
        until_so("its end", || remote.ledger().contains(&"called off".to_owned()));
    }
}

/// What makes a world trust another one's certificate.
fn trusted(world: &World) -> String {
    world.project().join("ca.pem").display().to_string()
}

/// A door by TLS, with certificates of its own.
const BY_TLS: [&str; 7] =
    ["up", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];

#[test]
fn b_11_a_remote_agent_is_reached_by_tls() {
    let vouches = World::new();
    certificates(&vouches);
    let remote = Remote::by_tls(&vouches);
    let world = remote.world();
    world.run_with(&["up"], b"", &[("SSL_CERT_FILE", &trusted(&vouches))]).ok();
    assert_eq!(world.run(&["run", "Build it"]).code, 3, "it asks");
    world.run(&["answer", "2", "SQLite"]).ok();
    remote.open_gate();
    let view = world.run(&["resume", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert_eq!(remote.ledger(), ["began", "answered SQLite"]);
}

#[test]
fn b_11_the_sdk_comes_by_tls_and_is_notified_by_tls() {
    let world = World::example("report");
    let notified = Taker::start(&world);
    let ca = trusted(&world);
    let push = format!("https://localhost:{}/told", notified.port);
    allow_push(&world, &push);
    world.run_with(&BY_TLS, b"", &[("SSL_CERT_FILE", &ca)]).ok();
    let begun = client(&world, "begin", json!({ "text": "Write it", "push": push, "ca": ca }));
    assert_eq!(begun["card"]["urls"], json!(["/a2a", "/a2a/v1"]), "where it was asked: {begun}");
    let states = begun["seen"]["states"].as_array().expect("states");
    assert_eq!(states.last(), Some(&json!("TASK_STATE_INPUT_REQUIRED")), "{begun}");
    loop {
        let told = notified.hear();
        assert_eq!(told["headers"]["x-a2a-notification-token"], "push-secret", "{told}");
        let body: Value = serde_json::from_str(told["body"].as_str().expect("text")).expect("JSON");
        if body["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" {
            break;
        }
    }
}

#[test]
fn b_11_one_project_hands_work_to_another_by_tls_within_one_trace() {
    let nobody = "[telemetry]\notlp = \"http://127.0.0.1:9\"\n";
    let script = "cat > /dev/null; echo \"$TRACEPARENT\" > context; echo built";
    let far = World::workflow(&format!(
        "[workflow]\nname = \"far\"\nentry = \"one\"\n[agents.one]\nrunner = \"exec\"\nresult = \"exit\"\n\
         command = {}\n{nobody}",
        json!(["sh", "-c", script])
    ));
    certificates(&far);
    far.run(&BY_TLS).ok();
    let (url, token) = door(&far);
    let near = World::workflow(&format!(
        "[workflow]\nname = \"near\"\nentry = \"builder\"\n\
         [agents.builder]\nrunner = \"a2a\"\nurl = \"{}\"\nbearer = \"FAR_TOKEN\"\n{nobody}",
        url.replace("127.0.0.1", "localhost")
    ));
    let env = [("SSL_CERT_FILE", &*trusted(&far)), ("FAR_TOKEN", &*token)];
    near.run_with(&["up"], b"", &env).ok();
    let view = near.run(&["run", "Build it", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    let trace = view["run"].as_str().expect("a run").replace('-', "");
    let context = far.read("context");
    assert!(context.starts_with(&format!("00-{trace}-")), "{context} is not of {trace}");
}
