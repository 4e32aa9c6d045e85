//! `prune`: removes old finished runs, and frees their space.

use std::collections::BTreeSet;

use serde_json::json;
use stafette_core::Time;
use stafette_engine::garbage;
use stafette_store::{Retention, RunFilter};

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::store;

/// More runs than a store has.
const MOST_RUNS: usize = 10_000_000;

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
    let removed = store.retain(retention).await.map_err(failed)?;
    let compacted = store.compact().await.map_err(failed)?;
    let all = RunFilter { limit: MOST_RUNS, ..RunFilter::default() };
    let stay = store.runs(all).await.map_err(|error| store::unreadable(&error))?;
    let stay: BTreeSet<String> = stay.iter().map(|row| row.run.short()).collect();
    let unfinished = store.unfinished().await.map_err(|error| store::unreadable(&error))?;
    store.close().await;
    let cleared =
        garbage::clear(&project.root, &project.state()?, |run| unfinished.contains(&run)).await;
    let cleared = cleared.map_err(|error| unremoved(&error))?.unwrap_or_default();
    let is_gone = |run: &str| !stay.contains(run);
    let tidied = garbage::tidy(&project.root, &project.state()?, is_gone).await;
    let tidied = tidied.map_err(|error| unremoved(&error))?;
    if context.output.json {
        let refs = json!({ "removed": tidied.removed, "kept": tidied.kept });
        context.output.data(&json!({
            "removed": removed, "compacted": compacted, "worktrees": cleared, "refs": refs,
        }));
        return Ok(Exit::Ok);
    }
    context.output.say(format!(
        "{} runs, {} events, {} worktrees, and {} branches and refs removed; {} KiB → {} KiB",
        removed.runs,
        removed.events,
        cleared.worktrees,
        tidied.removed.len(),
        compacted.bytes_before / 1024,
        compacted.bytes_after / 1024
    ));
    if !tidied.kept.is_empty() {
        context.output.say("These have work that is in no other branch and no settled change:");
    }
    for name in &tidied.kept {
        context.output.say(match name.strip_prefix("refs/heads/") {
            Some(branch) => format!("  {branch}: git branch -D {branch}"),
            None => format!("  {name}: git update-ref -d {name}"),
        });
    }
    Ok(Exit::Ok)
}

fn unremoved(error: &dyn std::error::Error) -> Failure {
    Failure::failed("Cannot remove what runs that have ended left in git")
        .because(error)
        .fix("end programs that use it, and run `stafette prune` again")
}
