//! `log`: prints the events.

mod filter;

use serde_json::Value;
use stafette_core::clean::Clean;
use stafette_core::team::order::Leftover;

use super::{Context, daemon_of_runs, run_path};
use crate::cli;
use crate::exit::{Exit, Failure};
use filter::Filter;

pub(crate) async fn run(context: &Context, arguments: cli::Log) -> Result<Exit, Failure> {
    let client = daemon_of_runs(context).await?;
    let mut filter = Filter::new(&arguments)?;
    // All of them are read: only the earlier ones show whose handoff a later one is about.
    let from = if filter.needs_all() { 0 } else { arguments.after };
    let query = format!("/events?after={from}&follow={}", arguments.follow);
    let mut lines = client.lines(&run_path(arguments.run.as_deref(), &query)).await?;
    while let Some(event) = lines.next().await? {
        for shown in filter.shown(&event) {
            match context.output.json || arguments.protocol {
                true => context.output.data(&shown),
                false => context.output.line(line(&shown)),
            }
        }
        if arguments.follow && event["event"] == "run_finished" {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// The number, the time, the name and the subject of an event.
pub(super) fn line(event: &Value) -> String {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let about = ["/change", "/turn", "/handoff", "/id"]
        .into_iter()
        .map(text)
        .find(|text| !text.is_empty())
        .map(|text| text.split_once('/').map_or(text, |(_, rest)| rest))
        .unwrap_or_default();
    let said = [
        "/request",
        "/failure/message",
        "/ending/why",
        "/why",
        "/status",
        "/comment/text",
        "/work",
        "/reason",
        "/receipt",
        "/text",
        "/note",
        "/message",
        "/response/outcome",
        "/refusal/rule",
        "/way",
    ]
    .into_iter()
    .map(text)
    .find(|text| !text.is_empty())
    .unwrap_or_default();
    let left: Option<Leftover> = serde_json::from_value(event["left"].clone()).ok();
    let said = match (&left, event["unchanged"] == true) {
        (Some(left), _) => left.told(),
        (None, true) => format!("stays {said}: {}", text("/note")),
        (None, false) => said.to_owned(),
    };
    let parties = match text("/to") {
        "" => (text("/offer/from"), text("/offer/to")),
        to => (text("/from"), to),
    };
    let route = match parties {
        ("", _) => String::new(),
        (from, to) => format!("{from} → {to} "),
    };
    let messages = event["messages"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let messages: String = messages.map(|id| format!("{id} ")).collect();
    let clock = text("/at").get(11..23).unwrap_or_default();
    let name = text("/event");
    let printed = super::run::printed(event);
    let line = format!(
        "{:>5} {clock} {name:<17} {about:<7} {route}{messages}{said}{printed}",
        event["seq"]
    );
    Clean::from(line.trim_end()).on_one_line().into()
}
