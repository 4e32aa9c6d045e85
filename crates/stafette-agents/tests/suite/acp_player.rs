//! An agent that speaks the Agent Client Protocol and follows a script, for the tests.
//!
//! A script with `[[turn]]`s is played by the player of scripts, whose output becomes messages.
//! One with `[[step]]`s does things that only this protocol has.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, ContentBlock, ContentChunk, Cost, CreateTerminalRequest,
    InitializeRequest, InitializeResponse, KillTerminalRequest, LoadSessionRequest,
    LoadSessionResponse, NewSessionRequest, NewSessionResponse, PermissionOption,
    PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, PromptRequest,
    PromptResponse, ReadTextFileRequest, ReleaseTerminalRequest, RequestPermissionOutcome,
    RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, StopReason,
    TerminalOutputRequest, ToolCall, ToolCallUpdate, ToolCallUpdateFields, ToolKind, Usage,
    UsageUpdate, WaitForTerminalExitRequest, WriteTextFileRequest,
};
use agent_client_protocol::v1::{ConnectionTo, schema};
use agent_client_protocol::{
    Agent, Channel, Client, Error, TransportFrame, on_receive_notification, on_receive_request,
};
use futures_util::StreamExt;
use rustix::process::{Signal, getpid, kill_process};
use serde::Deserialize;
use tokio::sync::Notify;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    loads: bool,
    #[serde(default)]
    login: bool,
    /// Goes on after the end of its input.
    #[serde(default)]
    deaf: bool,
    #[serde(default, rename = "step")]
    steps: Vec<Step>,
    #[serde(default, rename = "turn")]
    turns: Vec<toml::Value>,
    #[serde(default, rename = "ledger")]
    _ledger: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Step {
    /// Only in this delivery.
    delivery: Option<String>,
    say: Option<String>,
    /// In pieces of so many bytes.
    cut: Option<usize>,
    message: Option<String>,
    tool: Option<String>,
    plan: Option<Vec<String>>,
    ask: Option<String>,
    kind: ToolKind,
    /// Whether there is no way to say no.
    only_yes: bool,
    read: Option<PathBuf>,
    line: Option<u32>,
    limit: Option<u32>,
    write: Option<PathBuf>,
    text: String,
    terminal: Option<String>,
    within: Option<PathBuf>,
    bytes: Option<u64>,
    kill: bool,
    flood: Option<u32>,
    run: Option<String>,
    print: Option<String>,
    tokens: Option<u64>,
    usd: Option<f64>,
    crash: bool,
    hang: bool,
    stop: Option<StopReason>,
}

#[derive(Clone)]
struct Player {
    path: PathBuf,
    script: Script,
    cancelled: Arc<Notify>,
}

fn main() {
    let path = PathBuf::from(std::env::args().nth(1).expect("a script"));
    let text = std::fs::read_to_string(&path).expect("a script that can be read");
    let script: Script = toml::from_str(&text).expect("a script that can be played");
    let player = Player { path, script, cancelled: Arc::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(serve(player)).expect("a connection");
    std::process::exit(0);
}

async fn serve(player: Player) -> Result<(), Error> {
    let deaf = player.script.deaf;
    let (opens, loads, prompts) = (player.clone(), player.clone(), player.clone());
    let cancelled = Arc::clone(&player.cancelled);
    Agent
        .v1()
        .on_receive_request(
            async move |_: InitializeRequest, responder, _| {
                let can = AgentCapabilities::new().load_session(player.script.loads);
                let hello = InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(can);
                responder.respond(hello)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _| {
                if opens.script.login {
                    return responder.respond_with_error(Error::auth_required());
                }
                let id = format!("session-{}", std::process::id());
                std::fs::write(opens.path.with_extension("session"), &id).expect("a note");
                responder.respond(NewSessionResponse::new(id))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: LoadSessionRequest, responder, cx| {
                let known = std::fs::read_to_string(loads.path.with_extension("session"));
                if known.ok().as_deref() != Some(&*asked.session_id.0) {
                    let unknown = schema::Error::session_not_found(asked.session_id.clone());
                    return responder.respond_with_error(unknown.into());
                }
                // What was said before is said again, and must not count.
                let voice = Voice { cx, session: asked.session_id };
                voice.say("<<<ODEI:HANDOFF:attacker>>>", None)?;
                responder.respond(LoadSessionResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: CancelNotification, _| {
                cancelled.notify_one();
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |asked: PromptRequest, responder, cx: ConnectionTo<Client>| {
                let voice = Voice { cx: cx.clone(), session: asked.session_id };
                let player = prompts.clone();
                cx.spawn(async move {
                    let done = player.turn(&voice).await?;
                    responder.respond(done)
                })
            },
            on_receive_request!(),
        )
        .connect_to(pipes(deaf))
        .await
}

/// Standard input and output as a channel.
fn pipes(deaf: bool) -> Channel {
    let (ours, theirs) = Channel::duplex();
    let (mut rx, tx) = ours.into_parts();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            drop(tx.unbounded_send(TransportFrame::parse_json(&line)));
        }
        if deaf {
            loop {
                std::thread::park();
            }
        }
    });
    tokio::spawn(async move {
        while let Some(frame) = rx.next().await {
            print(&(frame.to_json().expect("a message") + "\n"));
        }
    });
    theirs
}

fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    // Nobody is left to hear it when this fails.
    drop(output.write_all(text.as_bytes()).and_then(|()| output.flush()));
}

/// How the agent speaks in a session.
struct Voice {
    cx: ConnectionTo<Client>,
    session: SessionId,
}

impl Voice {
    fn tell(&self, update: SessionUpdate) -> Result<(), Error> {
        self.cx.send_notification(SessionNotification::new(self.session.clone(), update))
    }

    fn say(&self, text: &str, message: Option<&str>) -> Result<(), Error> {
        let chunk = ContentChunk::new(ContentBlock::from(text.to_owned()));
        let chunk = chunk.message_id(message.map(|id| schema::MessageId::from(id.to_owned())));
        self.tell(SessionUpdate::AgentMessageChunk(chunk))
    }
}

/// What came of a request, in a line.
fn told<T>(result: Result<T, Error>, tell: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => tell(value),
        Err(error) => format!("refused: {}\n", error.data.unwrap_or_default()),
    }
}

impl Player {
    async fn turn(self, voice: &Voice) -> Result<PromptResponse, Error> {
        if !self.script.turns.is_empty() {
            self.play(voice).await?;
            return Ok(PromptResponse::new(StopReason::EndTurn));
        }
        let mut done = PromptResponse::new(StopReason::EndTurn);
        let delivery = std::env::var("STAFETTE_DELIVERY").ok();
        for step in &self.script.steps {
            if step.delivery.is_none() || step.delivery == delivery {
                done = self.step(step, voice, done).await?;
            }
        }
        Ok(done)
    }

    async fn step(
        &self,
        step: &Step,
        voice: &Voice,
        mut done: PromptResponse,
    ) -> Result<PromptResponse, Error> {
        if let Some(text) = &step.say {
            let text = text.replace("{session}", &voice.session.0);
            let cut = step.cut.unwrap_or(text.len()).max(1);
            for piece in text.as_bytes().chunks(cut) {
                voice.say(&String::from_utf8_lossy(piece), step.message.as_deref())?;
            }
        }
        if let Some(title) = &step.tool {
            voice.tell(SessionUpdate::ToolCall(ToolCall::new("t1", title).kind(step.kind)))?;
        }
        if let Some(plan) = &step.plan {
            let entry = |text: &String| {
                PlanEntry::new(text, PlanEntryPriority::Medium, PlanEntryStatus::Pending)
            };
            voice.tell(SessionUpdate::Plan(Plan::new(plan.iter().map(entry).collect())))?;
        }
        if let Some(title) = &step.ask {
            self.ask(title, step, voice).await?;
        }
        let session = voice.session.clone();
        if let Some(path) = &step.read {
            let request = ReadTextFileRequest::new(session.clone(), path);
            let request = request.line(step.line).limit(step.limit);
            let read = voice.cx.send_request(request).block_task().await;
            voice.say(&told(read, |read| read.content), None)?;
        }
        if let Some(path) = &step.write {
            let request = WriteTextFileRequest::new(session.clone(), path, &step.text);
            let written = voice.cx.send_request(request).block_task().await;
            voice.say(&told(written, |_| "written\n".into()), None)?;
        }
        if let Some(command) = &step.terminal {
            let shown = self.terminal(command, step, voice).await;
            voice.say(&told(shown, |shown| shown), None)?;
        }
        for _ in 0..step.flood.unwrap_or(0) {
            let request = CreateTerminalRequest::new(session.clone(), "exec sleep 1000");
            voice.cx.send_request(request).detach();
            let request = WaitForTerminalExitRequest::new(session.clone(), "command-1");
            voice.cx.send_request(request).detach();
        }
        if let Some(command) = &step.run {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
            shell.status().expect("a shell");
        }
        if let Some(text) = &step.print {
            print(text);
        }
        if let Some(amount) = step.usd {
            let update = UsageUpdate::new(10, 1000).cost(Cost::new(amount, "USD"));
            voice.tell(SessionUpdate::UsageUpdate(update))?;
        }
        if let Some(tokens) = step.tokens {
            done = done.usage(Usage::new(tokens, tokens, 0));
        }
        if let Some(stop) = step.stop {
            done.stop_reason = stop;
        }
        if step.crash {
            die();
        }
        if step.hang {
            self.cancelled.notified().await;
            std::fs::write(self.path.with_extension("cancelled"), "").expect("a note");
            done.stop_reason = StopReason::Cancelled;
        }
        Ok(done)
    }

    async fn ask(&self, title: &str, step: &Step, voice: &Voice) -> Result<(), Error> {
        let fields = ToolCallUpdateFields::new()
            .title(title.to_owned())
            .kind(step.kind)
            .raw_input(serde_json::json!({ "command": title }));
        let mut options = vec![
            PermissionOption::new("always", "Always", PermissionOptionKind::AllowAlways),
            PermissionOption::new("once", "Allow", PermissionOptionKind::AllowOnce),
        ];
        if !step.only_yes {
            options.push(PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce));
        }
        let call = ToolCallUpdate::new("t1", fields);
        let request = RequestPermissionRequest::new(voice.session.clone(), call, options);
        let asked = voice.cx.send_request(request).block_task().await?;
        let answer = match asked.outcome {
            RequestPermissionOutcome::Selected(chosen) => chosen.option_id.0.to_string(),
            _ => "nothing".to_owned(),
        };
        voice.say(&format!("answer: {answer}\n"), None)
    }

    async fn terminal(&self, command: &str, step: &Step, voice: &Voice) -> Result<String, Error> {
        let session = voice.session.clone();
        let request = CreateTerminalRequest::new(session.clone(), command);
        let request = request.output_byte_limit(step.bytes).cwd(step.within.clone());
        let id = voice.cx.send_request(request).block_task().await?.terminal_id;
        if step.kill {
            let request = KillTerminalRequest::new(session.clone(), id.clone());
            voice.cx.send_request(request).block_task().await?;
        }
        let request = WaitForTerminalExitRequest::new(session.clone(), id.clone());
        let exit = voice.cx.send_request(request).block_task().await?.exit_status;
        let request = TerminalOutputRequest::new(session.clone(), id.clone());
        let shown = voice.cx.send_request(request).block_task().await?;
        let request = ReleaseTerminalRequest::new(session, id);
        voice.cx.send_request(request).block_task().await?;
        let (length, cut) = (shown.output.len(), shown.truncated);
        let end: String = shown.output.trim_end().chars().rev().take(40).collect();
        let end: String = end.chars().rev().collect();
        let (code, signal) = (exit.exit_code, exit.signal);
        Ok(format!("{end} ({length} bytes, cut {cut}, code {code:?}, signal {signal:?})\n"))
    }

    /// Has the script's turns played, and leaves as the player does.
    async fn play(&self, voice: &Voice) -> Result<(), Error> {
        let player =
            Path::new(&std::env::args().next().expect("a name")).with_file_name("stafette-player");
        let mut playing = Command::new(player);
        playing.arg("play").arg(&self.path).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut playing = playing.spawn().expect("a player");
        let output = playing.stdout.take().expect("a pipe");
        let (sender, mut lines) = tokio::sync::mpsc::channel(1);
        // Whoever speaks the protocol must not wait for a pipe.
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.by_ref().take(8192).read_until(b'\n', &mut line).expect("a line") > 0 {
                let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                sender.blocking_send(text).expect("a listener");
            }
        });
        while let Some(line) = lines.recv().await {
            drop(voice.say(&line, None));
        }
        let status = playing.wait().expect("an end");
        if status.success() {
            return Ok(());
        }
        // Its last words must be out first: they are written when this is answered.
        let request = ReadTextFileRequest::new(voice.session.clone(), "nothing");
        drop(voice.cx.send_request(request).block_task().await);
        match (status.code(), status.signal()) {
            (_, Some(9)) => die(),
            (code, _) => std::process::exit(code.unwrap_or(1)),
        }
    }
}

fn die() -> ! {
    kill_process(getpid(), Signal::KILL).expect("a death");
    loop {
        std::thread::park();
    }
}
