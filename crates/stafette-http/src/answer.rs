//! A response, as it arrives.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Response};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::{Boxed, HttpError};

/// Drives a connection until it is dropped.
#[derive(Debug)]
pub(crate) struct Driver(JoinHandle<()>);

impl Driver {
    pub(crate) fn new<T>(connection: impl Future<Output = T> + Send + 'static) -> Self {
        // Errors of the connection are seen by the reader of the response.
        Driver(tokio::spawn(async move { drop(connection.await) }))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A response whose headers have arrived.
#[derive(Debug)]
pub struct HttpResponse {
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

    /// Returns true for a status from 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns a trailer, once the body is read.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.get(name)?.to_str().ok()
    }

    /// Returns true for a stream of server-sent events.
    pub fn is_stream(&self) -> bool {
        let kind = self.header(CONTENT_TYPE.as_str());
        kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Reads the whole body, at most `limit` bytes and within a time limit.
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

    /// Reads the next chunk; `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let next: Boxed<'_, _> = Box::pin(self.next_data());
        next.await
    }

    async fn next_data(&mut self) -> Result<Option<Bytes>, HttpError> {
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
