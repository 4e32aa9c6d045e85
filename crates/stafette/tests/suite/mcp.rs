//! The Model Context Protocol, as the official clients speak it: both eras, both transports. Each of
//! them takes a piece of work from request to end.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use serde_json::{Value, json};
use stafette_testkit::tools;

use crate::world::{Said, World, program, repository};

/// How long a client may take for everything, in seconds.
const LIMIT: &str = "400";

/// Two agents that nobody here starts; the second wants to see files.
pub(crate) const OUTSIDE: &str = r#"
    [workflow]
    name = "outside"
    entry = "builder"
    [agents.builder]
    runner = "external"
    role = "Builds what is asked."
    prompt = "You build."
    [agents.reviewer]
    runner = "external"
    role = "Reviews what was built."
    [[routes]]
    from = "builder"
    to = "reviewer"
    requires = ["files"]
    [limits]
    cooldown = 0
    accept_timeout = "10m"
"#;

/// Every tool there is.
const TOOLS: [&str; 18] = [
    "accept",
    "answer",
    "assess",
    "briefing",
    "complete",
    "escalate",
    "handoff",
    "inbox",
    "lock",
    "message",
    "propose_change",
    "reject",
    "report",
    "start_run",
    "status",
    "unlock",
    "vote",
    "wait",
];

/// The clients of others.
pub(crate) struct Clients {
    /// With Python and Node in `bin`.
    python: PathBuf,
    /// With packages in `node_modules`.
    node: PathBuf,
}

impl Clients {
    /// Installed, if they were not.
    pub(crate) fn get() -> &'static Clients {
        static CLIENTS: OnceLock<Clients> = OnceLock::new();
        CLIENTS.get_or_init(|| {
            let python = tools::python("mcp-python", include_str!("../mcp/requirements.txt"));
            let package = include_str!("../mcp/package.json");
            let node = tools::node("mcp-node", package, include_str!("../mcp/package-lock.json"));
            match (python, node) {
                (Ok(python), Ok(node)) => Clients { python, node },
                (Err(trouble), _) | (_, Err(trouble)) => panic!("{trouble}"),
            }
        })
    }

    /// A command with Node 24, in the world's own environment.
    pub(crate) fn node(&self, world: &World, script: &Path) -> Command {
        let mut command = world.command("timeout");
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.python.join("bin");
        command.env("PATH", format!("{}:{path}", bin.display()));
        command.arg(LIMIT).arg(bin.join("node")).arg(script);
        command
    }

    /// A file of one of the packages.
    pub(crate) fn package(&self, path: &str) -> PathBuf {
        self.node.join("node_modules").join(path)
    }

    fn story(&self, world: &World, script: &str, place: &Value) -> Value {
        let script = repository().join("crates/stafette/tests/mcp").join(script);
        let mut command = match script.extension().is_some_and(|ending| ending == "py") {
            true => {
                let mut command = world.command("timeout");
                command.arg(LIMIT).arg(self.python.join("bin/python")).arg(&script);
                command
            }
            false => self.node(world, &script),
        };
        let mut place = place.clone();
        place["packages"] = json!(self.node);
        said(command.arg(place.to_string())).ok().json()
    }
}

/// What a command says.
pub(crate) fn said(command: &mut Command) -> Said {
    let output = command.output().expect("it starts");
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A world with a daemon whose door is open on TCP too.
pub(crate) struct Server {
    pub(crate) world: World,
    pub(crate) url: String,
    /// What a program has to show there.
    pub(crate) bearer: String,
}

impl Server {
    pub(crate) fn new(workflow: &str) -> Self {
        Self::of(World::workflow(workflow), &[])
    }

    /// The same for a world that is there, with something in the daemon's environment.
    pub(crate) fn of(world: World, env: &[(&str, &str)]) -> Self {
        world.run_with(&["up", "--listen", "127.0.0.1:0"], b"", env).ok();
        // It answers on its socket before it has said where else.
        let url = crate::around::door(&world);
        let token = world.run(&["token", "create", "mcp", "--scope", "act", "--json"]).ok().json();
        Server {
            url: format!("{url}/mcp"),
            bearer: format!("Bearer {}", token["token"].as_str().expect("a token")),
            world,
        }
    }

    /// Where the Unix socket can be reached by TCP too, for those who cannot show a token.
    pub(crate) fn relay(&self) -> String {
        let relay = relay(self.world.state().join("daemon.sock")).expect("a relay");
        format!("http://{relay}/mcp")
    }

    /// Where the server is, by each transport.
    fn places(&self, era: &str) -> [Value; 2] {
        let stdio = json!({
            "transport": "stdio",
            "era": era,
            "command": program(),
            "arguments": ["mcp"],
            "folder": self.world.project(),
            "env": { "HOME": self.world.home(), "PATH": std::env::var("PATH").ok() },
        });
        let headers = json!({ "Authorization": self.bearer });
        let http = json!({ "transport": "http", "era": era, "url": self.url, "headers": headers });
        [stdio, http]
    }
}

/// Passes bytes on from a free port of loopback to a socket, both as they are.
fn relay(socket: PathBuf) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for visitor in listener.incoming().map_while(Result::ok) {
            // A daemon that has gone answers nobody.
            let Ok(daemon) = UnixStream::connect(&socket) else { continue };
            let _ = passing(visitor, daemon);
        }
    });
    Ok(address)
}

fn passing(visitor: TcpStream, daemon: UnixStream) -> io::Result<()> {
    let (mut from_visitor, mut to_daemon) = (visitor.try_clone()?, daemon.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_visitor, &mut to_daemon);
        let _ = to_daemon.shutdown(Shutdown::Write);
    });
    let (mut from_daemon, mut to_visitor) = (daemon, visitor);
    thread::spawn(move || {
        let _ = io::copy(&mut from_daemon, &mut to_visitor);
        let _ = to_visitor.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn takes_work_to_its_end(script: &str, sdk: &str, era: &str, protocol: &str) {
    let server = Server::new(OUTSIDE);
    for mut place in server.places(era) {
        place["sdk"] = json!(sdk);
        let seen = Clients::get().story(&server.world, script, &place);
        assert_eq!(seen["tools"], json!(TOOLS), "{place}");
        // One of them does not say what it agreed on over a stream.
        if !seen["protocol"].is_null() {
            assert_eq!(seen["protocol"], protocol, "{place}");
        }
        let run = seen["run"].as_str().expect("a run");
        let handoffs = server.world.run(&["handoffs", run, "--json"]).ok().json();
        let states: Vec<&Value> =
            handoffs.as_array().into_iter().flatten().map(|one| &one["state"]).collect();
        let admitted = states.iter().filter(|state| **state == "resolved").count();
        assert_eq!(admitted, 2, "{handoffs}");
    }
}

#[test]
fn b_11_the_python_client_takes_work_to_its_end_in_the_session_era() {
    takes_work_to_its_end("story.py", "mcp", "legacy", "2025-11-25");
}

#[test]
fn b_11_the_python_client_takes_work_to_its_end_in_the_stateless_era() {
    takes_work_to_its_end("story.py", "mcp", "auto", "2026-07-28");
}

#[test]
fn b_11_the_first_typescript_client_takes_work_to_its_end() {
    takes_work_to_its_end("story.mjs", "sdk", "legacy", "2025-11-25");
}

#[test]
fn b_11_the_second_typescript_client_takes_work_to_its_end_in_the_session_era() {
    takes_work_to_its_end("story.mjs", "client", "legacy", "2025-11-25");
}

#[test]
fn b_11_the_second_typescript_client_takes_work_to_its_end_in_the_stateless_era() {
    takes_work_to_its_end("story.mjs", "client", "stateless", "2026-07-28");
}

#[test]
fn b_11_the_guard_stands_in_front_of_the_door() {
    let server = Server::new(OUTSIDE);
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "page", "version": "1" },
        },
    });
    let status = |headers: &[&str]| {
        let mut curl = server.world.command("curl");
        curl.args(["--silent", "--max-time", "120", "--output", "/dev/null"]);
        curl.args(["--write-out", "%{http_code}", "--data", &hello.to_string()]);
        curl.args(["--header", "Content-Type: application/json"]);
        curl.args(["--header", "Accept: application/json, text/event-stream"]);
        for header in headers {
            curl.args(["--header", header]);
        }
        said(curl.arg(&server.url)).ok().out
    };
    let bearer = format!("Authorization: {}", server.bearer);
    let own = server.url.trim_end_matches("/mcp");
    assert_eq!(status(&[&bearer]), "200");
    assert_eq!(status(&[&bearer, &format!("Origin: {own}")]), "200");
    assert_eq!(status(&[]), "401");
    assert_eq!(status(&["Authorization: Bearer made-up"]), "401");
    assert_eq!(status(&[&bearer, "Origin: http://evil.example"]), "403");
    assert_eq!(status(&[&bearer, "Host: evil.example"]), "403");
}
