//! `bench`: measures handoffs and terminals on this machine, with a reference measured in the same
//! run.

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: cli::Bench) -> Result<Exit, Failure> {
    // Here, and not in the folder for temporary files: those may never reach a disk.
    let folder = std::env::current_dir()
        .and_then(|here| tempfile::Builder::new().prefix(".stafette-bench-").tempdir_in(here))
        .map_err(|error| {
            Failure::failed("Cannot create a folder for the measurement")
                .because(&error)
                .fix("run it in a folder that you may write to")
        })?;
    let failed = |error: stafette_bench::BenchError| {
        Failure::failed("The measurement failed")
            .because(&*error)
            .fix("try smaller numbers: --handoffs, --runs, --idle, --busy")
    };
    let cli::Bench { handoffs, runs, idle, busy } = arguments;
    let mut report =
        stafette_bench::handoffs(folder.path(), handoffs, runs).await.map_err(failed)?;
    if idle + busy > 0 {
        let terminals = stafette_bench::terminals(folder.path(), idle, busy);
        report.terminals = Some(terminals.await.map_err(failed)?);
    }
    match context.output.json {
        true => context.output.data(&report),
        false => context.output.line(report.to_string()),
    }
    Ok(Exit::Ok)
}
