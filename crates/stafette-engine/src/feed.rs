//! The live stream of events: what was missed first, then what happens, without a gap.

use std::sync::Arc;

use stafette_store::{ReadError, Store, Stored};
use tokio::sync::watch;

/// How many events a reader gets at once.
const PAGE: usize = 256;

/// A reader of everything that happens after its cursor. It reads the store, so that it can neither
/// miss nor repeat anything; the engine only tells it when to look.
pub struct Feed {
    store: Arc<dyn Store>,
    head: watch::Receiver<u64>,
    cursor: u64,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl Feed {
    pub(crate) fn new(store: Arc<dyn Store>, head: watch::Receiver<u64>, cursor: u64) -> Self {
        Feed { store, head, cursor }
    }

    /// The next events: at once when there are some, otherwise when there are. Nothing when the
    /// engine is gone.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Stored>>, ReadError> {
        loop {
            // Marks the present as seen first: what is appended during the read wakes us again.
            self.head.borrow_and_update();
            let page = self.store.feed(self.cursor, PAGE).await?;
            if let Some(last) = page.last() {
                self.cursor = last.position;
                return Ok(Some(page));
            }
            if self.head.changed().await.is_err() {
                return Ok(None);
            }
        }
    }
}
