//! Errors of the engine.

mod code;

use stafette_core::run::propose::Refusal;
use stafette_core::team::change::MOST_SETS;
use stafette_core::{AgentName, HandoffId, MessageId, RunId, TurnKey};
use stafette_store::{AppendError, Damage, ReadError};
use thiserror::Error;

use crate::driver::RestoreError;

pub use code::{change_code, renewal_code};

/// An operation of the engine failed.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There is no such run.
    #[error("there is no run {run}")]
    NoRun { run: String },
    /// The text matches several runs.
    #[error("`{text}` fits {} runs; give more digits", found.len())]
    Ambiguous {
        text: String,
        /// The runs that it matches.
        found: Vec<RunId>,
    },
    /// There is no such handoff.
    #[error("run {run} has no handoff {handoff}")]
    NoHandoff { run: RunId, handoff: HandoffId },
    /// The run keeps no message of that number.
    #[error("run {run} keeps no message {id}")]
    NoMessage { run: RunId, id: MessageId },
    /// The message was not sent.
    #[error("the message to {to} was not sent: {why}")]
    NotSent { to: String, why: String },
    /// The run has no event of that number.
    #[error("run {run} has no event {seq}")]
    NoEvent {
        run: RunId,
        seq: u64,
        /// The number of the last event that was found.
        last: u64,
    },
    /// The run has ended and accepts no more inputs.
    #[error("run {run} is over")]
    Over { run: RunId },
    /// The store failed to write.
    #[error("it could not be stored")]
    Store {
        /// The error of the store.
        #[from]
        source: AppendError,
    },
    /// The store failed to read.
    #[error("it could not be read")]
    Read {
        /// The error of the store.
        #[from]
        source: ReadError,
    },
    /// The run was stopped, because what is stored of it is damaged.
    #[error("run {run} is stopped: what is stored of it is damaged")]
    Damaged {
        run: RunId,
        /// The damaged row.
        #[source]
        damage: Damage,
    },
    /// The data in the store is not a run.
    #[error("what is stored cannot be understood")]
    Restore {
        /// The error found while restoring it.
        #[from]
        source: RestoreError,
    },
    /// The token belongs to no active session, or the caller belongs to another one.
    #[error("this is not the session that it claims to be")]
    NotYours,
    /// The agent has no turn at the moment.
    #[error("{agent} has no turn at the moment")]
    NoTurn { agent: AgentName },
    /// Another agent holds the turn.
    #[error("{by} has this turn")]
    Taken {
        /// The key of the turn.
        turn: TurnKey,
        by: String,
    },
    /// The run has as many sets of changes as a run can have.
    #[error("run {run} has {MOST_SETS} sets of changes that nobody has decided, which is the most")]
    NoRoom { run: RunId },
    /// The turn is no longer the current one.
    #[error("turn {turn} is over; what came of it is kept as evidence only")]
    Late { turn: TurnKey },
    /// The turn has ended with another result.
    #[error("turn {turn} is over: it was recorded as {how}; this is kept as evidence only")]
    EndedBefore { turn: TurnKey, how: String },
    /// The turn was offered, and nobody has taken it.
    #[error("turn {turn} was not accepted, so nothing can be done in it yet")]
    NotTaken { turn: TurnKey },
    /// No such turn is in progress.
    #[error("run {run} has no such turn out")]
    NothingOut { run: RunId },
    /// The agent is started by the daemon, so it is not an external one.
    #[error("{agent} is started here, so nobody else can act for it")]
    StartedHere { agent: AgentName },
    /// The document that was handed in cannot be parsed.
    #[error("it cannot be understood: {}", mistakes.join("; "))]
    Mistaken {
        /// All mistakes in it, each with its path.
        mistakes: Vec<String>,
    },
    /// The idempotency key was used for another request.
    #[error("the key was used for another request, which became run {run}")]
    OtherRequest { run: RunId },
    /// A rule refuses the proposal.
    #[error("{refusal}")]
    Refused { refusal: Refusal },
    /// The lock cannot be granted.
    #[error("{refusal}")]
    Lock { refusal: stafette_core::lock::Refusal },
    /// The path must not be written.
    #[error("{conflict}")]
    MayNotWrite { conflict: stafette_core::lock::Conflict },
    /// The store failed to write a change of the locks.
    #[error("the locks could not be stored")]
    LockStore {
        /// The error of the store.
        #[from]
        source: stafette_store::LockError,
    },
    /// A change could not be proposed, applied or rolled back.
    #[error(transparent)]
    Change {
        /// The error of the change store.
        #[from]
        source: stafette_workspace::ChangeError,
    },
    /// The outcome of a run could not be collected yet.
    #[error("the outcome of run {run} is not collected yet: {source}")]
    NotCollected { run: RunId, source: Box<dyn std::error::Error + Send + Sync> },
    /// No agent is left that could act on comments on a change.
    #[error("nobody would hear what is said about {change}: {why}")]
    NobodyHears { change: stafette_core::change::ChangeId, why: String },
    /// The team's own program could not be renewed.
    #[error(transparent)]
    Renewal {
        /// The error of the renewal.
        #[from]
        source: stafette_workspace::RenewalError,
    },
    /// The gate objects to this answer or this run.
    #[error("{why}")]
    Objected { why: String },
    /// A hook refused it.
    #[error("a hook said no: {why}")]
    Blocked { why: String },
    /// The run of an imported context still continues here.
    #[error("run {run}, which the context is about, still goes on")]
    GoesOn { run: RunId },
    /// The engine is stopping.
    #[error("the engine is stopping")]
    Stopping,
}
