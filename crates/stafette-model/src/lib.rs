//! The model: the values that everything else is about. Parties, ids, time and money, and what
//! parties offer and answer each other.
//!
//! Invariants:
//! - No clock, no randomness, no file, no socket.
//! - Nothing is decided here, and no state of a run is known here.

/// Has a type that is read from a text be stored and shown as that text.
#[macro_export]
macro_rules! as_text {
    ($type:ty, $error:ty) => {
        impl TryFrom<String> for $type {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

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
