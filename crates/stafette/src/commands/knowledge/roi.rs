//! `roi`: lists decisions and their returns.

use serde_json::{Value, json};
use stafette_stages::Ranked;

use super::{Context, list, text};
use crate::cli;
use crate::commands::{daemon, segment};
use crate::exit::{Exit, Failure};
use crate::output::short;

pub(crate) async fn run(context: &Context, arguments: cli::Roi) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let output = context.output;
    let Some(decision) = arguments.decision else {
        let found: Value = client.get("/v1/decisions").await?;
        if output.json {
            output.data(&found);
            return Ok(Exit::Ok);
        }
        let rows = list(&found, "/decisions").iter().map(|one| {
            let roi = one["roi"].as_f64().unwrap_or(0.0);
            vec![text(one, "/id"), format!("{roi:.2}"), short(&text(one, "/option"), 60)]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        match rows.is_empty() {
            true => output.say("No decision waits to be carried out."),
            false => output.table(&["decision", "return", "option"], rows),
        }
        return Ok(Exit::Ok);
    };
    let path = format!("/v1/decisions/{}", segment(&decision));
    if let Some(actual) = arguments.actual {
        let body = json!({ "actual": actual });
        let changed: Value = client.post(&format!("{path}/outcome"), &body).await?;
        match output.json {
            true => output.data(&changed),
            false => output.line(format!("{} brought {actual}", text(&changed, "/option"))),
        }
        return Ok(Exit::Ok);
    }
    let found: Value = client.get(&path).await?;
    if output.json {
        output.data(&found);
        return Ok(Exit::Ok);
    }
    output.line(text(&found, "/decision/option"));
    if let Ok(ranked) = serde_json::from_value::<Ranked>(found["ranking"].clone()) {
        output.line(ranked.table().trim_end());
    }
    for task in list(&found, "/tasks") {
        let (hours, took) = (&task["effortHours"], &task["actualHours"]);
        let took = if took.is_null() { String::new() } else { format!(", took {took} h") };
        output.line(format!(
            "{} — {hours} h{took}, {}",
            text(task, "/title"),
            text(task, "/status")
        ));
    }
    Ok(Exit::Ok)
}
