//! Terminals that print without end take turns, so that quiet ones need not wait for them.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// The number of bytes that a terminal may print without a rest before it has to wait for its turn.
const BURST: usize = 16 * 1024;

/// A terminal that prints nothing for this time has had a rest.
const REST: Duration = Duration::from_millis(50);

/// The turns of terminals that print a lot: one core is left for everything else, where there are
/// two.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, NonZero::get);
    Semaphore::new(cores.saturating_sub(1).max(1))
});

/// The output of a terminal since its last rest.
#[derive(Debug)]
pub(super) struct Pace {
    printed: usize,
    until: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Pace { printed: 0, until: Instant::now() }
    }

    /// Waits for its turn when it prints a lot, in the order of arrival. Quiet terminals do not
    /// wait.
    pub(super) async fn turn(&mut self) -> Option<SemaphorePermit<'static>> {
        if self.until.elapsed() >= REST {
            self.printed = 0;
        }
        if self.printed < BURST {
            return None;
        }
        // It is never closed; without turns everything would still be right, only less fair.
        TURNS.acquire().await.ok()
    }

    /// Adds the number of bytes that were printed and taken in.
    pub(super) fn printed(&mut self, count: usize) {
        self.printed = self.printed.saturating_add(count);
        self.until = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn s1_16_who_prints_a_lot_waits_for_his_turn_until_he_has_rested() {
        let mut busy = Pace::new();
        assert!(busy.turn().await.is_none(), "he has only begun");
        busy.printed(BURST);
        let all = TURNS.available_permits();
        let turn = busy.turn().await;
        assert!(turn.is_some() && TURNS.available_permits() < all);
        drop(turn);
        busy.until -= REST;
        assert!(busy.turn().await.is_none());
    }
}
