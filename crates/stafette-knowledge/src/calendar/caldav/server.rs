//! A server and the user's password for it.
//!
//! A few redirects are followed. The password is sent only to the server that it is for, or over
//! TLS to another host of the same domain.

use std::fmt;
use std::time::Duration;

use stafette_http::{Address, HttpError, HttpRequest};

use crate::calendar::CalendarError;

/// The time limit for the head of an answer, and again for its body.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest answer that is read, in bytes.
const LARGEST: usize = 32 << 20;

/// The number of redirects that are followed.
const HOPS: usize = 5;

/// An HTTP response, read completely.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) etag: Option<String>,
    body: Vec<u8>,
}

impl HttpResponse {
    pub(super) fn text(&self) -> Result<String, CalendarError> {
        let text = String::from_utf8(self.body.clone());
        text.map_err(|_| CalendarError::Failed { why: "the answer is not UTF-8".to_owned() })
    }
}

/// The server's address and the credentials.
pub(super) struct Server {
    home: Address,
    user: String,
    password: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Server {
    pub(super) fn new(home: &Address, user: &str, password: &str) -> Self {
        Server { home: home.clone(), user: user.to_owned(), password: password.to_owned() }
    }

    pub(super) async fn send(
        &self,
        method: &str,
        to: &Address,
        headers: &[(&str, &str)],
        body: impl Into<String>,
    ) -> Result<HttpResponse, CalendarError> {
        let mut asked = HttpRequest::new(method, to).basic(&self.user, &self.password);
        for (name, value) in headers {
            asked = asked.header(name, *value);
        }
        let asked = asked.body(body.into()).within(PATIENCE);
        let mut answer = asked.follow(HOPS, |at| at.belongs_to(&self.home)).await?;
        let body = answer.whole(LARGEST, PATIENCE).await?;
        let etag = answer.header("etag").map(str::to_owned);
        Ok(HttpResponse { status: answer.status, etag, body })
    }
}

impl From<HttpError> for CalendarError {
    fn from(error: HttpError) -> Self {
        let why = error.to_string();
        match error {
            HttpError::Elsewhere { .. } => CalendarError::Refused { why },
            error if error.may_pass() => CalendarError::Away { why },
            _ => CalendarError::Failed { why },
        }
    }
}
