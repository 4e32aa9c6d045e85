//! `context`: prints the state of the team, for programs and for another orchestrator.

use serde_json::Value;
use stafette_core::clean;

use super::{Context, daemon, run_path};
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: cli::OneRun) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let told: Value = client.get(&run_path(arguments.run.as_deref(), "/context")).await?;
    match context.output.json {
        true => context.output.data(&told),
        false => context
            .output
            .line(clean::json(serde_json::to_string_pretty(&told).unwrap_or_default())),
    }
    Ok(Exit::Ok)
}
