//! `prune`: removes old finished runs, and frees their space.

use serde_json::json;
use stafette_core::Time;
use stafette_engine::garbage;
use stafette_store::{Retention, RunFilter, Store};

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::{count, counted};
use crate::store;

/// The runs that are read at once.
const PAGE: usize = 1000;

pub(crate) async fn run(context: &Context, arguments: cli::Prune) -> Result<Exit, Failure> {
    let project = context.project()?;
    let age = super::time(&arguments.older_than)?;
    let now = Time::of(std::time::SystemTime::now());
    let before = Time(now.0.saturating_sub_unsigned(age.0));
    let store = store::open(&project, false).await?.store;
    let failed = |error: stafette_store::UpkeepError| {
        Failure::failed("Cannot prune the store")
            .because(&error)
            .fix("see `stafette doctor`, which checks the store")
    };
    let retention = Retention { finished_before: Some(before), keep_last: arguments.keep };
    let unneeded = unneeded(&*store, before, arguments.keep).await?;
    if unneeded > 0 {
        let question = format!("Remove {} for good?", count(unneeded, "ended run"));
        if !context.confirm(&question)? {
            store.close().await;
            return Ok(Exit::Failed);
        }
    }
    let removed = store.retain(retention).await.map_err(failed)?;
    let compacted = store.compact().await.map_err(failed)?;
    let unfinished = store.unfinished().await.map_err(|error| store::unreadable(&error))?;
    store.close().await;
    let cleared =
        garbage::clear(&project.root, &project.state()?, |run| unfinished.contains(&run)).await;
    let cleared = cleared.map_err(|error| {
        Failure::failed("Cannot remove the worktrees of runs that have ended")
            .because(&error)
            .fix("end programs that use them, and run `stafette prune` again")
    })?;
    let cleared = cleared.unwrap_or_default();
    match context.output.json {
        true => context
            .output
            .data(&json!({ "removed": removed, "compacted": compacted, "worktrees": cleared })),
        false => context.output.say(format!(
            "{}, {} and {} removed; {} KiB → {} KiB",
            counted(removed.runs, "run"),
            counted(removed.events, "event"),
            count(cleared.worktrees, "worktree"),
            compacted.bytes_before / 1024,
            compacted.bytes_after / 1024
        )),
    }
    Ok(Exit::Ok)
}

/// The number of runs that ended before a time, without the newest of those that have ended.
async fn unneeded(store: &dyn Store, before: Time, keep: usize) -> Result<usize, Failure> {
    let mut filter = RunFilter { limit: PAGE, ..RunFilter::default() };
    let mut ends: Vec<Time> = Vec::new();
    loop {
        let rows = store.runs(filter.clone()).await.map_err(|error| store::unreadable(&error))?;
        filter.after = rows.last().map(|row| row.run);
        let is_last = rows.len() < PAGE;
        ends.extend(rows.iter().filter_map(|row| row.finished_at));
        if is_last {
            break;
        }
    }
    ends.sort_unstable_by_key(|end| std::cmp::Reverse(*end));
    Ok(ends.into_iter().skip(keep).filter(|end| *end < before).count())
}
