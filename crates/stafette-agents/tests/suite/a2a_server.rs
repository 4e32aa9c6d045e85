//! A small A2A server that plays a script for each message.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

/// What a server knows.
#[derive(Clone, Debug)]
struct Server {
    command: Vec<String>,
    folder: PathBuf,
    streams: bool,
    tasks: Arc<Mutex<HashMap<String, Played>>>,
}

#[derive(Clone, Debug, Default)]
struct Played {
    group: Option<Pid>,
    status: Value,
    message: Value,
    history: Vec<Value>,
}

/// Serves from now on, within the runtime of the test, and returns where.
pub(crate) fn serve(command: &[String], folder: &Path, streams: bool) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let listener = TcpListener::from_std(listener).unwrap();
    let (command, folder) = (command.to_vec(), folder.to_owned());
    let server = Server { command, folder, streams, tasks: Arc::default() };
    let home = url.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(server.clone().answer(stream, home.clone()));
        }
    });
    url
}

impl Server {
    async fn answer(self, stream: TcpStream, home: String) {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let low = head.to_lowercase();
        let length = low.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
        stream.read_exact(&mut body).await.unwrap();
        if head.starts_with("GET /.well-known/agent-card.json ") {
            let card = json!({
                "name": "player", "description": "Plays.", "version": "1",
                "supportedInterfaces": [{
                    "url": home, "protocolBinding": "JSONRPC", "protocolVersion": "1.0",
                }],
                "capabilities": { "streaming": self.streams },
                "skills": [],
            });
            return respond(&mut stream, &card).await;
        }
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let params = &asked["params"];
        match asked["method"].as_str().unwrap() {
            "SendStreamingMessage" if self.streams => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
                stream.write_all(head.as_bytes()).await.unwrap();
                self.play(&params["message"], Some(&mut stream)).await;
            }
            "SendMessage" => {
                let message = params["message"].clone();
                let id = name(&message);
                self.begin(&id, &message);
                let task = self.task(&id).unwrap();
                tokio::spawn(async move { self.play(&message, None).await });
                respond(&mut stream, &result(&json!({ "task": task }))).await;
            }
            "GetTask" => match self.task(params["id"].as_str().unwrap()) {
                Some(task) => respond(&mut stream, &result(&task)).await,
                None => respond(&mut stream, &error(-32001)).await,
            },
            "CancelTask" => {
                let id = params["id"].as_str().unwrap();
                let group = self.tasks.lock().unwrap().get_mut(id).and_then(|played| {
                    played.status = json!({ "state": "TASK_STATE_CANCELED" });
                    played.group
                });
                if let Some(group) = group {
                    end(group).await;
                }
                let task = self.task(id).unwrap();
                respond(&mut stream, &result(&task)).await;
            }
            _ => respond(&mut stream, &error(-32004)).await,
        }
    }

    fn begin(&self, id: &str, message: &Value) {
        let played = Played {
            status: json!({ "state": "TASK_STATE_SUBMITTED" }),
            message: message.clone(),
            ..Played::default()
        };
        self.tasks.lock().unwrap().insert(id.to_owned(), played);
    }

    fn task(&self, id: &str) -> Option<Value> {
        let tasks = self.tasks.lock().unwrap();
        let played = tasks.get(id)?;
        let history: Vec<&Value> =
            std::iter::once(&played.message).chain(&played.history).collect();
        Some(json!({
            "id": id, "contextId": "c", "status": played.status, "history": history,
        }))
    }

    /// Plays the script, tells each line as it comes, and ends the task.
    async fn play(&self, message: &Value, mut listener: Option<&mut BufReader<TcpStream>>) {
        let id = name(message);
        self.begin(&id, message);
        let task = self.task(&id).unwrap();
        tell(&mut listener, &json!({ "task": task })).await;
        let about = &message["metadata"]["stafette"];
        let plain = |name: &str| match &about[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).current_dir(&self.folder).process_group(0);
        for (variable, field) in [
            ("STAFETTE_KEY", "key"),
            ("STAFETTE_AGENT", "agent"),
            ("STAFETTE_RUN", "run"),
            ("STAFETTE_HANDOFF", "handoff"),
            ("STAFETTE_ROUND", "round"),
            ("STAFETTE_DELIVERY", "delivery"),
        ] {
            command.env(variable, plain(field));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let group = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap());
        if let Some(played) = self.tasks.lock().unwrap().get_mut(&id) {
            played.group = group;
        }
        let mut output = child.stdout.take().unwrap();
        let (mut held, mut chunk) = (Vec::new(), vec![0; 8192]);
        let (mut count, mut last) = (0, String::new());
        let mut ended = None;
        loop {
            let read = tokio::select! {
                read = output.read(&mut chunk) => read.unwrap_or(0),
                // Those that are left behind may hold its output.
                status = child.wait(), if ended.is_none() => {
                    ended = Some(status.unwrap());
                    end(group.unwrap()).await;
                    continue;
                }
            };
            held.extend_from_slice(&chunk[..read]);
            while let Some(end) = held.iter().position(|byte| *byte == b'\n').or({
                (read == 0 || held.len() > 8192).then_some(held.len()).filter(|end| *end > 0)
            }) {
                let line: Vec<u8> = held.drain(..(end + 1).min(held.len())).collect();
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                count += 1;
                let status = status("TASK_STATE_WORKING", &format!("{id}-{count}"), &text);
                if let Some(played) = self.tasks.lock().unwrap().get_mut(&id)
                    && played.history.len() < 64
                {
                    played.history.push(status["message"].clone());
                }
                tell(&mut listener, &update(&id, &status)).await;
                last = if text.is_empty() { last } else { text };
            }
            if read == 0 {
                break;
            }
        }
        let ended = match ended {
            Some(ended) => ended,
            None => child.wait().await.unwrap(),
        };
        end(group.unwrap()).await;
        let signal = std::os::unix::process::ExitStatusExt::signal(&ended);
        let end = match (ended.code(), signal) {
            (Some(0), _) => json!({ "state": "TASK_STATE_COMPLETED" }),
            (Some(code), _) => status(
                "TASK_STATE_FAILED",
                &format!("{id}-end"),
                &format!("exit status {code}: {last}"),
            ),
            (None, signal) => {
                let text = format!("killed by signal {}", signal.unwrap_or(0));
                status("TASK_STATE_FAILED", &format!("{id}-end"), &text)
            }
        };
        if let Some(played) = self.tasks.lock().unwrap().get_mut(&id)
            && played.status["state"] != "TASK_STATE_CANCELED"
        {
            played.status = end.clone();
        }
        tell(&mut listener, &update(&id, &end)).await;
    }
}

/// Ends a process group, and returns when nothing of it is left.
async fn end(group: Pid) {
    drop(kill_process_group(group, Signal::KILL));
    let wanted = group.as_raw_nonzero().to_string();
    let lives = |process: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        fields.next() != Some("Z") && fields.nth(1) == Some(&wanted)
    };
    while std::fs::read_dir("/proc").unwrap().flatten().any(lives) {
        tokio::task::yield_now().await;
    }
}

/// A task for each message; one that comes again in another delivery is another.
fn name(message: &Value) -> String {
    let delivery = &message["metadata"]["stafette"]["delivery"];
    format!("{}-{delivery}", message["messageId"].as_str().unwrap())
}

fn status(state: &str, id: &str, text: &str) -> Value {
    let parts = json!([{ "text": text }]);
    json!({ "state": state, "message": { "messageId": id, "role": "ROLE_AGENT", "parts": parts } })
}

fn update(id: &str, status: &Value) -> Value {
    json!({ "statusUpdate": { "taskId": id, "contextId": "c", "status": status } })
}

fn result(value: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": value })
}

fn error(code: i32) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": "no" } })
}

/// Whoever no longer listens is no trouble.
async fn tell(listener: &mut Option<&mut BufReader<TcpStream>>, event: &Value) {
    if let Some(stream) = listener {
        drop(stream.write_all(format!("data: {}\n\n", result(event)).as_bytes()).await);
    }
}

async fn respond(stream: &mut BufReader<TcpStream>, value: &Value) {
    let body = value.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    drop(stream.write_all((head + &body).as_bytes()).await);
}
