//! An answer, as it comes.

use std::future::Future;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Response};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::HttpError;

/// Keeps a connection going for as long as somebody wants its answer.
#[derive(Debug)]
pub(crate) struct Driver(JoinHandle<()>);

impl Driver {
    pub(crate) fn new<T>(connection: impl Future<Output = T> + Send + 'static) -> Self {
        // How it ended is seen by whoever reads from it.
        Driver(tokio::spawn(async move { drop(connection.await) }))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer whose head has come.
#[derive(Debug)]
pub struct HttpResponse {
    /// Its status.
    pub status: u16,
    at: String,
    headers: HeaderMap,
    trailers: HeaderMap,
    body: Incoming,
    _driver: Driver,
}

impl HttpResponse {
    pub(crate) fn new(at: String, answer: Response<Incoming>, driver: Driver) -> Self {
        let (head, body) = answer.into_parts();
        HttpResponse {
            status: head.status.as_u16(),
            at,
            headers: head.headers,
            trailers: HeaderMap::new(),
            body,
            _driver: driver,
        }
    }

    /// Whether it is what was hoped for.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// A header, when it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What was said after the body, once that is read.
    #[must_use]
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.get(name)?.to_str().ok()
    }

    /// Whether it is a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let kind = self.header(CONTENT_TYPE.as_str());
        kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// All of it, when it is no larger than `limit` and there in time.
    ///
    /// # Errors
    /// When it is larger, late or broken.
    pub async fn whole(&mut self, limit: usize, within: Duration) -> Result<Vec<u8>, HttpError> {
        let at = self.at.clone();
        let read = async {
            let mut whole = Vec::new();
            while let Some(chunk) = self.chunk().await? {
                if whole.len() + chunk.len() > limit {
                    return Err(HttpError::TooLarge { at: self.at.clone(), limit });
                }
                whole.extend_from_slice(&chunk);
            }
            Ok(whole)
        };
        timeout(within, read).await.unwrap_or(Err(HttpError::Late { at, within }))
    }

    /// The next piece; nothing at the end. May be dropped and called again.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    return Err(HttpError::Broken { at: self.at.clone(), why: error.to_string() });
                }
            };
            match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(frame) => self.trailers.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
    }
}
