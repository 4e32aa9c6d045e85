//! Finds waiters that wait for each other.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Holder, LockId, Locks, Waiter};

/// One waiter of a cycle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The id of the waiter.
    pub id: LockId,
    /// The holder that waits.
    pub holder: Holder,
    /// The patterns that it waits for, as a phrase.
    pub wants: String,
    /// The holder that it waits for.
    pub held_by: Holder,
}

/// Describes a cycle in a sentence.
pub(super) fn told(circle: &[Link]) -> String {
    let links = circle
        .iter()
        .map(|link| format!("{} waits for {} behind {}", link.holder, link.wants, link.held_by));
    links.collect::<Vec<_>>().join("; ")
}

impl Locks {
    /// Returns a cycle of waiters, if there is one, and the youngest waiter in it.
    pub(super) fn circle(&self) -> Option<(Vec<Link>, LockId)> {
        // The usual case: there are no waiters.
        if self.waiting.is_empty() {
            return None;
        }
        let mut done = BTreeSet::new();
        for id in self.waiting.keys() {
            let mut path = Vec::new();
            if let Some(circle) = self.search(*id, &mut path, &mut done) {
                let refused = circle.iter().map(|link| link.id).max()?;
                return Some((circle, refused));
            }
        }
        None
    }

    /// Follows the waits from one waiter; a waiter that is reached again closes a cycle.
    fn search(
        &self,
        id: LockId,
        path: &mut Vec<Link>,
        done: &mut BTreeSet<LockId>,
    ) -> Option<Vec<Link>> {
        if done.contains(&id) {
            return None;
        }
        let waiter = self.waiting.get(&id)?;
        for held_by in self.in_the_way(waiter) {
            let link = Link {
                id,
                holder: waiter.claim.holder.clone(),
                wants: waiter.claim.what(),
                held_by: held_by.clone(),
            };
            path.push(link);
            let theirs = self.waiting.values().filter(|other| other.claim.holder == held_by);
            for next in theirs {
                if let Some(from) = path.iter().position(|link| link.id == next.id) {
                    return Some(path[from..].to_vec());
                }
                if let Some(circle) = self.search(next.id, path, done) {
                    return Some(circle);
                }
            }
            path.pop();
        }
        done.insert(id);
        None
    }

    /// Returns the holders that a waiter waits for.
    fn in_the_way(&self, waiter: &Waiter) -> BTreeSet<Holder> {
        let held = self.held.values().map(|lock| &lock.claim);
        let held = held.filter(|claim| claim.conflicts(&waiter.claim));
        let mut holders: BTreeSet<Holder> = held.map(|claim| claim.holder.clone()).collect();
        let before = self.waiting.range(..waiter.id).map(|(_, other)| other);
        for other in before.filter(|other| other.claim.conflicts(&waiter.claim)) {
            if !self.waits_for(other, &waiter.claim.holder) {
                holders.insert(other.claim.holder.clone());
            }
        }
        holders
    }

    /// True if a waiter waits for `holder`, directly or through others.
    pub(super) fn waits_for(&self, waiter: &Waiter, holder: &Holder) -> bool {
        let mut seen = BTreeSet::from([waiter.id]);
        let mut open = vec![waiter];
        while let Some(waiter) = open.pop() {
            let held = self.held.values().map(|lock| &lock.claim);
            let before = self.waiting.range(..waiter.id).map(|(_, other)| &other.claim);
            for claim in held.chain(before).filter(|claim| claim.conflicts(&waiter.claim)) {
                if claim.holder == *holder {
                    return true;
                }
                let theirs = self.waiting.values().filter(|it| it.claim.holder == claim.holder);
                open.extend(theirs.filter(|it| seen.insert(it.id)));
            }
        }
        false
    }
}
