//! `send`: types a message into an agent's terminal.

use std::io::Read;

use serde_json::json;
use stafette_server::terminals::{SEND_LIMIT, Sent};

use super::{Context, attach};
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: cli::Send) -> Result<Exit, Failure> {
    let client = crate::daemon::find(&context.project()?).await?;
    let text = text(arguments.text)?;
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
