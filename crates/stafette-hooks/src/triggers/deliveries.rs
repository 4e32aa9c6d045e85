//! What webhooks brought, so that nothing counts twice.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use stafette_core::trace::Traceparent;
use stafette_core::{Millis, RunId, Time};

use super::TriggerError;

/// How long the same content is taken for a replay. The signature does not cover the delivery's
/// name, so that the name alone proves nothing.
const WINDOW: Millis = Millis::hours(24);

/// No more are remembered. The names go on counting: the runs themselves remember those.
const MOST: usize = 1024;

/// What a program shows when it comes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// The signature of the body.
    pub signature: String,
    /// The name that the program has for this delivery; the body's hash otherwise.
    pub id: Option<String>,
    /// Whether it only tries whether we are there.
    pub is_ping: bool,
    /// What the program does this in, in a trace of its own.
    pub within: Option<Traceparent>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Deliveries(VecDeque<Noted>);

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Noted {
    trigger: String,
    id: String,
    hash: String,
    at: Time,
    run: RunId,
}

impl Deliveries {
    /// The run of a delivery that was here before.
    ///
    /// # Errors
    /// When its content was here under another name.
    pub(super) fn known(
        &mut self,
        trigger: &str,
        id: &str,
        hash: &str,
        now: Time,
    ) -> Result<Option<RunId>, TriggerError> {
        self.0.retain(|noted| now.since(noted.at) < WINDOW);
        let mine = |noted: &&Noted| noted.trigger == trigger;
        if let Some(noted) = self.0.iter().filter(mine).find(|noted| noted.id == id) {
            return Ok(Some(noted.run));
        }
        match self.0.iter().filter(mine).find(|noted| noted.hash == hash) {
            Some(noted) => Err(TriggerError::Replayed { id: noted.id.clone() }),
            None => Ok(None),
        }
    }

    pub(super) fn note(&mut self, trigger: &str, id: String, hash: String, at: Time, run: RunId) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(Noted { trigger: trigger.to_owned(), id, hash, at, run });
    }
}
