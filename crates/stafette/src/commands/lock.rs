//! `lock`, `unlock`, `locks`: takes, releases and lists locks.

mod check;
mod hold;
mod hook;
mod paths;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use stafette_core::Time;

use self::paths::Places;
use super::{Context, daemon};
use crate::cli::{self, LockAction};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Tone;
use crate::project::person;

pub(crate) async fn run(context: &Context, arguments: cli::Lock) -> Result<Exit, Failure> {
    match arguments.action {
        Some(LockAction::Check(check)) => return check::run(context, check).await,
        Some(LockAction::Hook(action)) => return hook::run(context, action).await,
        None => {}
    }
    let asker = Asker::new(!arguments.command.is_empty());
    let mut body = Map::new();
    body.insert("patterns".into(), json!(Places::of(context)?.patterns(&arguments.patterns)?));
    body.insert("who".into(), asker.json());
    if arguments.shared {
        body.insert("mode".into(), "shared".into());
    }
    if let Some(lease) = &arguments.lease {
        body.insert("lease".into(), span(lease)?);
    }
    if let Some(wait) = &arguments.wait {
        body.insert("wait".into(), span(wait)?);
        body.insert("on_conflict".into(), "wait".into());
    }
    if arguments.take_over {
        body.insert("on_conflict".into(), "take_over".into());
    }
    if let Some(reason) = &arguments.reason {
        body.insert("reason".into(), reason.as_str().into());
    }
    let client = client(context).await?;
    let lock = take(context, &client, &asker, &Value::Object(body)).await?;
    if !arguments.command.is_empty() {
        return hold::run(context, &client, &asker, &lock, &arguments.command).await;
    }
    match context.output.json {
        true => context.output.data(&lock),
        false => {
            context.output.line(lock["fence"].to_string());
            context.output.say(format!(
                "{} is yours for {} ({}); give it back with `stafette unlock {}`",
                what(&lock),
                left(&lock),
                text(&lock, "id"),
                text(&lock, "id"),
            ));
        }
    }
    Ok(Exit::Ok)
}

/// Takes the lock, and waits in the queue for as long as it may.
async fn take(
    context: &Context,
    client: &Client,
    asker: &Asker,
    body: &Value,
) -> Result<Value, Failure> {
    let mut lock: Value = client.post("/v1/locks", body).await.map_err(hint)?;
    while lock["state"] == "waiting" {
        let id = text(&lock, "id");
        context.output.say(format!("waiting for {} ({id}), {} at most", what(&lock), left(&lock)));
        let path = format!("/v1/locks/{id}?wait=60s");
        lock = tokio::select! {
            answer = client.get(&path) => answer.map_err(hint)?,
            _ = tokio::signal::ctrl_c() => {
                release(client, asker, &id).await?;
                return Err(Failure::new(Exit::Lock, "Interrupted while waiting for the lock")
                    .fix("run it again to wait on; `stafette locks` shows who has what"));
            }
        };
    }
    Ok(lock)
}

/// Adds a hint on what to do about a lock of another holder.
fn hint(failure: Failure) -> Failure {
    match failure.code == Exit::Lock {
        true => failure.fix(
            "`stafette locks` shows who has what; wait longer with --wait, or take it with \
             --take-over --reason",
        ),
        false => failure,
    }
}

pub(crate) async fn unlock(context: &Context, arguments: cli::Unlock) -> Result<Exit, Failure> {
    let asker = Asker::new(false);
    let client = client(context).await?;
    let list: Value = client.get("/v1/locks").await?;
    let locks: Vec<&Value> = list["locks"].as_array().into_iter().flatten().collect();
    let mut released = Vec::new();
    if arguments.all {
        let mine = locks.iter().filter(|lock| asker.could_own(lock));
        for id in mine.map(|lock| text(lock, "id")) {
            // Only the daemon can tell an agent's own lock from those of others.
            if release(&client, &asker, &id).await.is_ok() {
                released.push(id);
            }
        }
    }
    let places = Places::of(context)?;
    for name in &arguments.names {
        let pattern = places.patterns(std::slice::from_ref(name))?.remove(0);
        let is_meant = |lock: &&&Value| {
            let mut on = lock["patterns"].as_array().into_iter().flatten();
            lock["id"] == json!(name) || on.any(|it| *it == json!(pattern))
        };
        let (mut done, mut refusal) = (false, None);
        for id in locks.iter().filter(is_meant).map(|lock| text(lock, "id")) {
            match release(&client, &asker, &id).await {
                Ok(()) => {
                    released.push(id);
                    done = true;
                }
                Err(failure) => refusal = Some(failure),
            }
        }
        if !done {
            return Err(refusal.unwrap_or_else(|| {
                Failure::failed(format!("Nothing of yours is locked as {name}"))
                    .fix("`stafette locks` lists what is")
            }));
        }
    }
    match context.output.json {
        true => context.output.data(&json!({ "released": released })),
        false if released.is_empty() => context.output.say("Nothing of yours is locked."),
        false => context.output.say(format!("{} given back", released.join(", "))),
    }
    Ok(Exit::Ok)
}

async fn release(client: &Client, asker: &Asker, id: &str) -> Result<(), Failure> {
    let path = format!("/v1/locks/{id}/release");
    client.post::<Value>(&path, &json!({ "who": asker.json() })).await.map(drop)
}

pub(crate) async fn list(context: &Context) -> Result<Exit, Failure> {
    let list: Value = client(context).await?.get("/v1/locks").await?;
    if context.output.json {
        context.output.data(&list);
        return Ok(Exit::Ok);
    }
    let locks: Vec<&Value> = list["locks"].as_array().into_iter().flatten().collect();
    if locks.is_empty() {
        context.output.say("Nothing is locked.");
    } else {
        let row = |lock: &&Value| {
            let fence = lock["fence"].as_u64().map_or("–".to_owned(), |fence| fence.to_string());
            let mode = match lock["mode"] == "shared" {
                true => format!("{}, shared", text(lock, "state")),
                false => text(lock, "state"),
            };
            let holder = text(lock, "holder");
            vec![
                text(lock, "id"),
                fence,
                mode,
                holder,
                left(lock),
                what(lock),
                text(lock, "reason"),
            ]
        };
        let head = ["lock", "fence", "state", "holder", "for", "what", "reason"];
        context.output.table(&head, locks.iter().map(row).collect());
    }
    for alert in list["alerts"].as_array().into_iter().flatten() {
        let message = text(alert, "message");
        context.output.say(context.output.paint(Tone::Bad, &message));
    }
    Ok(Exit::Ok)
}

/// The requester: the agent whose session this is, or the person.
#[derive(Clone, Debug)]
struct Asker {
    token: Option<String>,
    seat: String,
}

impl Asker {
    /// The requester of this process; with `alone`, not even their other commands may use the lock.
    fn new(alone: bool) -> Self {
        // A command that runs under a lock has the seat of the command that holds it.
        let inherited = variable("STAFETTE_SEAT");
        let own = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("pid {}.{:x}", std::process::id(), since.subsec_nanos())
        };
        let seat = inherited.unwrap_or_else(|| if alone { own() } else { String::new() });
        Asker { token: session().map(|(_, token)| token), seat }
    }

    fn json(&self) -> Value {
        match &self.token {
            Some(token) => json!({ "token": token, "seat": self.seat }),
            None => json!({ "by": person(), "seat": self.seat }),
        }
    }

    fn could_own(&self, lock: &Value) -> bool {
        self.token.is_some() || lock.pointer("/by/name") == Some(&json!(person()))
    }
}

/// The socket and the token of the agent's session that this process is in.
fn session() -> Option<(String, String)> {
    variable("STAFETTE_SOCKET").zip(variable("STAFETTE_TOKEN"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

async fn client(context: &Context) -> Result<Client, Failure> {
    match session() {
        Some((socket, token)) => Ok(Client::new(socket.as_ref()).of_turn(token)),
        None => daemon(context).await,
    }
}

fn span(typed: &str) -> Result<Value, Failure> {
    super::time(typed).map(|time| json!(time))
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn what(lock: &Value) -> String {
    let patterns = lock["patterns"].as_array().into_iter().flatten();
    patterns.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// The time that is left of the lease.
fn left(lock: &Value) -> String {
    let until = Time::parse(&text(lock, "until")).unwrap_or_default();
    until.since(now()).to_string()
}

fn now() -> Time {
    Time::of(SystemTime::now())
}
