//! `insights`, `params`, `calendar`, `roi`, `threads` and `graph`: knowledge and plans.

mod calendar;
mod graph;
mod insights;
mod roi;
mod threads;

use serde_json::Value;

use stafette_stages::CHANGED;

use super::Context;
use crate::client::Client;
use crate::output::{Output, Tone};

pub(crate) use calendar::run as calendar;
pub(crate) use graph::run as graph;
pub(crate) use insights::{params, run as insights};
pub(crate) use roi::run as roi;
pub(crate) use threads::run as threads;

/// A text of a response, safe for a terminal.
fn text(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The items of a list in a response.
fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A time of a response, in milliseconds, in a form for people.
fn moment(value: &Value) -> String {
    value.as_i64().map(|at| stafette_core::Time(at).rfc3339()).unwrap_or_default()
}

/// The errors of the graph or the calendar, a sentence for each; empty when there are none, or
/// neither is kept.
pub(crate) async fn troubles(client: &Client) -> Vec<String> {
    client.get("/v1/knowledge").await.map(|health| wrong(&health)).unwrap_or_default()
}

fn wrong(health: &Value) -> Vec<String> {
    let mut said = Vec::new();
    if health["changed"] == true {
        said.push(CHANGED.to_owned());
    }
    if let Some(code) = health.pointer("/condition/code").and_then(Value::as_str) {
        let (server, why) = (text(health, "/server"), text(health, "/condition/why"));
        let waiting = &health["condition"]["waiting"];
        said.push(format!("{}: the graph {server} is away, {waiting} writes wait: {why}", code));
    }
    if let Some(why) = health["calendar_trouble"].as_str() {
        let calendar = text(health, "/calendar");
        said.push(format!("MCP_CONNECTION_FAILED: the calendar {calendar}: {why}"));
    }
    let refused = health["condition"]["set_aside"].as_u64().unwrap_or(0);
    if refused > 0 {
        said.push(format!("the graph refused {refused} writes; they are kept with the reason"));
    }
    said
}

/// Prints the errors and the blocks of time that need a person, before other output.
pub(crate) async fn warn(output: Output, client: &Client) {
    let Ok(health) = client.get::<Value>("/v1/knowledge").await else { return };
    for sentence in wrong(&health) {
        output.say(output.paint(Tone::Bad, "trouble:") + " " + sentence);
    }
    for block in list(&health, "/waits").iter().filter_map(Value::as_str) {
        output.say(output.paint(Tone::Yours, "waits:") + " " + block);
    }
}
