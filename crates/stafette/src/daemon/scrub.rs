//! The check of the store in the background: every event is read again, slowly, so that damage is
//! found while there may be a backup.

use std::time::Duration;

use stafette_engine::Engine;
use stafette_store::{Damage, ReadError};

/// The number of events that are read at a time.
const PAGE: usize = 256;

/// The pause between two pages.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause between two checks of everything.
const ROUND: Duration = Duration::from_secs(24 * 3600);

/// Checks the newest events: those that a crash or a full disk would have damaged.
pub(super) async fn tail(engine: &Engine) {
    let head = engine.store().head().await.unwrap_or(0);
    check(engine, head.saturating_sub(PAGE as u64), Duration::ZERO).await;
}

/// Checks everything, again and again.
pub(super) async fn whole(engine: Engine) {
    loop {
        check(&engine, 0, PAUSE).await;
        tokio::time::sleep(ROUND).await;
    }
}

async fn check(engine: &Engine, mut after: u64, pause: Duration) {
    loop {
        match engine.store().feed(after, PAGE).await {
            Ok(page) => match page.last() {
                Some(last) => after = last.position,
                None => return,
            },
            Err(ReadError::Damaged {
                source: damage @ Damage::Event { run, position: Some(position), .. },
            }) => {
                engine.stopped().stop_damaged(run, damage).await;
                after = position;
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the events cannot be checked");
                return;
            }
        }
        tokio::time::sleep(pause).await;
    }
}
