//! An error that people must see, although the work continues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Draft;
use crate::{Event, Reply};

/// An alert for people was raised.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AlertRaised {
    /// The alert code, in UPPER_SNAKE case.
    pub code: String,
    /// The description, in a sentence.
    pub message: String,
}

pub(super) fn decide(draft: &mut Draft, code: String, message: String) -> Reply {
    draft.record(Event::AlertRaised(AlertRaised { code, message }));
    Reply::Recorded
}
