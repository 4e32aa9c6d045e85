//! Whether somebody may write.

use thiserror::Error;

use super::{Holder, Lock, LockId, Locks, Mode};
use crate::Time;

/// Something must not be written.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Conflict {
    /// Somebody else has it.
    #[error("{path} is locked by {holder} until {until} ({id})")]
    Locked {
        /// What was to be written.
        path: String,
        /// Whose lock is in the way.
        holder: Holder,
        /// Which lock.
        id: LockId,
        /// How long at most.
        until: Time,
    },
    /// The lock with that number is no longer held, or never was the writer's.
    #[error("the lock with the fencing number {fence} is not held any more")]
    Lost {
        /// The number.
        fence: u64,
    },
    /// The lock with that number is on something else, or for reading only.
    #[error("the lock with the fencing number {fence} does not allow writing {path}")]
    NotCovered {
        /// What was to be written.
        path: String,
        /// The number.
        fence: u64,
    },
}

impl Locks {
    /// Whether `path` may be written with the lock that has this fencing number: it is held, its
    /// lease is not over, and it is on that path.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self, now: Time, path: &str, fence: u64) -> Result<&Lock, Conflict> {
        let lock = self.fenced(now, fence).ok_or(Conflict::Lost { fence })?;
        let covers = lock.claim.patterns.iter().any(|pattern| pattern.covers(path));
        match covers && lock.claim.mode == Mode::Exclusive {
            true => Ok(lock),
            false => Err(Conflict::NotCovered { path: path.to_owned(), fence }),
        }
    }

    /// Whether `holder` may write all of these: nobody else has a lock on any of them, and the lock
    /// with the fencing number, when one is shown, is still theirs.
    ///
    /// # Errors
    /// The first thing in the way.
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
