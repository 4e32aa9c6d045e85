//! The moments at which the screen of a program is read: when it has drawn everything that it wants
//! to be seen.
//!
//! A program may be held up in the middle of a drawing, so what it wrapped itself counts when it is
//! seen in two such moments: a half-drawn screen is not there twice.

use std::time::Duration;

use tokio::time::Instant;

/// A program that prints nothing for this time has drawn everything.
const PAUSE: Duration = Duration::from_millis(50);

/// The time after which the screen is read again, if nothing was printed since.
const STILL: Duration = Duration::from_millis(300);

/// The time after which the screen of a program that never pauses is read.
const RESTLESS: Duration = Duration::from_secs(1);

/// The output since the screen was read.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// The first and the last output.
    drawing: Option<(Instant, Instant)>,
    /// True if the screen was read since the last output.
    read: bool,
}

impl Pauses {
    /// Notes output of the program.
    pub(super) fn printed(&mut self, now: Instant) {
        let first = self.drawing.filter(|_| !self.read).map_or(now, |(first, _)| first);
        (self.drawing, self.read) = (Some((first, now)), false);
    }

    /// The time at which the screen is to be read.
    pub(super) fn next(&self) -> Option<Instant> {
        self.drawing.map(|(first, last)| match self.read {
            true => last + STILL,
            false => (last + PAUSE).min(first + RESTLESS),
        })
    }

    /// If the screen is to be read now, returns true for a program that does not pause.
    pub(super) fn due(&mut self, now: Instant) -> Option<bool> {
        self.next().filter(|at| *at <= now)?;
        let restless = !self.read && self.drawing.is_some_and(|(first, _)| first + RESTLESS <= now);
        self.drawing = self.drawing.filter(|_| !self.read);
        self.read = true;
        Some(restless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_02_a_screen_is_read_at_a_pause_and_again_when_it_stays_so() {
        let mut pauses = Pauses::default();
        let begin = Instant::now();
        assert_eq!(pauses.next(), None);
        pauses.printed(begin);
        assert_eq!(pauses.due(begin), None);
        assert_eq!(pauses.due(begin + PAUSE), Some(false));
        assert_eq!(pauses.next(), Some(begin + STILL));
        assert_eq!(pauses.due(begin + STILL), Some(false));
        assert_eq!(pauses.next(), None);
    }

    #[test]
    fn s1_02_a_program_that_never_pauses_is_read_all_the_same() {
        let mut pauses = Pauses::default();
        let begin = Instant::now();
        let mut reads = 0;
        for step in 0..300 {
            let now = begin + PAUSE / 5 * step;
            reads += u32::from(pauses.due(now) == Some(true));
            pauses.printed(now);
        }
        assert_eq!(reads, 2, "in three seconds, the first of which is not over before it ends");
    }
}
