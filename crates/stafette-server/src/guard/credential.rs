//! No connection outlives the credential that it was opened with.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use aide::OperationInput;
use axum::body::{Body, HttpBody};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::{FutureExt, StreamExt, stream};
use stafette_core::Time;
use thiserror::Error;

use crate::clock::now;
use crate::launch::Launches;
use crate::secret::Hash;
use crate::tokens::Tokens;

/// Maximum time between two looks at the clock, which may be set.
const LOOK: Duration = Duration::from_secs(5);

/// Returns for how long to wait for the end of something; `None` if it has ended.
pub(crate) fn look_again(until: Option<Time>) -> Option<Duration> {
    let left = until.map_or(i64::MAX, |until| until.0.saturating_sub(now().0));
    let left = u64::try_from(left).ok().filter(|left| *left > 0)?;
    Some(LOOK.min(Duration::from_millis(left)))
}

/// The token or session that a request showed. At a Unix socket there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credential(Option<(Arc<Tokens>, Arc<Launches>, Hash)>);

impl Credential {
    pub(super) fn new(tokens: Arc<Tokens>, launches: Arc<Launches>, shown: &str) -> Self {
        Credential(Some((tokens, launches, Hash::of(shown))))
    }

    /// Returns once it was revoked or has expired.
    pub(crate) async fn ended(&self) {
        let Some((tokens, launches, hash)) = &self.0 else { return std::future::pending().await };
        // It is one of both; the other one does not know it.
        tokens.ended(*hash).await;
        launches.ended(*hash).await;
    }

    /// Breaks the answer off with the credential, if it is a stream. That is an error: what has come so
    /// far is not the whole.
    pub(super) fn bound(self, answer: Response) -> Response {
        if answer.body().size_hint().exact().is_some() {
            return answer;
        }
        answer.map(|body| {
            let mut ended = Box::pin(async move { self.ended().await }.fuse());
            let mut pieces = body.into_data_stream();
            Body::from_stream(stream::poll_fn(move |context| match ended.poll_unpin(context) {
                Poll::Ready(()) => Poll::Ready(Some(Err(axum::Error::new(CredentialEnded)))),
                Poll::Pending => pieces.poll_next_unpin(context),
            }))
        })
    }
}

/// The reason why an answer was broken off.
#[derive(Debug, Error)]
#[error("the token was revoked or has expired")]
struct CredentialEnded;

impl<S: Sync> FromRequestParts<S> for Credential {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Credential>().cloned().unwrap_or_default())
    }
}

impl OperationInput for Credential {}
