//! A real Prometheus, of Debian's package of that name.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{tool, until};

/// `promtool`, which says what it thinks.
pub(super) struct Promtool(PathBuf);

pub(super) fn promtool() -> Promtool {
    Promtool(stafette_kit::tools::debian("promtool", "prometheus").expect("promtool"))
}

impl Promtool {
    /// Whether it is content, and what it said.
    pub(super) fn check(&self, arguments: &[&str], input: &str) -> (bool, String) {
        let mut child = tool(&self.0)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("promtool starts");
        let mut stdin = child.stdin.take().expect("standard input");
        stdin.write_all(input.as_bytes()).expect("written");
        drop(stdin);
        let output = child.wait_with_output().expect("promtool ends");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }
}

/// A Prometheus that looks at a daemon every second.
pub(super) struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    pub(super) fn start(home: &Path, target: u16, token: &str, rules: &str) -> Self {
        let program = stafette_kit::tools::debian("prometheus", "prometheus").expect("prometheus");
        let folder = home.join("prometheus");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("rules.yml"), rules).expect("written");
        fs::write(folder.join("token"), token).expect("written");
        let settings = format!(
            "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: [rules.yml]\n\
             scrape_configs:\n  - job_name: stafette\n    authorization:\n      credentials_file: token\n    \
             static_configs:\n      - targets: ['127.0.0.1:{target}']\n"
        );
        fs::write(folder.join("prometheus.yml"), settings).expect("written");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let child = tool(&program)
            .current_dir(&folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log")).expect("a file"))
            .spawn()
            .expect("prometheus starts");
        let prometheus = Prometheus { child, port };
        until("prometheus", || TcpStream::connect(("127.0.0.1", port)).ok());
        prometheus
    }

    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        // The older protocol has no chunks.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// Whether it has seen a metric.
    pub(super) fn has(&self, name: &str) -> bool {
        let answer = self.get(&format!("/api/v1/query?query={name}"));
        answer.is_some_and(|answer| {
            answer["data"]["result"].as_array().is_some_and(|all| !all.is_empty())
        })
    }

    /// The names of the alerts that fire.
    pub(super) fn firing(&self) -> Vec<String> {
        let answer = self.get("/api/v1/alerts").expect("an answer");
        let alerts = answer["data"]["alerts"].as_array().expect("alerts").clone();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing
            .map(|alert| alert["labels"]["alertname"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
