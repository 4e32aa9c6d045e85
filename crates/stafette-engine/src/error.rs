//! Why something could not be done.

use stafette_core::run::propose::Refusal;
use stafette_core::{AgentName, HandoffId, RunId, TurnKey};
use stafette_store::{AppendError, ReadError};
use thiserror::Error;

use crate::driver::RestoreError;

/// Something could not be done.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There is no such run.
    #[error("there is no run {run}")]
    NoRun {
        /// What was asked for.
        run: String,
    },
    /// The text fits several runs.
    #[error("`{text}` fits {} runs; give more digits", found.len())]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// What it could mean.
        found: Vec<RunId>,
    },
    /// There is no such handoff.
    #[error("run {run} has no handoff {handoff}")]
    NoHandoff {
        /// The run.
        run: RunId,
        /// What was asked for.
        handoff: HandoffId,
    },
    /// The run has no event of that number.
    #[error("run {run} has no event {seq}")]
    NoEvent {
        /// The run.
        run: RunId,
        /// The number that was asked for.
        seq: u64,
        /// The number of the last event that was found.
        last: u64,
    },
    /// The run is over and takes nothing any more.
    #[error("run {run} is over")]
    Over {
        /// The run.
        run: RunId,
    },
    /// The store did not take it.
    #[error("it could not be stored")]
    Store {
        /// Why.
        #[from]
        source: AppendError,
    },
    /// The store did not give it.
    #[error("it could not be read")]
    Read {
        /// Why.
        #[from]
        source: ReadError,
    },
    /// What the store gave is not a run.
    #[error("what is stored cannot be understood")]
    Restore {
        /// Why.
        #[from]
        source: RestoreError,
    },
    /// The token belongs to no session that lives, or its caller to another one.
    #[error("this is not the session that it claims to be")]
    NotYours,
    /// The agent has no turn at the moment.
    #[error("{agent} has no turn at the moment")]
    NoTurn {
        /// Who.
        agent: AgentName,
    },
    /// The turn is somebody else's.
    #[error("{by} has this turn")]
    Taken {
        /// Which turn.
        turn: TurnKey,
        /// Whose it is.
        by: String,
    },
    /// The turn is not the current one any more.
    #[error("turn {turn} is over; what came of it is kept as evidence only")]
    Late {
        /// Which turn.
        turn: TurnKey,
    },
    /// No such turn is out.
    #[error("run {run} has no such turn out")]
    NothingOut {
        /// Which run.
        run: RunId,
    },
    /// The agent is not one of the outside.
    #[error("{agent} is started here, so nobody else can act for it")]
    StartedHere {
        /// Who.
        agent: AgentName,
    },
    /// What was told cannot be understood.
    #[error("it cannot be understood: {}", mistakes.join("; "))]
    Mistaken {
        /// All that is wrong with it.
        mistakes: Vec<String>,
    },
    /// The key was used for something else.
    #[error("the key was used for another request, which became run {run}")]
    OtherRequest {
        /// What it was used for.
        run: RunId,
    },
    /// What was told is not taken.
    #[error("{refusal}")]
    Refused {
        /// Under which rule.
        refusal: Refusal,
    },
    /// The lock is not to be had.
    #[error("{refusal}")]
    Lock {
        /// Why.
        refusal: stafette_core::lock::Refusal,
    },
    /// It must not be written.
    #[error("{conflict}")]
    MayNotWrite {
        /// What is in the way.
        conflict: stafette_core::lock::Conflict,
    },
    /// The store did not take a change of the locks.
    #[error("the locks could not be stored")]
    LockStore {
        /// Why.
        source: stafette_store::LockError,
    },
    /// A change could not be proposed, applied or undone.
    #[error(transparent)]
    Change {
        /// Why.
        #[from]
        source: stafette_workspace::ChangeError,
    },
    /// Nobody is left who could act on what is said about a change.
    #[error("nobody would hear what is said about {change}: {why}")]
    NobodyHears {
        /// Which change.
        change: stafette_core::change::ChangeId,
        /// Why not.
        why: String,
    },
    /// The team's own program could not be renewed.
    #[error(transparent)]
    Renewal {
        /// Why.
        #[from]
        source: stafette_workspace::RenewalError,
    },
    /// Somebody who looks at what arrives has something against this answer, or this run.
    #[error("{why}")]
    Objected {
        /// What.
        why: String,
    },
    /// A hook said no.
    #[error("a hook said no: {why}")]
    Blocked {
        /// Its reason.
        why: String,
    },
    /// The run that a context is about goes on by itself.
    #[error("run {run}, which the context is about, still goes on")]
    GoesOn {
        /// Which one.
        run: RunId,
    },
    /// The engine is on its way out.
    #[error("the engine is stopping")]
    Stopping,
}
