//! Deliveries of webhooks, remembered so that none counts twice.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use stafette_core::trace::Traceparent;
use stafette_core::{Millis, RunId, Time};

use super::TriggerError;

/// Time within which the same content counts as a replay. The signature does not cover the
/// delivery's id, so that the id alone proves nothing.
const WINDOW: Millis = Millis::hours(24);

/// Maximum number of deliveries kept. Older ids still count: the runs themselves remember them.
const MOST: usize = 1024;

/// Headers of a webhook.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    pub signature: String,
    /// Delivery id from the sender; the body's hash is used for `None`.
    pub id: Option<String>,
    /// True for a ping, which starts no run.
    pub is_ping: bool,
    /// Span of the sender, in its own trace.
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
    /// Returns the run of a delivery that came before.
    ///
    /// # Errors
    /// When the same content came under another id.
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
