//! `tidy`: removes old finished runs, and frees their space.

use serde_json::json;
use stafette_core::{Millis, Time};
use stafette_engine::garbage;
use stafette_store::Retention;

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::store;

pub(crate) async fn run(context: &Context, arguments: cli::Tidy) -> Result<Exit, Failure> {
    let project = context.project()?;
    let age = Millis::parse(&arguments.older_than)
        .map_err(|why| Failure::usage(why).fix("write a span such as 30s, 10m, 12h or 7d"))?;
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let before =
        Time(i64::try_from(now.as_millis()).unwrap_or(i64::MAX).saturating_sub_unsigned(age.0));
    let store = store::open(&project, false).await?.store;
    let failed = |error: stafette_store::UpkeepError| {
        Failure::failed("The store could not be tidied")
            .because(&error)
            .fix("see `stafette doctor`; nothing was lost")
    };
    let retention = Retention { finished_before: Some(before), keep_last: arguments.keep };
    let removed = store.retain(retention).await.map_err(failed)?;
    let compacted = store.compact().await.map_err(failed)?;
    let unfinished = store.unfinished().await.map_err(|error| {
        Failure::failed("The runs that go on cannot be read")
            .because(&error)
            .fix("see `stafette doctor`")
    })?;
    store.close().await;
    let cleared =
        garbage::clear(&project.root, &project.state()?, |run| unfinished.contains(&run)).await;
    let cleared = cleared.map_err(|error| {
        Failure::failed("The worktrees of runs that are over cannot be cleared away")
            .because(&error)
            .fix("check the folder's permissions, and try again")
    })?;
    let cleared = cleared.unwrap_or_default();
    match context.output.json {
        true => context
            .output
            .data(&json!({ "removed": removed, "compacted": compacted, "worktrees": cleared })),
        false => context.output.say(format!(
            "{} runs, {} events and {} worktrees removed; {} KiB → {} KiB",
            removed.runs,
            removed.events,
            cleared.worktrees,
            compacted.bytes_before / 1024,
            compacted.bytes_after / 1024
        )),
    }
    Ok(Exit::Ok)
}
