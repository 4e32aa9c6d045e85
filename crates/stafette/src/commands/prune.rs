//! `prune`: removes old finished runs, and frees their space.

use std::collections::BTreeSet;

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
    let unneeded = unneeded(runs(&*store).await?, before, arguments.keep);
    if unneeded > 0 {
        let question = format!("Remove {} for good?", count(unneeded, "ended run"));
        if !context.confirm(&question)? {
            store.close().await;
            return Ok(Exit::Failed);
        }
    }
    let removed = store.retain(retention).await.map_err(failed)?;
    let compacted = store.compact().await.map_err(failed)?;
    let stay: BTreeSet<String> = runs(&*store).await?.into_iter().map(|run| run.short).collect();
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
        "{}, {}, {}, and {} removed; {} KiB → {} KiB",
        counted(removed.runs, "run"),
        counted(removed.events, "event"),
        count(cleared.worktrees, "worktree"),
        match tidied.removed.len() {
            1 => "1 branch or ref".to_owned(),
            n => format!("{n} branches and refs"),
        },
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

/// A run as far as it matters here.
struct Stored {
    short: String,
    finished_at: Option<Time>,
}

/// All runs of a store.
async fn runs(store: &dyn Store) -> Result<Vec<Stored>, Failure> {
    let mut filter = RunFilter { limit: PAGE, ..RunFilter::default() };
    let mut all = Vec::new();
    loop {
        let rows = store.runs(filter.clone()).await.map_err(|error| store::unreadable(&error))?;
        filter.after = rows.last().map(|row| row.run);
        let is_last = rows.len() < PAGE;
        all.extend(
            rows.iter().map(|row| Stored { short: row.run.short(), finished_at: row.finished_at }),
        );
        if is_last {
            return Ok(all);
        }
    }
}

/// The number of `runs` that ended before a time, without the newest of those that have ended.
fn unneeded(runs: Vec<Stored>, before: Time, keep: usize) -> usize {
    let mut ends: Vec<Time> = runs.into_iter().filter_map(|run| run.finished_at).collect();
    ends.sort_unstable_by_key(|end| std::cmp::Reverse(*end));
    ends.into_iter().skip(keep).filter(|end| *end < before).count()
}
