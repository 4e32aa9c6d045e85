//! What happens around the runs: hooks, triggers and news.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use stafette_hooks::{sign_message, sign_payload};

use crate::world::{PATIENCE, Said, World, gone, until, until_so};

const ECHO: &str = r#"
[workflow]
name = "echo"
entry = "one"
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "cat > /dev/null; echo ran >> ran"]
"#;

fn with(rest: &str) -> World {
    World::workflow(&format!("{ECHO}{rest}"))
}

fn hook(on: &str, script: &str, rest: &str) -> String {
    // Nearly as long as a hook before a turn may take.
    let timeout = if rest.contains("timeout") { "" } else { "timeout = \"25s\"" };
    let command = json!(["sh", "-c", script]);
    format!("[[hooks]]\non = \"{on}\"\ncommand = {command}\n{timeout}\n{rest}\n")
}

#[test]
fn b_16_a_hook_says_no_before_a_run_and_nothing_begins() {
    let script = "cat > asked.json; echo 'the budget is spent' >&2; exit 2";
    let world = with(&hook("before_run", script, ""));
    let listed = world.run(&["trust", "--list"]).ok();
    assert!(listed.out.contains("hooks[1] on before_run"), "{listed:?}");
    let said = world.run(&["run", "--foreground", "Add login"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("the budget is spent"), "{said:?}");
    let asked: Value = serde_json::from_str(&world.read("asked.json")).expect("JSON");
    assert_eq!(asked["event"], "before_run");
    assert_eq!(asked["request"], "Add login");
    assert_eq!(world.run(&["status", "--json"]).ok().json(), json!([]), "no run is there");
    assert_eq!(world.read("ran"), "");
}

#[test]
fn b_16_a_hook_says_no_before_a_turn_and_the_record_says_why() {
    let script = "cat > asked.json; echo 'not this agent' >&2; exit 2";
    let world = with(&hook("before_turn", script, "agents = [\"one\"]"));
    let said = world.run(&["run", "--foreground", "Add login"]);
    assert_eq!(said.code, 3, "a person has to look: {said:?}");
    let asked: Value = serde_json::from_str(&world.read("asked.json")).expect("JSON");
    let about = (&asked["event"], &asked["agent"], &asked["handoff"]);
    assert_eq!(about, (&"before_turn".into(), &"one".into(), &"h1".into()));
    let log = world.run(&["log", "--json"]).ok();
    let failed = log.lines().into_iter().find(|event| event["event"] == "turn_failed");
    let failed = failed.expect("it is on record").to_string();
    assert!(failed.contains("a hook said no: not this agent"), "{failed}");
    assert_eq!(world.read("ran"), "", "the agent was never started");
}

#[test]
fn b_16_a_hook_that_breaks_is_an_alert_or_a_no_as_the_workflow_has_it() {
    let events = |said: &Said| said.lines().iter().map(|e| e.to_string()).collect::<String>();
    for script in ["echo oh >&2; exit 7", "sleep 600"] {
        let rest = "timeout = \"300ms\"";
        let world = with(&hook("before_turn", script, rest));
        world.run(&["run", "--foreground", "Add login"]).ok();
        let log = events(&world.run(&["log", "--json"]).ok());
        assert!(log.contains("HOOK_FAILED") && log.contains("the hook on before_turn"), "{log}");
        assert_eq!(world.read("ran"), "ran\n");
        let rest = format!("{rest}\non_error = \"block\"");
        let world = with(&hook("before_turn", script, &rest));
        assert_eq!(world.run(&["run", "--foreground", "Add login"]).code, 3);
        assert_eq!(world.read("ran"), "");
    }
}

#[test]
fn b_16_nothing_that_a_hook_started_outlives_it() {
    let world = with(&hook("before_turn", "sleep 600 & echo $! > helper.pid", ""));
    world.run(&["run", "--foreground", "Add login"]).ok();
    gone(world.read("helper.pid").trim().parse().expect("a process"));
}

#[test]
fn b_16_hooks_hear_of_every_event_once_over_restarts() {
    let note = |file: &str| format!("cat >> {file}; echo >> {file}");
    let world = with(
        &[
            hook("run_finished", &note("finished"), ""),
            hook("agent_completed", &note("completed"), "agents = [\"one\"]"),
            hook("handoff_created", &note("created"), ""),
        ]
        .concat(),
    );
    for round in 1..=3 {
        world.run(&["up"]).ok();
        world.run(&["run", &format!("Round {round}")]).ok();
        until_so("the hook", || world.read("finished").lines().count() >= round);
        world.run(&["down"]).ok();
    }
    world.run(&["up"]).ok();
    world.run(&["run", "Round 4"]).ok();
    until_so("the hook", || world.read("finished").lines().count() >= 4);
    world.run(&["down"]).ok();
    for file in ["finished", "completed", "created"] {
        let lines = world.read(file);
        let requests: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["request"].clone())
            .collect();
        assert_eq!(requests, ["Round 1", "Round 2", "Round 3", "Round 4"], "{file}");
    }
}

/// Where the daemon listens, as it says itself.
pub(crate) fn door(world: &World) -> String {
    until("the door", || {
        let log = world.kept("daemon.log");
        let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find_map(|line| Some(line["url"].as_str()?.to_owned()))
    })
}

/// Asks the daemon by TCP; its status and what it says.
fn post(url: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("the daemon");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let mut text = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

#[test]
fn b_16_a_webhook_with_its_signature_begins_a_run_and_nothing_else_does() {
    let world = with(
        "[[triggers]]\nname = \"issues\"\nwebhook = true\nsecret_env = \"HOOK_SECRET\"\n\
         request = \"Look at {payload.issue.title}\"\n",
    );
    let env = [("HOOK_SECRET", "a secret of ours")];
    world.run_with(&["up", "--listen", "127.0.0.1:0"], b"", &env).ok();
    let url = door(&world);
    let body = json!({ "issue": { "title": "the login" } }).to_string();
    let signature = sign_payload("a secret of ours", body.as_bytes());
    let path = "/v1/triggers/issues";
    let signed = [("x-hub-signature-256", signature.as_str()), ("x-github-delivery", "d-1")];
    let (status, problem) = post(&url, path, &[], &body);
    assert_eq!((status, &problem["code"]), (401, &"bad_signature".into()));
    let wrong = [("x-hub-signature-256", "sha256=00"), ("x-github-delivery", "d-1")];
    assert_eq!(post(&url, path, &wrong, &body).0, 401);
    assert_eq!(post(&url, "/v1/triggers/issues/fire", &signed, &body).0, 401, "that takes a token");
    assert_eq!(post(&url, "/v1/runs", &signed, &body).0, 401);
    let foreign = [signed[0], signed[1], ("origin", "https://elsewhere.example")];
    assert_eq!(post(&url, path, &foreign, &body).0, 403, "the guard looks first");
    let theirs = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let traced = [signed[0], signed[1], ("traceparent", theirs)];
    let (status, first) = post(&url, path, &traced, &body);
    assert_eq!(status, 200, "{first}");
    let run = first["run"].as_str().expect("a run");
    let log = world.run(&["log", run, "--json"]).ok().lines();
    assert_eq!(log[0]["trace"], theirs, "it is a part of what the sender does: {}", log[0]);
    let (status, again) = post(&url, path, &signed, &body);
    assert_eq!((status, &again["run"], &again["repeated"]), (200, &first["run"], &true.into()));
    let listed = world.run(&["triggers", "--json"]).ok().json();
    assert_eq!((&listed[0]["name"], &listed[0]["secret_set"]), (&"issues".into(), &true.into()));
    let payload = json!({ "issue": { "title": "the page" } }).to_string();
    let fired = world.run(&["triggers", "fire", "issues", "--payload", &payload]).ok();
    assert_eq!(fired.out.trim().len(), 36, "{fired:?}");
    assert_eq!(world.run(&["triggers", "fire", "nothing"]).code, 1);
    let runs = world.run(&["status", "--json"]).ok().json();
    let requests: Vec<&Value> =
        runs.as_array().expect("runs").iter().map(|run| &run["request"]).collect();
    assert_eq!(requests, ["Look at the page", "Look at the login"]);
}

/// A message as it came in.
#[derive(Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Received {
    /// What somebody says; nothing when they go away, or are killed, before they have said it.
    pub(crate) fn from(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while reader.read_line(&mut head).ok()? > 2 {}
        let mut received = Received { head, body: String::new() };
        let mut body = vec![0; received.header("content-length").parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        received.body = String::from_utf8(body).expect("text");
        Some(received)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).unwrap_or_default()
    }
}

/// Takes messages on loopback; the first one is turned away, as a busy server does.
pub(crate) fn receiver() -> (String, mpsc::Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/in", listener.local_addr().expect("an address"));
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        let mut busy = true;
        for mut stream in listener.incoming().map_while(Result::ok) {
            let Some(received) = Received::from(&stream) else { continue };
            let status = if std::mem::take(&mut busy) { "503 Busy" } else { "204 Thanks" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
            if sender.send(received).is_err() {
                return;
            }
        }
    });
    (url, received)
}

#[test]
fn b_13_news_reaches_the_desktop_and_a_receiver_that_knows_who_sent_it() {
    let (url, received) = receiver();
    let world = with(&format!(
        "[notify]\ndesktop = true\nbatch = \"200ms\"\non = [\"finished\"]\n\
         link = \"https://page.example/\"\n\
         [notify.webhook]\nurl = \"{url}\"\nsecret_env = \"NEWS_SECRET\"\n"
    ));
    let bin = world.home().join("bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    let shown = world.project().join("shown");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> {}\n", shown.display());
    stafette_testkit::program::write(&bin.join("notify-send"), &script).expect("a program");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let env = [("PATH", path.as_str()), ("NEWS_SECRET", "shared between us")];
    world.run_with(&["up"], b"", &env).ok();
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    world.run(&["run", &format!("Add login with {token}")]).ok();
    let take = || received.recv_timeout(PATIENCE).expect("a message");
    let (first, second) = (take(), take());
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"), "it is the same again");
    assert_eq!(first.body, second.body);
    let (id, time) = (second.header("webhook-id"), second.header("webhook-timestamp"));
    let expected =
        sign_message("shared between us", id, time.parse().expect("seconds"), &second.body);
    assert_eq!(second.header("webhook-signature"), expected);
    let message: Value = serde_json::from_str(&second.body).expect("JSON");
    let title = message["title"].as_str().expect("a title");
    assert!(title.starts_with("succeeded: Add login"), "{title}");
    assert!(!second.body.contains(token), "{message}");
    let link = message["link"].as_str().expect("a link");
    assert!(link.starts_with("https://page.example/runs/"), "{link}");
    until_so("the desktop", || world.read("shown").contains("succeeded: Add login"));
    assert!(!world.read("shown").contains(token));
    let tried = world.run(&["notify", "test", "--json"]).ok().json();
    assert_eq!(
        tried,
        json!([{ "channel": "desktop", "sent": true }, { "channel": "webhook", "sent": true }])
    );
    assert!(world.read("shown").contains("Stafette can reach you"));
    // Whoever does not hear in time that it was taken sends it again.
    let next = std::iter::repeat_with(take).find(|next| next.header("webhook-id") != id);
    assert!(next.is_some_and(|next| next.body.contains("This is a test.")));
}

/// Makes a certificate in a world's project: `cert.pem` with `key.pem`, and `ca.pem`.
pub(crate) fn certificates(world: &World) {
    if let Err(trouble) = stafette_testkit::tools::debian("openssl", "openssl") {
        panic!("{trouble}");
    }
    let made = world
        .command("sh")
        .args(["-c", stafette_testkit::tools::CERTIFICATES])
        .output()
        .expect("sh");
    assert!(made.status.success(), "{made:?}");
}

/// A server that speaks TLS: prints its port, then each request as a line of JSON.
const TAKER: &str = r#"
import http.server, json, ssl
class Taker(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode("latin-1")
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
        headers = {name.lower(): value for name, value in self.headers.items()}
        print(json.dumps({"path": self.path, "headers": headers, "body": body}), flush=True)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// Somebody who takes what is sent by TLS, and prints it as lines of JSON after their port.
pub(crate) struct Taker {
    process: std::process::Child,
    lines: mpsc::Receiver<String>,
    pub(crate) port: u16,
}

impl Taker {
    /// Takes what is posted, with a certificate in the world's project.
    pub(crate) fn start(world: &World) -> Self {
        certificates(world);
        let mut command = world.command("python3");
        command.args(["-c", TAKER]);
        Self::of(command)
    }

    pub(crate) fn of(mut command: std::process::Command) -> Self {
        let mut process = command.stdout(std::process::Stdio::piped()).spawn().expect("python");
        let out = BufReader::new(process.stdout.take().expect("standard output"));
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        let port = lines.recv_timeout(PATIENCE).expect("a port").parse().expect("a number");
        Taker { process, lines, port }
    }

    /// What comes next.
    pub(crate) fn hear(&self) -> Value {
        self.hear_within(PATIENCE).expect("something")
    }

    /// What comes next, if it comes so soon.
    pub(crate) fn hear_within(&self, patience: Duration) -> Option<Value> {
        let line = self.lines.recv_timeout(patience).ok()?;
        Some(serde_json::from_str(&line).expect("JSON"))
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn b_13_news_goes_by_tls_only_to_whom_the_system_trusts() {
    // Another daemon is the server: it takes no such request, but only who got through hears that.
    let other = with("");
    certificates(&other);
    let up = ["up", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    other.run(&up).ok();
    let url = door(&other).replace("127.0.0.1", "localhost");
    assert!(url.starts_with("https://localhost:"), "{url}");
    let world = with(&format!("[notify.ntfy]\nurl = \"{url}/v1/runs\"\ntopic = \"news\"\n"));
    let said = world.run(&["notify", "test", "--json"]);
    assert_eq!(said.code, 1);
    let why = said.json()[0]["why"].as_str().expect("a reason").to_owned();
    assert!(why.contains("invalid peer certificate"), "{why}");
    world.run(&["down"]).ok();
    let trusted = other.project().join("ca.pem").display().to_string();
    world.run_with(&["up"], b"", &[("SSL_CERT_FILE", trusted.as_str())]).ok();
    let why = world.run(&["notify", "test", "--json"]).json()[0]["why"].to_string();
    assert!(why.contains("it answered 401"), "{why}");
}
