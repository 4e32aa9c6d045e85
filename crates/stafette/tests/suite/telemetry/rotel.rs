//! A real collector: Rotel, from PyPI. It prints the spans that it gets.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::ops::Index;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::tool;
use crate::world::{PATIENCE, until};

const REQUIREMENTS: &str = "rotel==0.0.1a15\n";

/// How long to wait for the next line, and how often in vain until nothing more is being printed: a
/// machine that stands still for a while spoils one of them at most.
const QUIET: (Duration, usize) = (Duration::from_millis(100), 15);

/// How often to try with other ports: somebody else may have taken them.
const TRIES: usize = 5;

/// A collector that runs.
pub(super) struct Rotel {
    child: Child,
    lines: Receiver<String>,
    /// All that it has printed so far.
    printed: Vec<String>,
    _folder: tempfile::TempDir,
    pub(super) http: u16,
    pub(super) grpc: u16,
}

/// A span as the collector understood it.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) name: String,
    began: u64,
    ended: u64,
    pub(super) attributes: BTreeMap<String, String>,
}

impl Span {
    pub(super) fn millis(&self) -> u64 {
        (self.ended - self.began) / 1_000_000
    }
}

impl Index<&str> for Span {
    type Output = String;

    fn index(&self, key: &str) -> &String {
        self.attributes.get(key).unwrap_or_else(|| panic!("no {key} in {self:#?}"))
    }
}

impl Rotel {
    pub(super) fn start() -> Self {
        let home = stafette_testkit::tools::python("rotel", REQUIREMENTS).expect("rotel");
        let program = agent(home);
        let mut started = (0..TRIES).filter_map(|_| Self::listening(&program));
        started.next().expect("rotel listens")
    }

    /// One that listens on ports which were free a moment ago; nothing when they no longer were.
    fn listening(program: &Path) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let [http, grpc] = free();
        let mut child = tool(program)
            .args(["start", "--exporter", "blackhole", "--debug-log", "traces"])
            .args(["--debug-log-verbosity", "detailed"])
            .args(["--otlp-http-endpoint", &format!("127.0.0.1:{http}")])
            .args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{grpc}")])
            .arg("--pid-file")
            .arg(folder.path().join("pid"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("rotel starts");
        let out = BufReader::new(child.stdout.take().expect("standard output"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        let mut rotel = Rotel { child, lines, printed: Vec::new(), _folder: folder, http, grpc };
        until("rotel", || match rotel.child.try_wait().expect("a child") {
            Some(_) => Some(false),
            None => [http, grpc].into_iter().all(is_taken).then_some(true),
        })
        .then_some(rotel)
    }

    /// The spans of a trace, once there are so many.
    pub(super) fn wait_for(&mut self, trace: &str, spans: usize) -> Vec<Span> {
        let end = Instant::now() + PATIENCE;
        let (pause, times) = QUIET;
        let mut in_vain = 0;
        loop {
            match self.lines.recv_timeout(pause) {
                Ok(line) => {
                    in_vain = 0;
                    self.printed.push(line);
                    continue;
                }
                Err(_) => in_vain += 1,
            }
            // A span has been printed when the next line after it is there, or none comes.
            let found = self.spans(trace);
            if found.len() >= spans && in_vain >= times {
                return found;
            }
            assert!(Instant::now() < end, "{} of {spans} spans came", found.len());
        }
    }

    /// The spans of a trace, in the order they came.
    fn spans(&self, trace: &str) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut within = false;
        for line in &self.printed {
            let field = |name: &str| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            };
            if line.starts_with("Span #") {
                spans.push(Span::default());
                within = true;
            } else if line.starts_with("Resource") {
                // The next batch begins with attributes of its own.
                within = false;
            }
            let Some(span) = spans.last_mut().filter(|_| within) else { continue };
            if let Some(value) = field("Trace ID") {
                span.trace = value;
            } else if let Some(value) = field("ID") {
                span.id = value;
            } else if let Some(value) = field("Parent ID") {
                span.parent = value;
            } else if let Some(value) = field("Name") {
                span.name = value;
            } else if let Some(value) = field("Start time") {
                span.began = value.parse().expect("a moment");
            } else if let Some(value) = field("End time") {
                span.ended = value.parse().expect("a moment");
            } else if let Some(pair) = line.trim().strip_prefix("-> ") {
                let (key, value) = pair.split_once(": ").unwrap_or((pair, ""));
                let value =
                    value.split_once('(').map_or(value, |(_, rest)| rest.trim_end_matches(')'));
                span.attributes.insert(key.to_owned(), value.to_owned());
            }
        }
        spans.retain(|span| span.trace == trace);
        spans
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program lies beside the package's Python files.
fn agent(home: PathBuf) -> PathBuf {
    let lib = fs::read_dir(home.join("lib")).expect("a folder");
    let python = lib.flatten().map(|entry| entry.path()).find(|path| path.is_dir());
    python.expect("python").join("site-packages/rotel/rotel-agent")
}

/// Two ports that nobody has at this moment.
fn free() -> [u16; 2] {
    // Both are held until both are known, so that they are two.
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    held.map(|listener| listener.local_addr().expect("an address").port())
}

fn is_taken(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}
