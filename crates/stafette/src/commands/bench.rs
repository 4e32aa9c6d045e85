//! `bench`: how fast handoffs are here, with a reference measured in the same run.

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: cli::Bench) -> Result<Exit, Failure> {
    // Here, and not where temporary files are: those may never reach a disk.
    let folder = std::env::current_dir()
        .and_then(|here| tempfile::Builder::new().prefix(".stafette-bench-").tempdir_in(here))
        .map_err(|error| Failure::failed("No folder can be made").because(&error))?;
    let report = stafette_bench::handoffs(folder.path(), arguments.handoffs, arguments.runs)
        .await
        .map_err(|error| Failure::failed("The measurement failed").because(&*error))?;
    match context.output.json {
        true => context.output.data(&report),
        false => context.output.line(&report.to_string()),
    }
    Ok(Exit::Ok)
}
