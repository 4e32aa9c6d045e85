//! A real Prometheus, of Debian's package of that name.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;
use stafette_core::Time;

use super::tool;
use crate::world::PATIENCE;

/// `promtool`, which says what it thinks.
pub(super) struct Promtool(PathBuf);

pub(super) fn promtool() -> Promtool {
    Promtool(stafette_testkit::tools::debian("promtool", "prometheus").expect("promtool"))
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

/// A Prometheus that looks at a daemon every second, and tells us of its alerts.
pub(super) struct Prometheus {
    child: Child,
    alerts: Receiver<(String, bool)>,
}

/// What fires as soon as it has looked at the daemon once.
pub(super) const LOOKED: &str = "Looked";

impl Prometheus {
    pub(super) fn start(home: &Path, target: u16, token: &str, rules: &str) -> Self {
        let program =
            stafette_testkit::tools::debian("prometheus", "prometheus").expect("prometheus");
        let folder = home.join("prometheus");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("rules.yml"), rules).expect("written");
        let looked = format!(
            "groups:\n- name: ours\n  rules:\n  - alert: {LOOKED}\n    expr: handoff_failed_total >= 0\n"
        );
        fs::write(folder.join("ours.yml"), looked).expect("written");
        fs::write(folder.join("token"), token).expect("written");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let manager = listener.local_addr().expect("an address").port();
        let settings = format!(
            "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\n\
             rule_files: [rules.yml, ours.yml]\n\
             alerting:\n  alertmanagers:\n    - static_configs:\n      - targets: ['127.0.0.1:{manager}']\n\
             scrape_configs:\n  - job_name: stafette\n    authorization:\n      credentials_file: token\n    \
             static_configs:\n      - targets: ['127.0.0.1:{target}']\n"
        );
        fs::write(folder.join("prometheus.yml"), settings).expect("written");
        let child = tool(&program)
            .current_dir(&folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .args(["--web.listen-address=127.0.0.1:0", "--rules.alert.resend-delay=1s"])
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log")).expect("a file"))
            .spawn()
            .expect("prometheus starts");
        let (tell, alerts) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(posted) = posted(stream) else { continue };
                for alert in posted.as_array().into_iter().flatten() {
                    let name = alert["labels"]["alertname"].as_str().unwrap_or_default();
                    let ends = alert["endsAt"].as_str().and_then(Time::parse);
                    let firing = ends.is_none_or(|ends| ends > stafette_engine::clock::now());
                    if tell.send((name.to_owned(), firing)).is_err() {
                        return;
                    }
                }
            }
        });
        Prometheus { child, alerts }
    }

    /// Waits until each of these was told to fire, or to have stopped.
    pub(super) fn wait_for(&self, names: &[&str], firing: bool) {
        let end = Instant::now() + PATIENCE;
        let mut missing: BTreeSet<&str> = names.iter().copied().collect();
        while !missing.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            let told = self.alerts.recv_timeout(left);
            let (name, fires) =
                told.unwrap_or_else(|_| panic!("{missing:?}: firing is not {firing}"));
            if fires == firing {
                missing.remove(name.as_str());
            }
        }
    }
}

/// What a request brings, which is thanked for.
fn posted(mut stream: TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).ok()? > 2 {
        head.push_str(&std::mem::take(&mut line).to_lowercase());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok()?;
    serde_json::from_slice(&body).ok()
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
