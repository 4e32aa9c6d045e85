//! `emit`: an agent hands over, answers or reports, through its session's own channel.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use stafette_agents::{seal, tell};
use stafette_core::clean;
use stafette_core::wire::frame::Frame;

use super::Context;
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};

/// The time to wait for a daemon, in milliseconds, when the session does not set it.
const LEASE_MS: u64 = 120_000;

/// The time to wait before the agent is notified that it has to wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause before the daemon is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// The maximum number of bytes read from standard input.
const MOST: u64 = 2 * 1024 * 1024;

pub(crate) async fn run(context: &Context, arguments: cli::Emit) -> Result<Exit, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(socket), Some(token)) = (variable("STAFETTE_SOCKET"), variable("STAFETTE_TOKEN"))
    else {
        return Err(Failure::usage("This is not an agent's session")
            .why("STAFETTE_SOCKET and STAFETTE_TOKEN are not set")
            .fix("`stafette run` sets them for the agents that it starts"));
    };
    let text = match arguments.payload.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .take(MOST)
                .read_to_string(&mut text)
                .map_err(|error| unreadable(&error))?;
            text
        }
        text => text.unwrap_or_default().to_owned(),
    };
    // As in a frame: text that is not JSON is a string.
    let payload = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let body = json!({ "type": arguments.kind.to_uppercase(), "payload": payload });
    let socket = Path::new(&socket);
    if arguments.print || is_forbidden(socket) {
        check(&arguments.kind, &payload)?;
        print_signed(context, &arguments.kind, &payload, &token);
        context.output.say("printed, not sent: it counts when Stafette reads it from the output");
        return Ok(Exit::Ok);
    }
    let taken = send(context, socket, token, &body).await?;
    match context.output.json {
        true => context.output.data(&taken),
        false => context.output.say("taken"),
    }
    Ok(Exit::Ok)
}

/// The failure for a standard input that is not text.
pub(crate) fn unreadable(error: &std::io::Error) -> Failure {
    Failure::usage("Cannot read standard input")
        .because(error)
        .fix("pipe UTF-8 text to it, or give the text as an argument")
}

/// Returns once the daemon has stored it. Waits for a daemon that is being restarted, as long as
/// the turn may be without one.
async fn send(
    context: &Context,
    socket: &Path,
    token: String,
    body: &Value,
) -> Result<Value, Failure> {
    let lease = std::env::var("STAFETTE_LEASE_MS").ok().and_then(|text| text.parse().ok());
    let lease = Duration::from_millis(lease.unwrap_or(LEASE_MS));
    // Asked once and waited for: whoever asks again may be heard twice.
    let (client, since) = (Client::new(socket).of_turn(token).waiting(lease), Instant::now());
    let mut said = false;
    loop {
        let failure = match client.post("/v1/emit", body).await {
            Err(failure) if failure.code == Exit::NoDaemon => failure,
            other => return other,
        };
        if since.elapsed() >= lease {
            return Err(failure.why("it is not stored: no daemon came back in time"));
        }
        if !said && since.elapsed() > PATIENCE {
            said = true;
            context.output.say("waiting for the daemon…");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// True if the agent may not reach the daemon's socket from where it runs. A missing socket belongs
/// to a daemon that is being restarted.
fn is_forbidden(socket: &Path) -> bool {
    let reached = std::os::unix::net::UnixStream::connect(socket);
    reached.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Checks what is printed as the daemon checks what is sent: nobody answers to a printed frame.
fn check(kind: &str, payload: &Value) -> Result<(), Failure> {
    let agent = std::env::var("STAFETTE_AGENT").ok().and_then(|name| name.parse().ok());
    let Some(agent) = agent else { return Ok(()) };
    tell::read(&agent, &kind.to_uppercase(), payload.clone()).map(drop).map_err(|mistakes| {
        Failure::usage(format!("it cannot be understood: {}", mistakes.join("; ")))
            .fix("correct what it names and print it again")
    })
}

fn print_signed(context: &Context, kind: &str, payload: &Value, token: &str) {
    let body = match payload {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Later numbers are larger, whichever process of the session counts.
    let seq = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    let session = std::env::var("STAFETTE_AGENT").unwrap_or_default();
    let frame = seal::sign(Frame::new(kind.to_uppercase(), body), token, &session, seq);
    let word = std::env::var("STAFETTE_FRAME_WORD").ok().and_then(|word| word.parse().ok());
    // Another program reads it, so that nothing may be lost.
    context.output.line(clean::json(frame.wire(&word.unwrap_or_default())));
}
