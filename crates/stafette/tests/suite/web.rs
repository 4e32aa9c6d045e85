//! The daemon's door on TCP, with requests written by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::world::{PATIENCE, World};

/// A daemon that listens on a port of its own.
pub(crate) struct Web<'a> {
    world: &'a World,
    daemon: Child,
    pub(crate) port: u16,
    /// A token that may do everything.
    pub(crate) token: String,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The answer's JSON, which must be a good one.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// The stable code of the problem that it is.
    pub(crate) fn code(&self) -> String {
        assert!(self.head.contains("application/problem+json"), "{self:?}");
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }
}

impl<'a> Web<'a> {
    pub(crate) fn up(world: &'a World) -> Self {
        Self::up_with(world, &[])
    }

    /// The same with something in its environment.
    pub(crate) fn up_with(world: &'a World, env: &[(&str, &str)]) -> Self {
        let token = world.run(&["token", "create", "test", "--scope", "admin"]).ok().out;
        let mut daemon = world
            .command(crate::world::program())
            .args(["up", "--foreground", "--listen", "127.0.0.1:0", "--json"])
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a daemon");
        let mut line = String::new();
        let out = daemon.stdout.take().expect("standard output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        let url = ready["url"].as_str().expect("an address");
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Web { world, daemon, port, token: token.trim().to_owned() }
    }

    /// A connection on which a request was sent.
    pub(crate) fn send(&self, first: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut text = format!("{first} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", self.port);
        for header in headers {
            text.push_str(&format!("{header}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            ));
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).expect("sent");
        stream
    }

    /// An answer to a request without any credentials but what the headers say.
    pub(crate) fn plain(&self, first: &str, headers: &[&str], body: &str) -> Response {
        let headers = [headers, &["Connection: close"]].concat();
        let mut stream = self.send(first, &headers, body);
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer in time");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        Response { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.plain(&format!("GET {path}"), &[&self.bearer()], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.plain(&format!("POST {path}"), &[&self.bearer()], &body.to_string())
    }

    /// Kills the daemon, which gets no chance to put anything in order.
    pub(crate) fn kill(mut self) {
        self.daemon.kill().expect("killed");
        self.daemon.wait().expect("gone");
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }
}

/// The kind of a WebSocket's last frame, which says why it closes.
pub(crate) const CLOSE: u8 = 8;

/// What a WebSocket says next: the kind of a frame, and what is in it.
pub(crate) fn frame(stream: &mut impl Read) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a frame in time");
    let length = match head[1] {
        126 => {
            let mut more = [0; 2];
            stream.read_exact(&mut more).expect("a length");
            u64::from(u16::from_be_bytes(more))
        }
        127 => {
            let mut more = [0; 8];
            stream.read_exact(&mut more).expect("a length");
            u64::from_be_bytes(more)
        }
        short => u64::from(short),
    };
    let mut body = Vec::new();
    stream.take(length).read_to_end(&mut body).expect("a body");
    (head[0] & 0x0f, body)
}

/// Reads over the head of an answer: what follows is a WebSocket.
pub(crate) fn switched(stream: &mut impl BufRead) {
    let mut line = String::new();
    stream.read_line(&mut line).expect("a status");
    assert!(line.contains("101 Switching Protocols"), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).expect("a header");
    }
}

impl Drop for Web<'_> {
    fn drop(&mut self) {
        let _ = self.world.command(crate::world::program()).arg("down").output();
        let _ = self.daemon.wait();
    }
}
