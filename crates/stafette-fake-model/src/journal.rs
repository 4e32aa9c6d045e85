//! The requests to the model and their outcomes, for tests to examine.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::ask::Ask;

/// One request and its outcome.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    /// The HTTP method: `GET`, `POST` and so on.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The headers, without keys; the names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The request body; null if it was not JSON.
    pub body: Value,
    /// The parsed request, if it is one to the model.
    pub ask: Option<Ask>,
    /// The outcome of the request.
    pub outcome: Outcome,
}

impl Exchange {
    /// True if the script did not foresee the request.
    #[must_use]
    pub fn is_surprise(&self) -> bool {
        matches!(self.outcome, Outcome::Silent | Outcome::Unknown | Outcome::Runaway)
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A rule answered; its number from 0.
    Rule(usize),
    /// A side request got an empty answer.
    Aside,
    /// The request listed models or counted tokens.
    Service,
    /// No rule matches: refused with 400.
    Silent,
    /// The path is unknown: refused with 404.
    Unknown,
    /// There were more requests than any test makes: refused with 400.
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
