//! What is known by the daemon's door on TCP, with a token.

use serde_json::{Value, json};

use crate::mcp::{Server, said};
use crate::world::World;

/// A daemon whose door is open.
pub(super) struct Door {
    server: Server,
}

impl Door {
    pub(super) fn open(world: World, env: &[(&str, &str)]) -> Self {
        Door { server: Server::of(world, env) }
    }

    pub(super) fn world(&self) -> &World {
        &self.server.world
    }

    /// A token of a person.
    pub(super) fn person(&self) -> &str {
        self.server.bearer.trim_start_matches("Bearer ")
    }

    /// A token of an agent.
    pub(super) fn agent(&self, agent: &str) -> String {
        let name = format!("{agent}-1");
        let made = self.world().run(&["token", "create", &name, "--agent", agent, "--json"]);
        made.ok().json()["token"].as_str().expect("a token").to_owned()
    }

    /// Asks; the status, and what was said.
    pub(super) fn ask(&self, token: &str, first: &str, body: Option<&Value>) -> (u16, Value) {
        let (status, _, text) = self.send(token, first, &[], body);
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Calls a tool over HTTP in a session of its own; what came back, or what went wrong.
    pub(super) fn tool(&self, token: &str, name: &str, arguments: &Value) -> Result<Value, String> {
        let message = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let hello = message("initialize", hello);
        let (_, head, _) = self.send(token, "POST /mcp", &[], Some(&hello));
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let mut session = lines.filter(|(key, _)| key.eq_ignore_ascii_case("mcp-session-id"));
        let session = session.next().expect("a session").1.trim().to_owned();
        let session = format!("Mcp-Session-Id: {session}");
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(token, "POST /mcp", &[&session], Some(&ready));
        let call = message("tools/call", json!({ "name": name, "arguments": arguments }));
        let (_, _, text) = self.send(token, "POST /mcp", &[&session], Some(&call));
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let answers = data.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut results = answers.filter(|answer| answer["id"] == 1);
        let result = results.next().unwrap_or_else(|| panic!("no answer in {text}"));
        let result = &result["result"];
        match result["isError"] == true {
            false => Ok(result["structuredContent"].clone()),
            true => Err(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// The status, the head and the body of an answer.
    fn send(
        &self,
        token: &str,
        first: &str,
        headers: &[&str],
        body: Option<&Value>,
    ) -> (u16, String, String) {
        let (method, path) = first.split_once(' ').expect("a method and a path");
        let mut curl = self.world().command("curl");
        curl.args(["--silent", "--include", "--max-time", "120", "--globoff", "--request", method])
            .args(["--header", "Accept: application/json, text/event-stream"]);
        let bearer = format!("Authorization: Bearer {token}");
        for header in headers.iter().copied().chain((!token.is_empty()).then_some(&*bearer)) {
            curl.args(["--header", header]);
        }
        if let Some(body) = body {
            curl.args(["--header", "Content-Type: application/json", "--data", &body.to_string()]);
        }
        let url = self.server.url.trim_end_matches("/mcp");
        let answer = said(curl.arg(format!("{url}{path}"))).ok().out;
        let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        (status, head.to_owned(), text.to_owned())
    }
}
