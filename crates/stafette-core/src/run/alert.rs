//! An error that people must see, although the work continues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Draft;
use crate::{Event, Reply};

/// An alert for people was raised.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AlertRaised {
    /// The alert code, in UPPER_SNAKE case.
    pub code: String,
    /// The description, in a sentence.
    pub message: String,
    /// True if it was read from plain output, which any printed file can imitate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub printed: bool,
}

pub(super) fn decide(draft: &mut Draft, code: String, message: String) -> Reply {
    draft.record(Event::AlertRaised(AlertRaised { code, message, printed: false }));
    Reply::Recorded
}
