//! `emit`: an agent hands on, answers or reports, by its session's own channel.

use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use stafette_agents::seal;
use stafette_core::wire::frame::Frame;

use super::Context;
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};

/// The most that is read from standard input.
const MOST: u64 = 2 * 1024 * 1024;

pub(crate) async fn run(context: &Context, arguments: cli::Emit) -> Result<Exit, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(socket), Some(token)) = (variable("STAFETTE_SOCKET"), variable("STAFETTE_TOKEN"))
    else {
        return Err(Failure::usage("This is not an agent's session")
            .why("STAFETTE_SOCKET and STAFETTE_TOKEN are not set")
            .fix("`stafette run` sets them for the agents that it starts"));
    };
    let text =
        match arguments.payload.as_deref() {
            Some("-") => {
                let mut text = String::new();
                std::io::stdin().lock().take(MOST).read_to_string(&mut text).map_err(|error| {
                    Failure::usage("Standard input cannot be read").because(&error)
                })?;
                text
            }
            text => text.unwrap_or_default().to_owned(),
        };
    // As in a frame: what is not JSON is a word.
    let payload = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let body = json!({ "token": token, "type": arguments.kind.to_uppercase(), "payload": payload });
    let taken: Value = match Client::new(Path::new(&socket)).post("/v1/emit", &body).await {
        Ok(taken) => taken,
        // The socket cannot be reached from in here: what is printed and signed counts as well.
        Err(failure) if failure.code == Exit::NoDaemon => {
            print_signed(context, &arguments.kind, &payload, &token);
            return Ok(Exit::Ok);
        }
        Err(failure) => return Err(failure),
    };
    match context.output.json {
        true => context.output.data(&taken),
        false => context.output.say("taken"),
    }
    Ok(Exit::Ok)
}

fn print_signed(context: &Context, kind: &str, payload: &Value, token: &str) {
    let body = match payload {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Later is larger, whichever process of the session counts.
    let seq = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    let session = std::env::var("STAFETTE_AGENT").unwrap_or_default();
    let frame = seal::sign(Frame::new(kind.to_uppercase(), body), token, &session, seq);
    let word = std::env::var("STAFETTE_FRAME_WORD").ok().and_then(|word| word.parse().ok());
    context.output.line(&frame.wire(&word.unwrap_or_default()));
}
