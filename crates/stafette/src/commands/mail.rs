//! `mail`: the hook of an agent's program. It shows the messages that wait for the agent to its model.
//!
//! A message is confirmed after it was printed. A hook that is killed between the two leaves it
//! waiting; the next one looks into the program's own records, and prints only what is not there.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

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
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(socket), Some(token)) = (variable("STAFETTE_SOCKET"), variable("STAFETTE_TOKEN"))
    else {
        return Ok(Exit::Ok);
    };
    // What goes to a subagent does not reach the agent.
    if read.is_err() || name.is_empty() || !event["agent_id"].is_null() {
        return Ok(Exit::Ok);
    }
    let client = Client::new(Path::new(&socket)).of_turn(token).waiting(LIMIT).muted();
    let Ok(taken) = client.post::<Value>("/v1/messages/take", &json!({})).await else {
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
    let stops = name == "Stop";
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
    let shown = json!({ "messages": ids, "way": way });
    // What cannot be confirmed waits, and is found in the records then.
    let _ = client.post::<Value>("/v1/messages/delivered", &shown).await;
    Ok(exit)
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
    let path = event["transcript_path"].as_str();
    path.and_then(|path| read(path).ok()).unwrap_or_default()
}
