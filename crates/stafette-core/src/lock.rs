//! Locks on what agents and people share: paths, globs and other names of the project.
//!
//! As with runs, data flows one way: [`Locks::decide`] says what becomes true, the store keeps it
//! under the version that it was decided for, and [`Locks::apply`] makes it so.
//!
//! Invariants:
//! - Two locks of different holders never conflict.
//! - Each lock that is given has a larger fencing number than all before it, for ever.
//! - A lock ends with its lease, and every waiter has a deadline: nothing is held or waited for
//!   without an end, and [`Locks::deadline`] is the next of these ends.
//! - First come, first served among those who conflict. Only who already holds what those before
//!   it wait for goes first, because they would otherwise wait for each other.
//! - There is no deadlock among waiters: the youngest of a circle is refused.

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
use thiserror::Error;

use crate::{AgentName, HandoffId, Millis, RunId, Time, TurnKey};

pub use crate::workflow::locks::{LockRules, OnConflict};
pub use check::Conflict;
pub use deadlock::Link;
pub use pattern::{BadPattern, LONGEST_PATTERN, Pattern};

/// So many may be held or waited for at once.
pub const MOST_LOCKS: usize = 512;

/// So many patterns may be in one lock.
pub const MOST_PATTERNS: usize = 32;

/// The longest lease; who needs more renews it.
pub const LONGEST_LEASE: Millis = Millis::hours(24);

/// The longest wait.
pub const LONGEST_WAIT: Millis = Millis::hours(24);

/// The longest reason and the longest name of a holder, in bytes.
pub const LONGEST_TEXT: usize = 1024;

/// A lock, or a place in the line for one: `l7`. A waiter that gets its lock keeps the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct LockId(pub u64);

/// The text is not the name of a lock.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a lock: they are named l1, l2, …")]
pub struct NotALock {
    /// What was given instead.
    pub text: String,
}

impl fmt::Display for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "l{}", self.0)
    }
}

impl fmt::Debug for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LockId {
    type Err = NotALock;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix('l').and_then(|digits| digits.parse().ok());
        digits.map(LockId).ok_or_else(|| NotALock { text: text.to_owned() })
    }
}

impl TryFrom<String> for LockId {
    type Error = NotALock;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<LockId> for String {
    fn from(id: LockId) -> Self {
        id.to_string()
    }
}

/// Who can hold a lock.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Who {
    /// An agent of a run.
    Session {
        /// The run.
        run: RunId,
        /// The agent.
        agent: AgentName,
    },
    /// A program that came from outside.
    Visitor {
        /// Its name.
        name: String,
    },
    /// A person.
    Person {
        /// Their name.
        name: String,
    },
}

/// Who holds a lock, and at which of their places: two commands of one person exclude each other.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct Holder {
    /// Who.
    #[serde(flatten)]
    pub who: Who,
    /// The command that it is held for; empty when it is held for whatever they do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seat: String,
}

impl Holder {
    /// A person, wherever they are.
    #[must_use]
    pub fn person(name: &str) -> Self {
        Holder { who: Who::Person { name: name.to_owned() }, seat: String::new() }
    }

    /// Somebody who came with a token of theirs.
    #[must_use]
    pub fn visitor(name: &str) -> Self {
        Holder { who: Who::Visitor { name: name.to_owned() }, seat: String::new() }
    }

    /// An agent of a run.
    #[must_use]
    pub fn session(run: RunId, agent: AgentName) -> Self {
        Holder { who: Who::Session { run, agent }, seat: String::new() }
    }

    /// The same one at another place.
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

/// Whether others may have it too.
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
    /// For one alone, to write.
    #[default]
    Exclusive,
    /// For all who only read.
    Shared,
}

/// What somebody wants to have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// Who.
    pub holder: Holder,
    /// The turn it is for, when it is an agent's: without it the lock is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnKey>,
    /// What, all of it or nothing.
    pub patterns: Vec<Pattern>,
    /// Whether others may have it too.
    #[serde(default)]
    pub mode: Mode,
    /// For how long, unless it is renewed.
    pub lease: Millis,
    /// What for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Claim {
    /// Whether both cannot be had at once.
    #[must_use]
    pub fn conflicts(&self, other: &Claim) -> bool {
        let apart = self.holder == other.holder
            || (self.mode == Mode::Shared && other.mode == Mode::Shared);
        !apart && self.patterns.iter().any(|a| other.patterns.iter().any(|b| a.overlaps(b)))
    }

    /// Whether it is the same wish, said again.
    fn repeats(&self, other: &Claim) -> bool {
        (&self.holder, &self.patterns, self.mode) == (&other.holder, &other.patterns, other.mode)
    }
}

/// A lock that is held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// Its name.
    pub id: LockId,
    /// Its fencing number: who writes shows it, and a smaller one than the last is refused.
    pub fence: u64,
    /// Who has what.
    pub claim: Claim,
    /// Since when.
    pub taken_at: Time,
    /// When it ends by itself.
    pub expires_at: Time,
}

/// A place in the line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// Its name, and that of the lock to come.
    pub id: LockId,
    /// Who wants what.
    pub claim: Claim,
    /// Since when.
    pub since: Time,
    /// Until when.
    pub until: Time,
}

/// What is asked of the locks.
#[derive(Clone, PartialEq, Debug)]
pub enum Ask {
    /// To have something.
    Take {
        /// What.
        claim: Claim,
        /// What to do when somebody else has it.
        on_conflict: OnConflict,
        /// How long to wait for it.
        wait: Millis,
    },
    /// To keep it for longer.
    Renew {
        /// Which.
        id: LockId,
        /// Who asks.
        by: Holder,
        /// The fencing number, if it is known.
        fence: Option<u64>,
        /// For how long from now; as long as before otherwise.
        lease: Option<Millis>,
    },
    /// To give it back, or to wait no longer.
    Release {
        /// Which.
        id: LockId,
        /// Who asks.
        by: Holder,
    },
    /// To take a lock from its holder. Whoever may ask this is for the caller to say.
    TakeOver {
        /// Which.
        id: LockId,
        /// Who takes it.
        by: Holder,
        /// Why.
        why: String,
    },
    /// To end what a run holds, except for these handoffs and attempts of it.
    Clear {
        /// The run.
        run: RunId,
        /// What of it goes on.
        keep: Vec<(HandoffId, u32)>,
    },
    /// Time has passed.
    Tick,
}

/// How a lock ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ended {
    /// It was given back.
    Released,
    /// Its lease was over.
    Expired,
    /// Its holder's turn or run was over.
    HolderGone,
    /// Somebody took it.
    TakenOver {
        /// Who.
        by: Holder,
        /// Why.
        why: String,
    },
}

/// How a wait ended without a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GaveUp {
    /// The waiter went away.
    Withdrawn,
    /// It took too long.
    Late,
    /// Its turn or run was over.
    HolderGone,
    /// It closed a circle of waiters.
    Deadlock,
}

/// Something that became true of the locks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LockEvent {
    /// A lock was given.
    LockTaken {
        /// Which.
        lock: Lock,
    },
    /// Somebody stands in line.
    LockQueued {
        /// Who.
        waiter: Waiter,
    },
    /// A lease is longer now.
    LockRenewed {
        /// Which.
        id: LockId,
        /// The new end.
        expires_at: Time,
    },
    /// A lock ended.
    LockEnded {
        /// Which.
        id: LockId,
        /// How.
        #[serde(flatten)]
        ended: Ended,
    },
    /// Somebody no longer stands in line.
    WaitEnded {
        /// Which.
        id: LockId,
        /// Why.
        why: GaveUp,
    },
    /// Waiters waited for each other; the youngest of them is refused.
    DeadlockFound {
        /// Who waited for whom, around the circle.
        circle: Vec<Link>,
        /// Who is refused.
        refused: LockId,
    },
}

impl LockEvent {
    /// The event's name, as it is stored.
    #[must_use]
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

    /// The lock or waiter that it is about.
    #[must_use]
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

/// What was asked is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The lock is held.
    Held(Lock),
    /// There is a place in the line.
    Waiting(Waiter),
    /// It is done, and there is nothing more to say.
    Done,
}

/// What was asked is not done. Nothing changed because of it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refusal {
    /// Somebody else has it, and there is no waiting.
    #[error("{} is locked by {} until {} ({})", lock.claim.what(), lock.claim.holder, lock.expires_at, lock.id)]
    Locked {
        /// The first lock in the way.
        lock: Box<Lock>,
    },
    /// Others stand in line for it, and there is no waiting.
    #[error("{} waits for {} already ({})", waiter.claim.holder, waiter.claim.what(), waiter.id)]
    Awaited {
        /// The first waiter in the way.
        waiter: Box<Waiter>,
    },
    /// It did not become free in time.
    #[error("{id} did not come free in time")]
    Late {
        /// Which.
        id: LockId,
    },
    /// Waiting would never end.
    #[error("DEADLOCK: {}", deadlock::told(circle))]
    Deadlock {
        /// Who waits for whom.
        circle: Vec<Link>,
    },
    /// The lock is no longer held: its lease was over, or somebody took it.
    #[error("{id} is not held any more")]
    Lost {
        /// Which.
        id: LockId,
    },
    /// It is somebody else's.
    #[error("{id} belongs to {holder}")]
    NotYours {
        /// Which.
        id: LockId,
        /// Whose.
        holder: Holder,
    },
    /// Taking from others needs a reason.
    #[error("taking a lock from its holder needs a reason")]
    NoReason,
    /// The ask is more than is allowed.
    #[error("{rule}")]
    Limit {
        /// What is allowed.
        rule: String,
    },
}

impl Claim {
    /// The patterns in a sentence.
    #[must_use]
    pub fn what(&self) -> String {
        let all: Vec<&str> = self.patterns.iter().map(Pattern::as_str).collect();
        all.join(", ")
    }
}

/// What becomes true because of an ask, and what whoever asked is told once that is stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// What becomes true.
    pub events: Vec<LockEvent>,
    /// What is told.
    pub answer: Result<Answer, Refusal>,
}

/// All locks of a project.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Locks {
    /// How many events there were.
    pub version: u64,
    /// The last fencing number that was given.
    pub fence: u64,
    /// What is held.
    pub held: BTreeMap<LockId, Lock>,
    /// Who waits; a smaller name came earlier.
    pub waiting: BTreeMap<LockId, Waiter>,
}

impl Locks {
    /// Makes an event true.
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

    /// When something ends by itself next.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let held = self.held.values().map(|lock| lock.expires_at);
        held.chain(self.waiting.values().map(|waiter| waiter.until)).min()
    }
}
