//! `mail`: the hook of an agent's program. It shows the messages that wait for the agent to its model.
//!
//! A message is confirmed after it was printed. A hook that is killed between the two leaves it
//! waiting; the next one looks into the program's own records, and prints only what is not there.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::Context;
use crate::client::Client;
use crate::exit::{Exit, Failure};

/// The time that a daemon has to answer. An agent does not wait longer for its mail.
const LIMIT: Duration = Duration::from_secs(10);

/// The largest description of a hook's event that is read, and the end of the records, in bytes.
const EVENT: u64 = 16 * 1024 * 1024;
const RECORDS: u64 = 16 * 1024 * 1024;

/// Never fails: the agent's work does not depend on its mail, and what is not shown still waits.
pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(EVENT).read_to_string(&mut text);
    let event: Value = serde_json::from_str(&text).unwrap_or_default();
    let name = event["hook_event_name"].as_str().unwrap_or_default();
    if read.is_err() || name.is_empty() {
        return Ok(Exit::Ok);
    }
    let Some((client, reader)) = reader(context, &event).await else { return Ok(Exit::Ok) };
    let Ok(taken) = client.post::<Value>("/v1/messages/take", &json!(reader)).await else {
        return Ok(Exit::Ok);
    };
    let waiting: Vec<&Value> = taken["messages"].as_array().into_iter().flatten().collect();
    if waiting.is_empty() {
        return Ok(Exit::Ok);
    }
    let records = records(&event);
    let is_new =
        |message: &&&Value| !message["mark"].as_str().is_some_and(|it| records.contains(it));
    let new = waiting.iter().filter(is_new).filter_map(|message| message["text"].as_str());
    let texts: Vec<&str> = new.collect();
    // A teammate stops as a subagent does.
    let stops = ["Stop", "SubagentStop"].contains(&name);
    let exit = match (texts.is_empty(), stops) {
        (true, _) => Exit::Ok,
        // The exit code by which both programs send their model back to work.
        (false, true) => {
            context.output.say(texts.join("\n\n"));
            Exit::Usage
        }
        (false, false) => {
            let shown = json!({ "hookEventName": name, "additionalContext": texts.join("\n\n") });
            context.output.data(&json!({ "hookSpecificOutput": shown }));
            Exit::Ok
        }
    };
    let ids: Vec<&Value> = waiting.iter().map(|message| &message["id"]).collect();
    let way = if stops { "stop" } else { "tool_boundary" };
    let shown = json!({ "agent": reader.agent, "messages": ids, "way": way });
    // What cannot be confirmed waits, and is found in the records then.
    let _ = client.post::<Value>("/v1/messages/delivered", &shown).await;
    Ok(exit)
}

/// The agent whose messages are asked for.
#[derive(Debug, Serialize)]
struct Reader {
    /// The name of an agent that Stafette has not started; `None` inside a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

/// Returns the agent whose model reads what the hook prints, with a client of its daemon; `None` if it has
/// no messages, or no daemon runs.
async fn reader(context: &Context, event: &Value) -> Option<(Client, Reader)> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let (Some(socket), Some(token)) = (variable("STAFETTE_SOCKET"), variable("STAFETTE_TOKEN")) {
        // What goes to a subagent does not reach the agent.
        let is_agent = event["agent_id"].is_null();
        let client = Client::new(Path::new(&socket)).of_turn(token).waiting(LIMIT).muted();
        return is_agent.then_some((client, Reader { agent: None }));
    }
    let agent = match event["agent_id"].as_str() {
        None => variable("STAFETTE_MAILBOX")?,
        Some(id) => teammate(id, event)?.to_owned(),
    };
    let client = Client::new(&context.find_project().ok()??.socket().ok()?).waiting(LIMIT).muted();
    Some((client, Reader { agent: Some(agent) }))
}

/// Returns the name of a teammate of Claude Code. Its id begins with it; that of a subagent does not begin
/// with its type.
fn teammate<'a>(id: &str, event: &'a Value) -> Option<&'a str> {
    let name = event["agent_type"].as_str()?;
    id.strip_prefix('a')?.strip_prefix(name)?.starts_with('-').then_some(name)
}

/// The end of the records that the program keeps of its session; empty when it keeps none.
fn records(event: &Value) -> String {
    let read = |path: &str| {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(RECORDS)))?;
        let mut bytes = Vec::new();
        file.take(RECORDS).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let path = event["transcript_path"].as_str().map(str::to_owned);
    // A teammate has a file of its own.
    let path = match event["agent_id"].as_str() {
        None => path,
        Some(id) => path.and_then(|path| {
            Some(format!("{}/subagents/agent-{id}.jsonl", path.strip_suffix(".jsonl")?))
        }),
    };
    path.and_then(|path| read(&path).ok()).unwrap_or_default()
}
