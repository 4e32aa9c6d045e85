//! Pauses between attempts, each twice as long as the one before.

use std::time::Duration;

use tokio::sync::watch;

/// The first pause.
const FIRST: Duration = Duration::from_millis(200);

/// The pauses between the attempts at one thing.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    pub(crate) fn new(longest: Duration) -> Self {
        Backoff { next: FIRST, longest }
    }

    /// Waits; returns true if the engine stops meanwhile.
    pub(crate) async fn stops(&mut self, stopping: &mut watch::Receiver<bool>) -> bool {
        let stop = stopping.wait_for(|stop| *stop);
        let stops = tokio::time::timeout(self.next, stop).await.is_ok();
        self.next = (self.next * 2).min(self.longest);
        stops
    }
}
