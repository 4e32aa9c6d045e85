//! Locks the files of a set while it is applied or rolled back: files locked by another holder are
//! not touched, and no other holder gets a lock on them in between.

use std::collections::BTreeSet;
use std::time::Duration;

use stafette_core::Millis;
use stafette_core::change::Change;
use stafette_core::lock::{
    Ask, Claim, Holder, LONGEST_PATTERN, LockEvent, LockId, MOST_PATTERNS, Mode, OnConflict,
    Pattern, Refusal,
};

use super::ChangeSets;
use crate::locks::LockManager;
use crate::{EngineError, clock};

/// The lease of a lock: what a process that dies leaves locked is free after this time.
const LEASE: Millis = Millis::seconds(60);

/// The interval at which a lease is renewed during the work.
const RENEWAL: Duration = Duration::from_secs(20);

/// Locks on files. If they are not released, they expire with their lease.
#[derive(Debug)]
#[must_use]
pub(crate) struct Hold {
    desk: LockManager,
    holder: Holder,
    taken: Vec<LockId>,
    renewal: tokio::task::JoinHandle<()>,
}

impl Hold {
    /// Releases the locks on the files.
    pub(crate) async fn release(mut self) {
        for id in std::mem::take(&mut self.taken) {
            give_back(&self.desk, id, &self.holder).await;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl ChangeSets<'_> {
    /// Locks all files of these sets, or none.
    pub(crate) async fn hold<'c>(
        self,
        holder: &Holder,
        sets: impl IntoIterator<Item = &'c Change>,
    ) -> Result<Hold, EngineError> {
        let (mut names, mut patterns) = (Vec::new(), BTreeSet::new());
        for set in sets {
            names.push(set.id.to_string());
            for path in set.paths() {
                patterns.insert(pattern(path.as_str())?);
            }
        }
        let patterns: Vec<Pattern> = patterns.into_iter().collect();
        let reason = format!("{} is being applied or undone", names.join(", "));
        let desk = self.engine.shared().locks.clone();
        let mut taken = Vec::new();
        for part in patterns.chunks(MOST_PATTERNS) {
            let claim = Claim {
                holder: holder.clone(),
                turn: None,
                patterns: part.to_vec(),
                mode: Mode::Exclusive,
                lease: LEASE,
                reason: reason.chars().take(200).collect(),
            };
            match take(&desk, claim).await {
                // Locks that the party held before stay with it afterwards.
                Ok(id) => taken.extend(id),
                Err(error) => {
                    for id in taken {
                        give_back(&desk, id, holder).await;
                    }
                    return Err(error);
                }
            }
        }
        let renewal = tokio::spawn(renew(desk.clone(), holder.clone(), taken.clone()));
        Ok(Hold { desk, holder: holder.clone(), taken, renewal })
    }
}

/// Takes a lock. Returns its id, or `None` when the party held it before.
async fn take(desk: &LockManager, claim: Claim) -> Result<Option<LockId>, EngineError> {
    let reason = claim.reason.clone();
    let ask = Ask::Take { claim, on_conflict: OnConflict::Skip, wait: Millis(0) };
    // Another daemon may have granted locks since.
    desk.refreshed().await?;
    let (events, answer) = desk.ask(clock::now, ask).await?;
    let (id, is_left) = match answer.map_err(|refusal| EngineError::Lock { refusal })? {
        stafette_core::lock::LockOutcome::Held(lock) => (lock.id, lock.claim.reason == reason),
        _ => return Ok(None),
    };
    let is_new =
        |event: &LockEvent| matches!(event, LockEvent::LockTaken { lock } if lock.id == id);
    // The same reason: an earlier process took it for the same work, and did not come to release it.
    let is_ours = is_left || events.iter().any(is_new);
    Ok(is_ours.then_some(id))
}

async fn give_back(desk: &LockManager, id: LockId, by: &Holder) {
    let given = desk.ask(clock::now, Ask::Release { id, by: by.clone() }).await;
    // A refusal means that another holder took it, or that its lease expired.
    if let Err(error) = given {
        tracing::warn!(%id, %error, "what was held for a change is free when its lease is over");
    }
}

async fn renew(desk: LockManager, by: Holder, ids: Vec<LockId>) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        for id in ids.iter().copied() {
            let ask = Ask::Renew { id, by: by.clone(), fence: None, lease: None };
            let renewed = desk.ask(clock::now, ask).await;
            match renewed.map(|(_, answer)| answer) {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => tracing::warn!(%id, %why, "a file of a change is no longer held"),
                Err(error) => tracing::warn!(%id, %error, "a lease is not renewed yet"),
            }
        }
    }
}

/// The pattern to lock for a path: the path itself, or the folder around it when the path is too
/// long for a lock.
fn pattern(path: &str) -> Result<Pattern, EngineError> {
    let mut part = path;
    while part.len() > LONGEST_PATTERN {
        part = part.rsplit_once('/').map_or("", |(folder, _)| folder);
    }
    let bad = |error: stafette_core::lock::BadPattern| EngineError::Lock {
        refusal: Refusal::Limit { rule: error.to_string() },
    };
    part.parse().map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_10_a_path_too_long_for_a_lock_is_held_by_its_folder() {
        let long = format!("{}/{}/{}", "a".repeat(200), "b".repeat(200), "c".repeat(200));
        let held = pattern(&long).expect("a pattern");
        assert!(held.as_str().len() <= LONGEST_PATTERN && held.as_str().ends_with('b'));
        assert_eq!(pattern("src/a.rs").expect("a pattern").as_str(), "src/a.rs");
    }
}
