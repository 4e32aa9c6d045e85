//! The heart of Stafette: it decides, and performs nothing.
//!
//! Data flows one way. Something arrives as an [`Input`]; [`Run::decide`] answers with the
//! [`Event`]s that it makes true and the [`Reply`] to the one that sent it; once those are stored, [`Run::apply`] changes the state; and
//! [`Run::outbox`] says what the world should now be doing.
//!
//! Invariants:
//! - No clock, no randomness, no file, no socket: time is handed in, chance is derived from ids.
//! - `decide` and `apply` cannot fail. Bad input becomes a refusal that is itself an event.
//! - The state after replaying the events is the state that lived through them.
//! - The state of a run is bounded: it holds what is open and a short tail of what is closed.
//! - Every open handoff has a deadline, so [`Run::deadline`] is never `None` while one is open.

pub mod amount;
pub mod change;
pub mod event;
pub mod fields;
pub mod handoff;
pub mod id;
pub mod input;
pub mod lock;
pub mod order;
pub mod redact;
pub mod reply;
pub mod run;
pub mod team;
mod text;
pub mod time;
pub mod trace;
pub mod wire;
pub mod workflow;

pub use amount::{Usage, Usd};
pub use event::{Event, Recorded};
pub use handoff::{
    Closing, Handoff, Kind, MissingInput, Offer, Outcome, Priority, Question, Reason, Response,
    State,
};
pub use id::{AgentName, HandoffId, Party, RunId, TurnKey};
pub use input::{Failure, FailureKind, Input, TurnResult};
pub use order::TurnOrder;
pub use reply::{Ignored, Reply};
pub use run::{Decision, Draft, Run, Status};
pub use team::{TeamAbout, TeamEvent, TeamInput};
pub use time::{Millis, Time};
pub use workflow::Workflow;

/// A JSON object: what agents pass each other.
pub type Fields = serde_json::Map<String, serde_json::Value>;
