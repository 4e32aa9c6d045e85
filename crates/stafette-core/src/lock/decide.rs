//! Decides requests to the locks.

use super::{
    Ask, Claim, Decision, Ended, GaveUp, Holder, LONGEST_LEASE, LONGEST_TEXT, LONGEST_WAIT, Lock,
    LockEvent, LockId, LockOutcome, Locks, MOST_LOCKS, MOST_PATTERNS, OnConflict, Refusal, Waiter,
    Who,
};
use crate::{HandoffId, Millis, RunId, Time};

impl Locks {
    /// Returns the events that follow from a request. Changes nothing and cannot fail: a request
    /// that cannot be granted is refused.
    pub fn decide(&self, now: Time, ask: Ask) -> Decision {
        let mut draft = Draft { now, locks: self.clone(), events: Vec::new() };
        draft.expire();
        // Those already waiting come before the new request.
        draft.settle();
        let answer = match ask {
            Ask::Take { claim, on_conflict, wait } => draft.take(claim, on_conflict, wait),
            Ask::Renew { id, by, fence, lease } => draft.renew(id, &by, fence, lease),
            Ask::Release { id, by } => draft.release(id, &by),
            Ask::TakeOver { id, by, why } => draft.take_over(id, by, why),
            Ask::Clear { run, keep } => {
                draft.clear(run, &keep);
                Ok(LockOutcome::Done)
            }
            Ask::Tick => Ok(LockOutcome::Done),
        };
        draft.settle();
        let answer = draft.outcome(answer);
        Decision { events: draft.events, answer }
    }

    /// Returns the first conflicting lock of another holder.
    fn holds_against(&self, claim: &Claim) -> Option<&Lock> {
        self.held.values().find(|lock| lock.claim.conflicts(claim))
    }

    /// Returns the first conflicting waiter before `place` that does not itself wait for the
    /// claimant.
    pub(super) fn waits_before(&self, claim: &Claim, place: LockId) -> Option<&Waiter> {
        self.waiting
            .range(..place)
            .map(|(_, waiter)| waiter)
            .find(|waiter| waiter.claim.conflicts(claim) && !self.waits_for(waiter, &claim.holder))
    }
}

struct Draft {
    now: Time,
    locks: Locks,
    events: Vec<LockEvent>,
}

impl Draft {
    fn record(&mut self, event: LockEvent) {
        self.locks.apply(&event);
        self.events.push(event);
    }

    fn next_id(&self) -> LockId {
        LockId(self.locks.version + 1)
    }

    fn expire(&mut self) {
        let now = self.now;
        let locks = self.locks.held.values().filter(|lock| lock.expires_at <= now);
        let locks: Vec<LockId> = locks.map(|lock| lock.id).collect();
        for id in locks {
            self.record(LockEvent::LockEnded { id, ended: Ended::Expired });
        }
        let waiters = self.locks.waiting.values().filter(|waiter| waiter.until <= now);
        let waiters: Vec<LockId> = waiters.map(|waiter| waiter.id).collect();
        for id in waiters {
            self.record(LockEvent::WaitEnded { id, why: GaveUp::Late });
        }
    }

    /// Grants free resources to waiters, and refuses those that would wait for ever.
    fn settle(&mut self) {
        loop {
            let next = self.locks.waiting.values().find(|waiter| {
                self.locks.holds_against(&waiter.claim).is_none()
                    && self.locks.waits_before(&waiter.claim, waiter.id).is_none()
            });
            if let Some(waiter) = next {
                let (id, claim) = (waiter.id, waiter.claim.clone());
                self.give(id, claim);
            } else if let Some((circle, refused)) = self.locks.circle() {
                self.record(LockEvent::DeadlockFound { circle, refused });
                self.record(LockEvent::WaitEnded { id: refused, why: GaveUp::Deadlock });
            } else {
                return;
            }
        }
    }

    fn give(&mut self, id: LockId, claim: Claim) -> LockId {
        let lock = Lock {
            id,
            fence: self.locks.fence + 1,
            taken_at: self.now,
            expires_at: self.now + claim.lease,
            claim,
        };
        self.record(LockEvent::LockTaken { lock });
        id
    }

    fn take(
        &mut self,
        claim: Claim,
        on_conflict: OnConflict,
        wait: Millis,
    ) -> Result<LockOutcome, Refusal> {
        check(&claim)?;
        // A repeated claim, perhaps because the response got lost: one claim has one lock.
        if let Some(lock) = self.locks.held.values().find(|lock| lock.claim.repeats(&claim)) {
            let id = lock.id;
            let expires_at = lock.expires_at.max(self.now + claim.lease);
            self.record(LockEvent::LockRenewed { id, expires_at });
            return self.found(id);
        }
        if let Some(waiter) = self.locks.waiting.values().find(|it| it.claim.repeats(&claim)) {
            return Ok(LockOutcome::Waiting(waiter.clone()));
        }
        if self.locks.held.len() + self.locks.waiting.len() >= MOST_LOCKS {
            return limit(format!("there are {MOST_LOCKS} locks and waiters already"));
        }
        let id = self.next_id();
        let lock = self.locks.holds_against(&claim);
        let waiter = self.locks.waits_before(&claim, id);
        let refusal = match (lock, waiter) {
            (None, None) => {
                let id = self.give(id, claim);
                return self.found(id);
            }
            (Some(lock), _) => Refusal::Locked { lock: Box::new(lock.clone()) },
            (None, Some(waiter)) => Refusal::Awaited { waiter: Box::new(waiter.clone()) },
        };
        match on_conflict {
            OnConflict::Wait if wait > Millis(0) => {
                let until = self.now + wait.min(LONGEST_WAIT);
                let waiter = Waiter { id, claim, since: self.now, until };
                self.record(LockEvent::LockQueued { waiter });
                self.found(id)
            }
            OnConflict::Wait | OnConflict::Skip => Err(refusal),
            OnConflict::TakeOver => {
                if claim.reason.trim().is_empty() {
                    return Err(Refusal::NoReason);
                }
                self.evict(&claim);
                let id = self.next_id();
                let id = self.give(id, claim);
                self.found(id)
            }
        }
    }

    /// Ends all locks of others that conflict with a claim; its reason is recorded.
    fn evict(&mut self, claim: &Claim) {
        let theirs = self.locks.held.values().filter(|lock| lock.claim.conflicts(claim));
        for id in theirs.map(|lock| lock.id).collect::<Vec<_>>() {
            self.take_away(id, claim);
        }
    }

    fn take_away(&mut self, id: LockId, claim: &Claim) {
        let (by, why) = (claim.holder.clone(), claim.reason.clone());
        self.record(LockEvent::LockEnded { id, ended: Ended::TakenOver { by, why } });
    }

    fn renew(
        &mut self,
        id: LockId,
        by: &Holder,
        fence: Option<u64>,
        lease: Option<Millis>,
    ) -> Result<LockOutcome, Refusal> {
        let Some(lock) = self.locks.held.get(&id) else { return Err(Refusal::Lost { id }) };
        owned(id, &lock.claim, by)?;
        if fence.is_some_and(|fence| fence != lock.fence) {
            return Err(Refusal::Lost { id });
        }
        let lease = lease.unwrap_or(lock.claim.lease);
        check_lease(lease)?;
        let expires_at = self.now + lease;
        self.record(LockEvent::LockRenewed { id, expires_at });
        self.found(id)
    }

    fn release(&mut self, id: LockId, by: &Holder) -> Result<LockOutcome, Refusal> {
        if let Some(waiter) = self.locks.waiting.get(&id) {
            owned(id, &waiter.claim, by)?;
            self.record(LockEvent::WaitEnded { id, why: GaveUp::Withdrawn });
            return Ok(LockOutcome::Done);
        }
        let Some(lock) = self.locks.held.get(&id) else { return Err(Refusal::Lost { id }) };
        owned(id, &lock.claim, by)?;
        self.record(LockEvent::LockEnded { id, ended: Ended::Released });
        Ok(LockOutcome::Done)
    }

    fn take_over(&mut self, id: LockId, by: Holder, why: String) -> Result<LockOutcome, Refusal> {
        let Some(lock) = self.locks.held.get(&id) else { return Err(Refusal::Lost { id }) };
        if why.trim().is_empty() {
            return Err(Refusal::NoReason);
        }
        let claim = Claim { holder: by, turn: None, reason: why, ..lock.claim.clone() };
        check(&claim)?;
        self.take_away(id, &claim);
        // The previous holder may have covered more of it with another lock.
        self.evict(&claim);
        let id = self.next_id();
        let id = self.give(id, claim);
        self.found(id)
    }

    fn clear(&mut self, run: RunId, keep: &[(HandoffId, u32)]) {
        let gone = |claim: &Claim| {
            let ours = matches!(&claim.holder.who, Who::Session { run: of, .. } if *of == run);
            let goes_on =
                claim.turn.is_some_and(|turn| keep.contains(&(turn.handoff, turn.attempt)));
            ours && !goes_on
        };
        let waiters = self.locks.waiting.values().filter(|waiter| gone(&waiter.claim));
        for id in waiters.map(|waiter| waiter.id).collect::<Vec<_>>() {
            self.record(LockEvent::WaitEnded { id, why: GaveUp::HolderGone });
        }
        let locks = self.locks.held.values().filter(|lock| gone(&lock.claim));
        for id in locks.map(|lock| lock.id).collect::<Vec<_>>() {
            self.record(LockEvent::LockEnded { id, ended: Ended::HolderGone });
        }
    }

    fn found(&self, id: LockId) -> Result<LockOutcome, Refusal> {
        match (self.locks.held.get(&id), self.locks.waiting.get(&id)) {
            (Some(lock), _) => Ok(LockOutcome::Held(lock.clone())),
            (None, Some(waiter)) => Ok(LockOutcome::Waiting(waiter.clone())),
            (None, None) => Err(Refusal::Lost { id }),
        }
    }

    /// Returns the response after everything has settled: a waiter may have closed a cycle.
    fn outcome(&self, answer: Result<LockOutcome, Refusal>) -> Result<LockOutcome, Refusal> {
        let Ok(LockOutcome::Waiting(waiter)) = &answer else { return answer };
        let circle = self.events.iter().find_map(|event| match event {
            LockEvent::DeadlockFound { circle, refused } if *refused == waiter.id => Some(circle),
            _ => None,
        });
        match circle {
            Some(circle) => Err(Refusal::Deadlock { circle: circle.clone() }),
            None => self.found(waiter.id),
        }
    }
}

/// Checks ownership by party only, so that a holder can release its lock from any command.
fn owned(id: LockId, claim: &Claim, by: &Holder) -> Result<(), Refusal> {
    match claim.holder.who == by.who {
        true => Ok(()),
        false => Err(Refusal::NotYours { id, holder: claim.holder.clone() }),
    }
}

fn check(claim: &Claim) -> Result<(), Refusal> {
    let name = match &claim.holder.who {
        Who::Session { agent, .. } => agent.as_str(),
        Who::Visitor { name } | Who::Person { name } => name,
    };
    if claim.patterns.is_empty() || claim.patterns.len() > MOST_PATTERNS {
        return limit(format!("a lock is on 1 to {MOST_PATTERNS} names or globs"));
    }
    if name.is_empty() || name.len() > LONGEST_TEXT || claim.holder.seat.len() > LONGEST_TEXT {
        return limit(format!("a holder's name has 1 to {LONGEST_TEXT} bytes"));
    }
    if claim.reason.len() > LONGEST_TEXT {
        return limit(format!("a reason has at most {LONGEST_TEXT} bytes"));
    }
    check_lease(claim.lease)
}

fn check_lease(lease: Millis) -> Result<(), Refusal> {
    match lease > Millis(0) && lease <= LONGEST_LEASE {
        true => Ok(()),
        false => limit(format!("a lease lasts from 1ms to {LONGEST_LEASE}, and can be renewed")),
    }
}

fn limit<T>(rule: String) -> Result<T, Refusal> {
    Err(Refusal::Limit { rule })
}
