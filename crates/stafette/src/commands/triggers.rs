//! `triggers`: lists and fires the triggers that start runs automatically.

use serde_json::{Value, json};

use super::{Context, daemon, segment};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::short;

pub(crate) async fn run(context: &Context, arguments: cli::Triggers) -> Result<Exit, Failure> {
    match arguments.command {
        None => list(context).await,
        Some(cli::TriggersCommand::Fire { name, payload }) => fire(context, &name, payload).await,
    }
}

async fn list(context: &Context) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let triggers: Vec<Value> = client.get("/v1/triggers").await?;
    let output = context.output;
    if output.json {
        output.data(&triggers);
        return Ok(Exit::Ok);
    }
    if triggers.is_empty() {
        output.say("No triggers.");
        return Ok(Exit::Ok);
    }
    let row = |trigger: &Value| {
        let text = |name: &str| trigger[name].as_str().unwrap_or_default().to_owned();
        let kind = match (trigger["cron"].as_str(), trigger["webhook"].as_bool()) {
            (Some(cron), Some(true)) => format!("{cron} and webhook"),
            (Some(cron), _) => cron.to_owned(),
            _ => "webhook".to_owned(),
        };
        let next = match (&trigger["secret_set"], trigger["next"][0].as_str()) {
            (Value::Bool(false), _) => "its secret is not set".to_owned(),
            (_, Some(next)) => next.to_owned(),
            _ => String::new(),
        };
        vec![text("name"), kind, next, short(&text("request"), 60)]
    };
    output.table(&["trigger", "when", "next", "request"], triggers.iter().map(row).collect());
    Ok(Exit::Ok)
}

async fn fire(context: &Context, name: &str, payload: Option<String>) -> Result<Exit, Failure> {
    let payload: Value = match payload {
        None => Value::Null,
        Some(text) => serde_json::from_str(&text).map_err(|error| {
            Failure::usage("The payload is not JSON")
                .because(&error)
                .fix("quote it for the shell, as in --payload '{\"ref\": \"main\"}'")
        })?,
    };
    let by = std::env::var("USER").unwrap_or_default();
    let client = daemon(context).await?;
    let path = format!("/v1/triggers/{}/fire", segment(name));
    let pulled: Value = client.post(&path, &json!({ "payload": payload, "by": by })).await?;
    match context.output.json {
        true => context.output.data(&pulled),
        false => context.output.line(pulled["run"].as_str().unwrap_or_default()),
    }
    Ok(Exit::Ok)
}
