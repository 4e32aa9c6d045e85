//! Locks on shared resources of the project: paths, globs and other names.
//!
//! As with runs, data flows one way: [`Locks::decide`] determines the events, the store keeps them
//! under the version that they were decided for, and [`Locks::apply`] applies them.
//!
//! Invariants:
//! - Two locks of different holders never conflict.
//! - Each lock has a larger fencing number than all locks before it, for ever.
//! - A lock ends with its lease, and every waiter has a deadline: nothing is held or waited for
//!   without an end, and [`Locks::deadline`] is the next of these ends.
//! - First come, first served among conflicting claims. A claimant goes first only if it already
//!   holds something that those before it wait for, because they would otherwise wait for each
//!   other.
//! - There is no deadlock among waiters: the youngest waiter of a cycle is refused.

mod check;
mod deadlock;
mod decide;
mod pattern;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_model::as_text;
use thiserror::Error;

use crate::{AgentName, HandoffId, Millis, RunId, Time, TurnKey};

pub use crate::workflow::locks::{LockRules, OnConflict};
pub use check::Conflict;
pub use deadlock::Link;
pub use pattern::{BadPattern, LONGEST_PATTERN, Pattern};

/// The maximum number of locks and waiters together.
pub const MOST_LOCKS: usize = 512;

/// The maximum number of patterns in one lock.
pub const MOST_PATTERNS: usize = 32;

/// The longest lease; a holder that needs more time renews it.
pub const LONGEST_LEASE: Millis = Millis::hours(24);

/// The longest time to wait for a lock.
pub const LONGEST_WAIT: Millis = Millis::hours(24);

/// The maximum length of a reason and of a holder's name, in bytes.
pub const LONGEST_TEXT: usize = 1024;

/// The id of a lock or of a waiter, such as `l7`. A waiter that gets its lock keeps the id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct LockId(pub u64);

/// The text is not a valid lock id.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a lock: they are named l1, l2, …")]
pub struct NotALock {
    /// The text that could not be parsed.
    pub text: String,
}

impl fmt::Display for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "l{}", self.0)
    }
}

impl FromStr for LockId {
    type Err = NotALock;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix('l').and_then(|digits| digits.parse().ok());
        digits.map(LockId).ok_or_else(|| NotALock { text: text.to_owned() })
    }
}

as_text!(LockId, NotALock);

/// A kind of party that can hold a lock.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Who {
    /// An agent of a run.
    Session {
        /// The id of the run.
        run: RunId,
        /// The name of the agent.
        agent: AgentName,
    },
    /// An external program with a token.
    Visitor {
        /// The name on the program's token.
        name: String,
    },
    /// A person, by name.
    Person {
        /// The name of the person.
        name: String,
    },
}

/// The holder of a lock, down to the command: two commands of one person exclude each other.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct Holder {
    /// The party that holds the lock.
    #[serde(flatten)]
    pub who: Who,
    /// The command that the lock is held for; empty if it covers everything the party does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seat: String,
}

impl Holder {
    /// Creates a holder for a person, not bound to a command.
    #[must_use]
    pub fn person(name: &str) -> Self {
        Holder { who: Who::Person { name: name.to_owned() }, seat: String::new() }
    }

    /// Creates a holder for an external program with a token.
    #[must_use]
    pub fn visitor(name: &str) -> Self {
        Holder { who: Who::Visitor { name: name.to_owned() }, seat: String::new() }
    }

    /// Creates a holder for an agent of a run.
    #[must_use]
    pub fn session(run: RunId, agent: AgentName) -> Self {
        Holder { who: Who::Session { run, agent }, seat: String::new() }
    }

    /// Returns the same party bound to the command `seat`.
    #[must_use]
    pub fn at(self, seat: &str) -> Self {
        Holder { seat: seat.to_owned(), ..self }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Who::Session { run, agent } => write!(f, "{agent} of {}", run.short())?,
            Who::Visitor { name } | Who::Person { name } => f.write_str(name)?,
        }
        match self.seat.as_str() {
            "" => Ok(()),
            seat => write!(f, " ({seat})"),
        }
    }
}

/// The sharing mode of a lock.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only one holder, for writing.
    #[default]
    Exclusive,
    /// Any number of holders, for reading.
    Shared,
}

/// A request for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The party that requests the lock.
    pub holder: Holder,
    /// The agent's turn that the lock is for; the lock ends with the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnKey>,
    /// The patterns to lock, all or none.
    pub patterns: Vec<Pattern>,
    /// Whether the lock is exclusive or shared.
    #[serde(default)]
    pub mode: Mode,
    /// The duration of the lock unless it is renewed.
    pub lease: Millis,
    /// The purpose, for other people to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Claim {
    /// True if the two claims cannot both be granted.
    pub fn conflicts(&self, other: &Claim) -> bool {
        let apart = self.holder == other.holder
            || (self.mode == Mode::Shared && other.mode == Mode::Shared);
        !apart && self.patterns.iter().any(|a| other.patterns.iter().any(|b| a.overlaps(b)))
    }

    /// True if `other` is the same claim, sent again.
    fn repeats(&self, other: &Claim) -> bool {
        (&self.holder, &self.patterns, self.mode) == (&other.holder, &other.patterns, other.mode)
    }
}

/// A lock that is held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lock {
    pub id: LockId,
    /// The fencing number: a writer presents it, and a number smaller than the last one is refused.
    pub fence: u64,
    pub claim: Claim,
    pub taken_at: Time,
    pub expires_at: Time,
}

/// A claim that waits for conflicting locks to end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// The id of the waiter, and of its lock once granted.
    pub id: LockId,
    pub claim: Claim,
    pub since: Time,
    pub until: Time,
}

/// A request to the locks.
#[derive(Clone, PartialEq, Debug)]
pub enum Ask {
    /// Requests a lock on some patterns.
    Take {
        claim: Claim,
        /// The action to take if another holder has it.
        on_conflict: OnConflict,
        /// The maximum time to wait for it.
        wait: Millis,
    },
    /// Extends the lease of a held lock.
    Renew {
        id: LockId,
        /// The holder that asks; must own the lock.
        by: Holder,
        /// The fencing number, if it is known.
        fence: Option<u64>,
        /// The new lease, counted from now; `None` uses the duration of the original claim.
        lease: Option<Millis>,
    },
    /// Releases a lock or withdraws a waiter.
    Release {
        /// The lock or waiter to end.
        id: LockId,
        /// The holder that asks; must own the lock or waiter.
        by: Holder,
    },
    /// Takes a lock from its holder. The caller checks who may do this.
    TakeOver {
        id: LockId,
        by: Holder,
        /// The reason for the takeover; must not be empty.
        why: String,
    },
    /// Ends everything that a run holds, except for the listed handoffs and attempts.
    Clear {
        run: RunId,
        /// The handoffs and attempts that continue.
        keep: Vec<(HandoffId, u32)>,
    },
    /// Reports that time has passed.
    Tick,
}

/// The way in which a lock ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ended {
    /// The holder released it.
    Released,
    /// The lease expired without renewal.
    Expired,
    /// The holder's turn or run has ended.
    HolderGone,
    /// Another holder took it over.
    TakenOver {
        /// The holder that took it.
        by: Holder,
        /// The reason that the new holder gave.
        why: String,
    },
}

/// The way in which a wait ended without a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GaveUp {
    /// The waiter withdrew its claim.
    Withdrawn,
    /// The deadline of the wait passed.
    Late,
    /// The waiter's turn or run has ended.
    HolderGone,
    /// The waiter closed a cycle of waiters.
    Deadlock,
}

/// A change to the locks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LockEvent {
    LockTaken {
        lock: Lock,
    },
    /// A claim started to wait.
    LockQueued {
        waiter: Waiter,
    },
    /// A lease was extended.
    LockRenewed {
        id: LockId,
        expires_at: Time,
    },
    /// A lock ended, in one of several ways.
    LockEnded {
        id: LockId,
        #[serde(flatten)]
        ended: Ended,
    },
    /// A claim stopped waiting without a lock.
    WaitEnded {
        id: LockId,
        why: GaveUp,
    },
    /// Waiters waited for each other; the youngest of them is refused.
    DeadlockFound {
        /// The waiters of the cycle, each with the holder it waits for.
        circle: Vec<Link>,
        refused: LockId,
    },
}

impl LockEvent {
    /// Returns the event's name as it is stored.
    pub fn name(&self) -> &'static str {
        match self {
            LockEvent::LockTaken { .. } => "lock_taken",
            LockEvent::LockQueued { .. } => "lock_queued",
            LockEvent::LockRenewed { .. } => "lock_renewed",
            LockEvent::LockEnded { .. } => "lock_ended",
            LockEvent::WaitEnded { .. } => "wait_ended",
            LockEvent::DeadlockFound { .. } => "deadlock_found",
        }
    }

    /// Returns the lock or waiter that the event is about.
    pub fn id(&self) -> LockId {
        match self {
            LockEvent::LockTaken { lock } => lock.id,
            LockEvent::LockQueued { waiter } => waiter.id,
            LockEvent::LockRenewed { id, .. }
            | LockEvent::LockEnded { id, .. }
            | LockEvent::WaitEnded { id, .. } => *id,
            LockEvent::DeadlockFound { refused, .. } => *refused,
        }
    }
}

/// A successful response to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockOutcome {
    Held(Lock),
    /// The claim waits for conflicting locks.
    Waiting(Waiter),
    /// The request is done, and there is nothing more to report.
    Done,
}

/// A refused request. It changed nothing.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refusal {
    #[error("{} is locked by {} until {} ({})", lock.claim.what(), lock.claim.holder, lock.expires_at, lock.id)]
    Locked { lock: Box<Lock> },
    #[error("{} waits for {} already ({})", waiter.claim.holder, waiter.claim.what(), waiter.id)]
    Awaited { waiter: Box<Waiter> },
    #[error("{id} did not come free in time")]
    Late { id: LockId },
    #[error("DEADLOCK: {}", deadlock::told(circle))]
    Deadlock { circle: Vec<Link> },
    /// The lock is no longer held: its lease expired, or another holder took it over.
    #[error("{id} is not held any more")]
    Lost { id: LockId },
    #[error("{id} belongs to {holder}")]
    NotYours { id: LockId, holder: Holder },
    #[error("taking a lock from its holder needs a reason")]
    NoReason,
    /// The request exceeds a limit.
    #[error("{rule}")]
    Limit { rule: String },
}

impl Claim {
    /// Returns the patterns as a phrase.
    pub fn what(&self) -> String {
        let all: Vec<&str> = self.patterns.iter().map(Pattern::as_str).collect();
        all.join(", ")
    }
}

/// The events that follow from a request, and the response to send once they are stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// The events to store and apply.
    pub events: Vec<LockEvent>,
    /// The response for the caller.
    pub answer: Result<LockOutcome, Refusal>,
}

/// All locks of a project.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Locks {
    /// The number of events applied so far.
    pub version: u64,
    /// The last fencing number that was given out.
    pub fence: u64,
    pub held: BTreeMap<LockId, Lock>,
    /// The waiters; a smaller id came earlier.
    pub waiting: BTreeMap<LockId, Waiter>,
}

impl Locks {
    /// Applies an event to the state.
    pub fn apply(&mut self, event: &LockEvent) {
        self.version += 1;
        match event {
            LockEvent::LockTaken { lock } => {
                self.waiting.remove(&lock.id);
                self.fence = self.fence.max(lock.fence);
                self.held.insert(lock.id, lock.clone());
            }
            LockEvent::LockQueued { waiter } => {
                self.waiting.insert(waiter.id, waiter.clone());
            }
            LockEvent::LockRenewed { id, expires_at } => {
                if let Some(lock) = self.held.get_mut(id) {
                    lock.expires_at = *expires_at;
                }
            }
            LockEvent::LockEnded { id, .. } => drop(self.held.remove(id)),
            LockEvent::WaitEnded { id, .. } => drop(self.waiting.remove(id)),
            LockEvent::DeadlockFound { .. } => {}
        }
    }

    /// Returns the next time at which a lock or a wait expires.
    pub fn deadline(&self) -> Option<Time> {
        let held = self.held.values().map(|lock| lock.expires_at);
        held.chain(self.waiting.values().map(|waiter| waiter.until)).min()
    }
}
