//! Checks whether a holder may write a path.

use thiserror::Error;

use super::{Holder, Lock, LockId, Locks};
use crate::Time;

/// A write that is not allowed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Conflict {
    #[error("{path} is locked by {holder} until {until} ({id})")]
    Locked { path: String, holder: Holder, id: LockId, until: Time },
    /// The lock with that number is no longer held, or never was the writer's.
    #[error("the lock with the fencing number {fence} is not held any more")]
    Lost { fence: u64 },
}

impl Locks {
    /// Checks that `holder` may write all of these paths: no other holder has a lock on any of
    /// them, and the lock with the fencing number, if one is presented, is still theirs.
    pub fn may_write<'p>(
        &self,
        now: Time,
        holder: &Holder,
        paths: impl IntoIterator<Item = &'p str>,
        fence: Option<u64>,
    ) -> Result<(), Conflict> {
        let shown = match fence {
            None => None,
            Some(fence) => {
                let lock = self.fenced(now, fence).filter(|it| it.claim.holder.who == holder.who);
                Some(lock.ok_or(Conflict::Lost { fence })?)
            }
        };
        let others: Vec<&Lock> = self
            .held
            .values()
            .filter(|lock| lock.expires_at > now && lock.claim.holder != *holder)
            .filter(|lock| shown.is_none_or(|shown| shown.claim.holder != lock.claim.holder))
            .collect();
        for path in paths {
            let covers = |lock: &&&Lock| lock.claim.patterns.iter().any(|it| it.covers(path));
            if let Some(lock) = others.iter().find(covers) {
                return Err(Conflict::Locked {
                    path: path.to_owned(),
                    holder: lock.claim.holder.clone(),
                    id: lock.id,
                    until: lock.expires_at,
                });
            }
        }
        Ok(())
    }

    fn fenced(&self, now: Time, fence: u64) -> Option<&Lock> {
        self.held.values().find(|lock| lock.fence == fence && lock.expires_at > now)
    }
}
