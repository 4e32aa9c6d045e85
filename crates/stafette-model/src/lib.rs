//! The model: the values that everything else is about. Parties, ids, time and money, and what
//! parties offer and answer each other.
//!
//! Invariants:
//! - No clock, no randomness, no file, no socket.
//! - Nothing is decided here, and no state of a run is known here.

pub mod amount;
pub mod fields;
pub mod id;
pub mod offer;
pub mod statement;
pub mod time;
pub mod trace;

pub use amount::{Unknown, Usage, Usd};
pub use id::{AgentName, HandoffId, Party, RunId, TurnKey};
pub use offer::{
    Foreign, Kind, MissingInput, Offer, Outcome, PriorAttempt, Priority, Question, Reason, Response,
};
pub use statement::Statement;
pub use time::{Millis, Time};

/// A JSON object with the values that agents pass to each other.
pub type Fields = serde_json::Map<String, serde_json::Value>;
