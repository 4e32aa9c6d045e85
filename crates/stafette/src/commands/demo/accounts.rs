//! Counts lost, repeated and redelivered results by the agents' own accounts, not by the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use stafette_agents::scripted::{Event as LedgerEvent, read_ledger};

use super::repository::git;
use crate::exit::Failure;

/// The result of comparing the accounts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Accounts {
    /// Results that were acknowledged to an agent but are not recorded.
    pub(super) lost: usize,
    /// Results recorded twice, and commits made twice for one turn.
    pub(super) repeated: usize,
    /// Turns delivered again, under the same key.
    pub(super) redelivered: usize,
    /// Results that were acknowledged to an agent.
    pub(super) acknowledged: usize,
}

pub(super) async fn compare(folder: &Path, events: &[Value]) -> Result<Accounts, Failure> {
    let mut started: BTreeMap<String, usize> = BTreeMap::new();
    let mut acknowledged: BTreeSet<String> = BTreeSet::new();
    let mut committed: BTreeMap<String, usize> = BTreeMap::new();
    for agent in ["planner", "builder", "reviewer", "fixer"] {
        let path = folder.join(".stafette/ledger").join(agent).with_extension("jsonl");
        if !path.exists() {
            continue;
        }
        let entries = read_ledger(&path).map_err(|error| {
            Failure::failed(format!("Cannot read {}", path.display()))
                .because(&error)
                .fix("run the demonstration again; it starts in a new folder")
        })?;
        for entry in entries {
            let key = entry.key.to_string();
            match entry.event {
                LedgerEvent::Started => *started.entry(key).or_default() += 1,
                LedgerEvent::Committed => *committed.entry(key).or_default() += 1,
                LedgerEvent::Acknowledged => drop(acknowledged.insert(key)),
                LedgerEvent::Finished => {}
            }
        }
    }
    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event["event"] == "turn_finished") {
        let key = event["turn"].as_str().unwrap_or_default().to_owned();
        *recorded.entry(key).or_default() += 1;
    }
    // The git history decides what was committed.
    let log = git(folder, &["log", "--format=%(trailers:key=Stafette-Turn,valueonly,separator=)"])
        .await?;
    let mut in_history: BTreeMap<String, usize> = BTreeMap::new();
    for key in log.lines().map(str::trim).filter(|key| !key.is_empty()) {
        *in_history.entry(key.to_owned()).or_default() += 1;
    }
    let unkept = acknowledged.iter().filter(|key| !recorded.contains_key(*key)).count();
    let uncommitted = committed.keys().filter(|key| !in_history.contains_key(*key)).count();
    let twice = |counts: &BTreeMap<String, usize>| counts.values().map(|n| n - 1).sum::<usize>();
    Ok(Accounts {
        lost: unkept + uncommitted,
        repeated: twice(&recorded) + twice(&committed).max(twice(&in_history)),
        redelivered: twice(&started),
        acknowledged: acknowledged.len(),
    })
}
