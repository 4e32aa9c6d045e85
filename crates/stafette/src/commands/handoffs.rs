//! `handoffs`: lists the handoffs of a run.

use serde_json::Value;

use super::{Context, daemon_of_runs, run_path};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::short;

pub(crate) async fn run(context: &Context, arguments: cli::OneRun) -> Result<Exit, Failure> {
    let client = daemon_of_runs(context).await?;
    let rows: Vec<Value> = client.get(&run_path(arguments.run.as_deref(), "/handoffs")).await?;
    if context.output.json {
        context.output.data(&rows);
        return Ok(Exit::Ok);
    }
    let text = |row: &Value, path: &str| {
        row.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let cells = rows.iter().map(|row| {
        let summary = text(row, "/handoff/offer/summary");
        let said = if summary.is_empty() { text(row, "/handoff/offer/detail") } else { summary };
        vec![
            text(row, "/id"),
            text(row, "/from"),
            text(row, "/to"),
            text(row, "/reason"),
            text(row, "/state"),
            receipt(row),
            row.pointer("/handoff/attempt").map(ToString::to_string).unwrap_or_default(),
            short(&said, 60),
        ]
    });
    context.output.table(
        &["handoff", "from", "to", "reason", "state", "receipt", "attempt", "summary"],
        cells.collect(),
    );
    Ok(Exit::Ok)
}

/// The progress of the open turn into its agent.
fn receipt(row: &Value) -> String {
    let states = row.pointer("/handoff/state").and_then(Value::as_object).into_iter().flatten();
    let mut out = states.filter_map(|(_, state)| state["receipt"].as_str());
    out.next().unwrap_or("–").to_owned()
}
