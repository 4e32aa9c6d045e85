//! `send`: sends a message to an agent, or types a text into its terminal.

use std::io::Read;

use serde_json::{Value, json};
use stafette_server::terminals::{SEND_LIMIT, Sent};

use super::{Context, attach, run_path, segment};
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::project::person;

pub(crate) async fn run(context: &Context, arguments: cli::Send) -> Result<Exit, Failure> {
    let client = crate::daemon::find(&context.project()?).await?;
    let text = text(arguments.text.clone())?;
    if arguments.types || arguments.no_submit {
        return types(context, &client, &arguments, &text).await;
    }
    if text.trim().is_empty() {
        return Err(Failure::usage("The message is empty").fix("say what the agent should know"));
    }
    let path = run_path(arguments.run.as_deref(), "/messages");
    let body = json!({ "to": arguments.agent, "text": text, "by": person() });
    let mut sent: Value = client.post(&path, &body).await?;
    if arguments.wait {
        sent = settled(&client, sent).await?;
    }
    let word = |name: &str| sent[name].as_str().unwrap_or_default();
    if context.output.json {
        context.output.data(&sent);
    } else {
        let at = word("delivered_at").get(11..19).map(|at| format!(" at {at}"));
        let at = at.filter(|_| word("status") == "delivered").unwrap_or_default();
        context.output.say(format!("{}: {}{at}", word("id"), word("receipt")));
    }
    Ok(if word("status") == "unread" { Exit::Failed } else { Exit::Ok })
}

/// Waits until a message was delivered, or the run has ended; the message then.
async fn settled(client: &Client, sent: Value) -> Result<Value, Failure> {
    let run = run_path(sent["run"].as_str(), "");
    let path = format!("{run}/messages/{}", segment(sent["id"].as_str().unwrap_or_default()));
    let mut events = client.lines(&format!("{run}/events?after=0&follow=true")).await?;
    while let Some(event) = events.next().await? {
        let all = event["messages"].as_array();
        let is_about = all.is_some_and(|all| all.contains(&sent["id"]));
        if is_about || event["event"] == "run_finished" {
            break;
        }
    }
    client.get(&path).await
}

/// Types a text into an agent's terminal.
async fn types(
    context: &Context,
    client: &Client,
    arguments: &cli::Send,
    text: &str,
) -> Result<Exit, Failure> {
    let path = attach::path(arguments.run.as_deref(), &arguments.agent, "/send");
    let body = json!({ "text": text, "submit": !arguments.no_submit });
    let sent: Sent = client.post(&path, &body).await?;
    match (context.output.json, sent.submitted) {
        (true, _) => context.output.data(&sent),
        (false, true) => context.output.say(format!("{} has it", sent.agent)),
        (false, false) => context.output.say(format!("typed; {} waits for Enter", sent.agent)),
    }
    Ok(Exit::Ok)
}

/// The text itself, or standard input without the line break at its end.
fn text(typed: String) -> Result<String, Failure> {
    if typed != "-" {
        return Ok(typed);
    }
    let mut text = String::new();
    // One byte more than is accepted: then the daemon reports that it is too long.
    let limit = SEND_LIMIT as u64 + 1;
    std::io::stdin()
        .lock()
        .take(limit)
        .read_to_string(&mut text)
        .map_err(|error| super::emit::unreadable(&error))?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}
