//! `briefing`: prints the text that the next generation reads first.

use serde_json::Value;

use super::{Context, daemon, run_path};
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: cli::OneRun) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let told: Value = client.get(&run_path(arguments.run.as_deref(), "/briefing")).await?;
    if context.output.json {
        context.output.data(&told);
        return Ok(Exit::Ok);
    }
    for line in told["briefing"].as_str().unwrap_or_default().lines() {
        context.output.line(line);
    }
    let narrative = told["narrative"].as_str().unwrap_or_default();
    context.output.say(narrative.lines().collect::<Vec<_>>().join("\n│ "));
    Ok(Exit::Ok)
}
