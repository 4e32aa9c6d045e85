//! HTTP client: plain, or TLS with the certificates that this system trusts.
//!
//! Invariants:
//! - Every certificate is checked against the requested name.
//! - No proxy, no cookies, no connection reuse: one request is one connection to the given address.
//! - A redirect is followed only on request, and only to addresses that the caller allows.
//! - Every wait has a deadline, and no response is read beyond a limit.

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

/// Error of a request.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address is not valid.
    #[error("`{url}` cannot be used: {why}")]
    Address {
        /// Address that was given, cut to 200 characters.
        url: String,
        /// Description of the mistake.
        why: &'static str,
    },
    /// A header or the method is not valid.
    #[error("{at} cannot be asked this: {why}")]
    Request {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        /// Description of the mistake.
        why: String,
    },
    /// TLS is not available on this system.
    #[error("there is no TLS: {why}")]
    NoTls {
        /// Reason why it is not.
        why: String,
    },
    /// The server cannot be reached, or its certificate does not match.
    #[error("{at} cannot be reached: {why}")]
    Unreachable {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        /// Cause of the failure.
        why: String,
    },
    /// The response took too long.
    #[error("{at} did not answer within {} s", within.as_secs())]
    Late {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        /// Time limit of the request.
        within: Duration,
    },
    /// The connection broke before the response was complete.
    #[error("the connection to {at} broke: {why}")]
    Broken {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        /// Cause of the failure.
        why: String,
    },
    /// The response is too large.
    #[error("the answer of {at} is larger than {limit} bytes")]
    TooLarge {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        /// Size limit, in bytes.
        limit: usize,
    },
    /// A redirect leads to an address that the caller does not allow.
    #[error("{to} belongs to somebody else; it is not followed")]
    Elsewhere {
        /// Target of the redirect.
        to: String,
    },
    /// The redirects exceed the limit.
    #[error("{at} leads in circles")]
    Circles {
        /// Address where the redirects began.
        at: String,
    },
}

impl HttpError {
    /// Returns true if another attempt may succeed.
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
