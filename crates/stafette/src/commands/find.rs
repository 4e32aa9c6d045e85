//! `find`: searches the texts of all runs.

use serde_json::Value;
use stafette_core::clean::Clean;

use super::{Context, daemon_of_runs, segment};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::Tone;

pub(crate) async fn run(context: &Context, arguments: &cli::Find) -> Result<Exit, Failure> {
    let client = daemon_of_runs(context).await?;
    let words = segment(&arguments.words.join(" "));
    let path = format!("/v1/find?limit={}&q={words}", arguments.limit);
    let hits: Vec<Value> = client.get(&path).await?;
    let output = context.output;
    if output.json {
        output.data(&hits);
        return Ok(Exit::Ok);
    }
    if hits.is_empty() {
        output.say("Nothing was found.");
    }
    for hit in &hits {
        let text = |key: &str| hit[key].as_str().unwrap_or_default().to_owned();
        // In the form that `why` and `log` take.
        let run = hit["run"].as_str().and_then(|run| run.parse().ok());
        let run = run.map_or_else(|| text("run"), |run: stafette_core::RunId| run.short());
        let place = match hit["handoff"].as_str() {
            Some(handoff) => format!("{run}:{handoff}"),
            None => run,
        };
        let about = format!("{} {} {}", text("at"), text("kind"), text("who"));
        output.line(Clean::from(place) + "  " + output.paint(Tone::Quiet, about.trim_end()));
        for line in text("text").lines() {
            // Marked: an agent's words must not look like lines of ours.
            output.line(format!("   │ {line}"));
        }
    }
    Ok(Exit::Ok)
}
