//! Something went wrong that people must see, though the work goes on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Draft;
use crate::{Event, Reply};

/// People must see this.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AlertRaised {
    /// An UPPER_SNAKE code.
    pub code: String,
    /// In a sentence.
    pub message: String,
}

pub(super) fn decide(draft: &mut Draft, code: String, message: String) -> Reply {
    draft.record(Event::AlertRaised(AlertRaised { code, message }));
    Reply::Recorded
}
