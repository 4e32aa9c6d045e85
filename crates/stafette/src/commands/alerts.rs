//! `alerts`: lists the alerts that fire, and prints the same conditions as rules for Prometheus.

use serde_json::Value;
use stafette_core::Millis;
use stafette_telemetry::alerts::prometheus;

use super::{Context, daemon};
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{Output, Tone};

pub(crate) async fn run(context: &Context, arguments: &cli::Alerts) -> Result<Exit, Failure> {
    let output = context.output;
    if arguments.format == Some(cli::RuleFormat::Prometheus) {
        let rules = prometheus(&context.project()?.load()?.workflow.alerts);
        output.line(rules.trim_end());
        return Ok(Exit::Ok);
    }
    let list: Value = daemon(context).await?.get("/v1/alerts").await?;
    if output.json {
        output.data(&list);
        return Ok(Exit::Ok);
    }
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let rows = list["alerts"].as_array().into_iter().flatten().map(|alert| {
        let firing = alert["firing"] == true;
        vec![
            text(alert, "name"),
            if firing { format!("fires since {}", text(alert, "since")) } else { "quiet".into() },
            format!("{} is {}", text(alert, "measure"), alert["value"]),
            format!("more than {}{}", alert["above"], window(alert)),
            text(alert, "severity"),
            text(alert, "action"),
        ]
    });
    output.table(&["alert", "state", "now", "fires at", "severity", "to do"], rows.collect());
    Ok(Exit::Ok)
}

/// The time that a measure is about, as the end of a phrase.
fn window(alert: &Value) -> String {
    let within = serde_json::from_value::<Millis>(alert["within"].clone());
    within.map_or_else(|_| String::new(), |within| format!(" within {within}"))
}

/// The alerts that fire now, a sentence for each; empty when the daemon cannot say.
pub(crate) async fn firing(client: &Client) -> Vec<String> {
    sentences(client, |_| true).await
}

async fn sentences(client: &Client, is_told: impl Fn(&Value) -> bool) -> Vec<String> {
    let Ok(list) = client.get::<Value>("/v1/alerts").await else { return Vec::new() };
    let alerts = list["alerts"].as_array().into_iter().flatten();
    alerts
        .filter(|alert| alert["firing"] == true && is_told(alert))
        .map(|alert| {
            let text = |key: &str| alert[key].as_str().unwrap_or_default();
            let (name, measure, action) = (text("name"), text("measure"), text("action"));
            format!(
                "{name}: {measure} is {}, more than {}: {action}",
                alert["value"], alert["above"]
            )
        })
        .collect()
}

/// Prints the alerts that fire and ask for somebody to act, before other output: that many questions
/// were asked is the everyday life of a team, and in the list.
pub(crate) async fn warn(output: Output, client: &Client) {
    for sentence in sentences(client, |alert| alert["severity"] != "info").await {
        output.say(output.paint(Tone::Bad, "alert:") + " " + sentence);
    }
}
