//! `calendar`: lists events, and blocks of time that wait for a person.

use serde_json::{Value, json};

use super::{Context, list, moment, text};
use crate::cli::{self, CalendarCommand};
use crate::commands::{daemon, segment};
use crate::exit::{Exit, Failure};
use crate::output::short;
use crate::project::person;

pub(crate) async fn run(context: &Context, arguments: cli::Calendar) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let output = context.output;
    let by = json!({ "by": person() });
    let (path, body) = match arguments.command {
        None => return week(context, arguments.from, arguments.to).await,
        Some(CalendarCommand::Accept { block }) => (path(&block, "accept"), by),
        Some(CalendarCommand::Drop { block }) => (path(&block, "drop"), by),
        Some(CalendarCommand::Move { block, start, end }) => {
            (path(&block, "move"), json!({ "start": start, "end": end }))
        }
        Some(CalendarCommand::Done { task, hours, at }) => {
            let body = json!({ "status": "done", "actual_hours": hours, "done_at": at });
            (format!("/v1/tasks/{}", segment(&task)), body)
        }
    };
    let changed: Value = client.post(&path, &body).await?;
    match output.json {
        true => output.data(&changed),
        false => {
            let state = ["/state", "/status"].map(|path| text(&changed, path)).concat();
            output.line(format!("{} is {state}", text(&changed, "/title")));
            for along in list(&changed, "/along") {
                output.line(text(along, "/trouble"));
            }
        }
    }
    Ok(Exit::Ok)
}

fn path(block: &str, what: &str) -> String {
    format!("/v1/calendar/blocks/{}/{what}", segment(block))
}

async fn week(
    context: &Context,
    from: Option<String>,
    to: Option<String>,
) -> Result<Exit, Failure> {
    let asked = [("from", from), ("to", to)];
    let asked = asked.iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
    let query: Vec<String> =
        asked.map(|(name, text)| format!("{name}={}", segment(text))).collect();
    let path = format!("/v1/calendar?{}", query.join("&"));
    let found: Value = daemon(context).await?.get(&path).await?;
    let output = context.output;
    if output.json {
        output.data(&found);
        return Ok(Exit::Ok);
    }
    let event = |one: &Value| {
        vec![
            moment(&one["start"]),
            moment(&one["end"]),
            String::new(),
            short(&text(one, "/title"), 60),
            String::new(),
        ]
    };
    let known: Vec<&Value> = list(&found, "/proposals").iter().collect();
    let is_ours = |one: &&Value| known.iter().any(|ours| ours["id"] == one["uid"]);
    let events = list(&found, "/events").iter().filter(|one| !is_ours(one)).map(event);
    let proposals = known.iter().map(|one| {
        let state = match (one["trouble"].as_str(), text(one, "/state")) {
            (Some(_), state) => format!("{state} (see below)"),
            (None, state) => state,
        };
        vec![
            moment(&one["start"]),
            moment(&one["end"]),
            state,
            short(&text(one, "/title"), 60),
            text(one, "/id"),
        ]
    });
    let mut rows: Vec<Vec<String>> = events.chain(proposals).collect();
    rows.sort();
    match rows.is_empty() {
        true => output.say("Nothing takes place."),
        false => output.table(&["from", "to", "state", "what", "block"], rows),
    }
    for block in known {
        if block["trouble"].is_string() {
            output.say(text(block, "/trouble"));
        }
    }
    Ok(Exit::Ok)
}
