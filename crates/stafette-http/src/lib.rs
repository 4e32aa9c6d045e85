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

use std::pin::Pin;
use std::time::Duration;

use thiserror::Error;

pub use address::{Address, is_public};
pub use answer::HttpResponse;
pub use ask::HttpRequest;
pub use connect::{Wire, secure};

/// A future whose code is in this crate alone: what is awaited directly is compiled again in every
/// crate that awaits it.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Error of a request.
#[derive(Debug, Error)]
pub enum HttpError {
    #[error("`{url}` cannot be used: {why}")]
    Address {
        /// Address that was given, cut to 200 characters.
        url: String,
        why: &'static str,
    },
    #[error("{at} cannot be asked this: {why}")]
    Request {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        why: String,
    },
    #[error("there is no TLS: {why}")]
    NoTls { why: String },
    /// The server cannot be reached, or its certificate does not match.
    #[error("{at} cannot be reached: {why}")]
    Unreachable {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        why: String,
    },
    #[error("{at} did not answer within {} s", within.as_secs())]
    Late {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        within: Duration,
    },
    #[error("the connection to {at} broke: {why}")]
    Broken {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        why: String,
    },
    #[error("the answer of {at} is larger than {limit} bytes")]
    TooLarge {
        /// Authority of the server: its host, with the port if that is not the default.
        at: String,
        /// Size limit, in bytes.
        limit: usize,
    },
    #[error("{to} belongs to somebody else; it is not followed")]
    Elsewhere { to: String },
    #[error("{at} leads in circles")]
    Circles { at: String },
}

impl HttpError {
    /// Returns true if another attempt may succeed.
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
