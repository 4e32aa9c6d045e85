//! Asking another machine for something by HTTP: plain, or by TLS to whom this system trusts.
//!
//! Invariants:
//! - Every certificate is checked against the name that was asked for.
//! - No proxy, no cookie, nothing kept open: one request is one connection to the address that was
//!   named.
//! - A redirection is followed only when the caller says so, and only to where the caller allows.
//! - Every wait has a deadline, and no answer is read beyond a limit.

mod address;
mod answer;
mod ask;
mod connect;

use std::time::Duration;

use thiserror::Error;

pub use address::{Address, is_public};
pub use answer::HttpResponse;
pub use ask::HttpRequest;
pub use connect::{Wire, secure};

/// Why there was no answer.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address cannot be used.
    #[error("`{url}` cannot be used: {why}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header or the method cannot be sent.
    #[error("{at} cannot be asked this: {why}")]
    Request {
        /// Where.
        at: String,
        /// What is wrong with it.
        why: String,
    },
    /// This system cannot speak TLS.
    #[error("there is no TLS: {why}")]
    NoTls {
        /// Why.
        why: String,
    },
    /// Nobody can be reached there, or not who was meant.
    #[error("{at} cannot be reached: {why}")]
    Unreachable {
        /// Where.
        at: String,
        /// Why.
        why: String,
    },
    /// It took too long.
    #[error("{at} did not answer within {} s", within.as_secs())]
    Late {
        /// Where.
        at: String,
        /// How long it had.
        within: Duration,
    },
    /// The connection broke.
    #[error("the connection to {at} broke: {why}")]
    Broken {
        /// Where.
        at: String,
        /// How.
        why: String,
    },
    /// The answer is larger than it may be.
    #[error("the answer of {at} is larger than {limit} bytes")]
    TooLarge {
        /// Where.
        at: String,
        /// The most that is read.
        limit: usize,
    },
    /// It leads to where the caller does not want to go.
    #[error("{to} belongs to somebody else; it is not followed")]
    Elsewhere {
        /// Where it leads.
        to: String,
    },
    /// One redirection follows the other.
    #[error("{at} leads in circles")]
    Circles {
        /// Where it began.
        at: String,
    },
}

impl HttpError {
    /// Whether another try can go better.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            HttpError::Unreachable { .. }
            | HttpError::Late { .. }
            | HttpError::Broken { .. }
            | HttpError::TooLarge { .. }
            | HttpError::NoTls { .. } => true,
            HttpError::Address { .. }
            | HttpError::Request { .. }
            | HttpError::Elsewhere { .. }
            | HttpError::Circles { .. } => false,
        }
    }
}
