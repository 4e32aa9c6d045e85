//! Whether a program makes progress: what only turns, blinks or counts on its screen is none.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use crate::process;

/// The most screens that are remembered.
const SCREENS: usize = 10_000;

/// The signs of progress of one turn.
#[derive(Debug)]
pub(super) struct Progress {
    /// The time of the last one.
    pub(super) at: Instant,
    seen: HashSet<u64>,
    worked: u64,
}

impl Progress {
    pub(super) fn new() -> Self {
        Progress { at: Instant::now(), seen: HashSet::new(), worked: 0 }
    }

    /// Marks a sign of progress.
    pub(super) fn mark(&mut self) {
        self.at = Instant::now();
    }

    /// Takes what the screen shows; returns true if these words were not on it before.
    pub(super) fn sees(&mut self, screen: &[String]) -> bool {
        let mut words = DefaultHasher::new();
        let letters = screen.iter().flat_map(|row| row.chars()).filter(|c| c.is_alphabetic());
        letters.for_each(|letter| letter.hash(&mut words));
        if self.seen.len() >= SCREENS {
            self.seen.clear();
        }
        self.seen.insert(words.finish())
    }

    /// True if something that the program has started has worked since the last call, which was this
    /// long ago.
    pub(super) fn works(&mut self, program: Option<i32>, time: Duration) -> bool {
        let worked = program.map_or(0, process::worked_beside);
        let before = std::mem::replace(&mut self.worked, worked);
        process::is_work(worked.saturating_sub(before), time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(row: &str) -> Vec<String> {
        vec!["> Write a poem".to_owned(), row.to_owned()]
    }

    #[test]
    fn b_23_a_sign_that_turns_and_seconds_that_count_are_no_progress() {
        let mut progress = Progress::new();
        assert!(progress.sees(&screen("✻ Orbiting… (1s)")));
        assert!(!progress.sees(&screen("✶ Orbiting… (2s)")));
        assert!(progress.sees(&screen("✶ Orbiting… (3s) tip: use @ for files")));
        assert!(!progress.sees(&screen("✢ Orbiting… (4s)")), "a tip that comes and goes");
        assert!(progress.sees(&screen("● Roses are red")));
    }
}
