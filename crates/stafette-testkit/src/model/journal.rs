//! What the model was asked and what it did about it, for tests to look at.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::ask::Ask;

/// One request and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// The path, without what is asked behind it.
    pub path: String,
    /// The headers, without keys; the names are in small letters.
    pub headers: Vec<(String, String)>,
    /// What came with it; nothing when it was not JSON.
    pub body: Value,
    /// What it comes down to, if it is a question to the model.
    pub ask: Option<Ask>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A rule answered: which one, counted from 0.
    Rule(usize),
    /// A question beside the point got an empty answer.
    Aside,
    /// Models were listed or tokens counted.
    Service,
    /// No rule fits: refused with 400.
    Silent,
    /// Nobody knows this path: refused with 404.
    Unknown,
    /// More was asked than any test asks: refused with 400.
    Runaway,
}

/// All exchanges in order.
#[derive(Debug, Default)]
pub(super) struct Journal {
    exchanges: Mutex<Vec<Exchange>>,
    changed: Condvar,
}

impl Journal {
    pub(super) fn add(&self, exchange: Exchange) {
        self.lock().push(exchange);
        self.changed.notify_all();
    }

    pub(super) fn all(&self) -> Vec<Exchange> {
        self.lock().clone()
    }

    pub(super) fn wait(&self, limit: Duration, wanted: impl Fn(&[Exchange]) -> bool) -> bool {
        let missing = |exchanges: &mut Vec<Exchange>| !wanted(exchanges);
        let waited = self.changed.wait_timeout_while(self.lock(), limit, missing);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
