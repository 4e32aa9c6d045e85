//! A real collector: Rotel, from PyPI. It prints the spans that it gets.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::ops::Index;
use std::path::PathBuf;
use std::process::Child;

use super::{tool, until};

const REQUIREMENTS: &str = "rotel==0.0.1a15\n";

/// A collector that runs.
pub(super) struct Rotel {
    child: Child,
    folder: tempfile::TempDir,
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
        let home = stafette_kit::tools::python("rotel", REQUIREMENTS).expect("rotel");
        let folder = tempfile::tempdir().expect("a folder");
        let out = File::create(folder.path().join("out")).expect("a file");
        let (http, grpc) = (free(), free());
        let child = tool(&agent(home))
            .args(["start", "--exporter", "blackhole", "--debug-log", "traces"])
            .args(["--debug-log-verbosity", "detailed"])
            .args(["--otlp-http-endpoint", &format!("127.0.0.1:{http}")])
            .args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{grpc}")])
            .arg("--pid-file")
            .arg(folder.path().join("pid"))
            .stdout(out.try_clone().expect("a file"))
            .stderr(out)
            .spawn()
            .expect("rotel starts");
        let rotel = Rotel { child, folder, http, grpc };
        for port in [http, grpc] {
            until("rotel", || TcpStream::connect(("127.0.0.1", port)).ok());
        }
        rotel
    }

    /// The spans of a trace, in the order they came.
    pub(super) fn spans(&self, trace: &str) -> Vec<Span> {
        let text = fs::read_to_string(self.folder.path().join("out")).unwrap_or_default();
        let mut spans: Vec<Span> = Vec::new();
        for line in text.lines() {
            let field = |name: &str| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            };
            if line.starts_with("Span #") {
                spans.push(Span::default());
            }
            let Some(span) = spans.last_mut() else { continue };
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

fn free() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
