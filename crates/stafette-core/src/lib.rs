//! The core of Stafette: it makes decisions and performs no actions.
//!
//! Data flows one way. An [`Input`] arrives; [`Run::decide`] returns the [`Event`]s that follow
//! from it
//! and the [`Reply`] to its sender; once those are stored, [`Run::apply`] changes the state; and
//! [`Run::outbox`] returns the turns that should now be under way.
//!
//! Invariants:
//! - No clock, no randomness, no file, no socket: time is passed in, variation is derived from ids.
//! - `decide` and `apply` cannot fail. Bad input becomes a refusal that is itself an event.
//! - Replaying the events gives the same state as applying them live.
//! - The state of a run is bounded: it holds what is open and the most recently closed handoffs.
//! - Every open handoff has a deadline, so [`Run::deadline`] is never `None` while one is open.

pub mod change;
pub mod command;
pub mod event;
pub mod handoff;
pub mod input;
pub mod lock;
pub mod order;
pub mod power;
pub mod redact;
pub mod reply;
pub mod run;
pub mod schema;
mod stored;
pub mod team;
pub mod trace;
pub mod workflow;

pub use stafette_model::{amount, fields, id, time};
pub use stafette_text::{clean, hex};
pub use stafette_wire as wire;

use stafette_text as text;

pub use amount::{Unknown, Usage, Usd};
pub use event::{Event, Recorded};
pub use handoff::{
    Closing, Handoff, Kind, MissingInput, Offer, Outcome, Priority, Question, Reason, Response,
    State,
};
pub use id::{AgentName, HandoffId, MessageId, Party, RunId, TurnKey};
pub use input::{Failure, FailureKind, Input, PrintedFrame, TurnResult};
pub use order::TurnOrder;
pub use reply::{Ignored, Reply};
pub use run::{Decision, Draft, Run, Status};
pub use stafette_model::{Fields, Statement};
pub use team::{TeamAbout, TeamEvent, TeamInput};
pub use time::{Millis, Time};
pub use workflow::Workflow;

/// True if a value is what its absence stands for, so that it is not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
