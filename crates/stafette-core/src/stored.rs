//! Events, handoffs and runs as they are stored: JSON, by one function for each type and direction.
//!
//! Generic code is compiled where it is used. These functions are not generic, so that it is compiled
//! here, once, at the optimisation level that the hot path needs.

use crate::{Event, Handoff, Run};

/// Implements both directions for a type.
macro_rules! as_json {
    ($($type:ty),*) => {$(
        impl $type {
            /// Returns it as JSON.
            #[must_use]
            pub fn to_json(&self) -> String {
                serde_json::to_string(self).expect("our own types are JSON")
            }

            /// Reads it from JSON.
            ///
            /// # Errors
            /// If it is something else, or from a newer version.
            pub fn from_json(text: &str) -> serde_json::Result<Self> {
                serde_json::from_str(text)
            }
        }
    )*};
}

as_json!(Event, Handoff, Run);
