//! The state of a session, decided without waiting: time and chance are passed in.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// The state of an agent's session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Starting,
    /// Its program takes input.
    Ready,
    /// It did not signal in time that it takes input. It may still do so.
    NotReady,
    /// It has a turn in progress.
    Working,
    /// Its turn has ended, and it waits for the next.
    Waiting,
    /// Its program died too often and is not started any more.
    Crashed,
    /// Its program died and is about to be started again.
    Restarting,
    /// Its program has exited.
    Ended,
}

/// The time limits for a session to start, and the limits for restarts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patience {
    /// The time limit for a program to become ready before the user is notified.
    pub ready_timeout: Duration,
    /// The time that a program with output must be quiet to count as ready.
    pub settled: Duration,
    /// The wait before the first restart; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait before a restart.
    pub longest_wait: Duration,
    /// The maximum number of restarts in a row.
    pub restarts: u32,
    /// The lifetime after which a death no longer counts as one in a row.
    pub stable: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            ready_timeout: Duration::from_secs(5),
            settled: Duration::from_millis(700),
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
            restarts: 5,
            stable: Duration::from_secs(60),
        }
    }
}

/// The action for a program that has exited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ExitAction {
    /// Nothing: it exited on its own.
    Ended,
    /// It is started again at a later time.
    Restart { at: Instant },
    /// It is not started again.
    GiveUp,
}

/// The change that is due at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    Changed,
    /// The program is to be started again.
    Restart,
}

/// A session's state, and the times at which it changes automatically.
#[derive(Debug)]
pub(super) struct Supervisor {
    patience: Patience,
    state: State,
    started: Instant,
    shown: Option<Instant>,
    restart: Option<Instant>,
    deaths: u32,
}

impl Supervisor {
    /// The state of a program that has just been started.
    pub(super) fn new(patience: Patience, now: Instant) -> Self {
        Supervisor {
            patience,
            state: State::Starting,
            started: now,
            shown: None,
            restart: None,
            deaths: 0,
        }
    }

    /// The state of the session.
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// The number of deaths in a row.
    pub(super) fn deaths(&self) -> u32 {
        self.deaths
    }

    /// Called when the program was started once more.
    pub(super) fn started(&mut self, now: Instant) {
        self.state = State::Starting;
        self.started = now;
        self.shown = None;
        self.restart = None;
    }

    /// Resets the deaths: a caller that knows about them wants the program again.
    pub(super) fn forgive(&mut self) {
        self.deaths = 0;
    }

    /// Called when the program has printed something.
    pub(super) fn shown(&mut self, now: Instant) {
        self.shown = Some(now);
    }

    /// Called when the program signals that it takes input.
    pub(super) fn ready(&mut self) {
        if matches!(self.state, State::Starting | State::NotReady) {
            self.state = State::Ready;
        }
    }

    /// Called when a turn begins.
    pub(super) fn turn_begins(&mut self) {
        if self.takes_input() {
            self.state = State::Working;
        }
    }

    /// Called when the turn has ended.
    pub(super) fn turn_ends(&mut self) {
        if self.state == State::Working {
            self.state = State::Waiting;
            // A program that has completed a turn is not dying in a row.
            self.deaths = 0;
        }
    }

    /// True if a program is there that takes input.
    fn takes_input(&self) -> bool {
        matches!(self.state, State::Ready | State::NotReady | State::Waiting | State::Working)
    }

    /// Called when the program has exited; `chance` spreads restarts that would otherwise come
    /// together.
    pub(super) fn left(&mut self, now: Instant, well: bool, chance: u32) -> ExitAction {
        if well {
            self.state = State::Ended;
            self.deaths = 0;
            return ExitAction::Ended;
        }
        if now.duration_since(self.started) >= self.patience.stable {
            self.deaths = 0;
        }
        self.deaths += 1;
        if self.deaths > self.patience.restarts {
            self.state = State::Crashed;
            return ExitAction::GiveUp;
        }
        let at = now + self.wait(chance);
        self.state = State::Restarting;
        self.restart = Some(at);
        ExitAction::Restart { at }
    }

    /// Between half and all of the wait that is due after this many deaths.
    fn wait(&self, chance: u32) -> Duration {
        let doubled = 1_u32.checked_shl(self.deaths.saturating_sub(1)).unwrap_or(u32::MAX);
        let wait = self.patience.first_wait.saturating_mul(doubled);
        let wait = wait.min(self.patience.longest_wait);
        wait / 2 + (wait / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }

    /// Called when the session was ended on purpose.
    pub(super) fn end(&mut self) {
        self.state = State::Ended;
        self.restart = None;
    }

    /// The change that is due now.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        if self.restart.is_some_and(|at| at <= now) {
            self.restart = None;
            return Some(Due::Restart);
        }
        if self.state != State::Starting {
            return None;
        }
        if self.shown.is_some_and(|at| at + self.patience.settled <= now) {
            self.state = State::Ready;
            return Some(Due::Changed);
        }
        if self.started + self.patience.ready_timeout <= now {
            self.state = State::NotReady;
            return Some(Due::Changed);
        }
        None
    }

    /// The time of the next change.
    pub(super) fn next(&self) -> Option<Instant> {
        if self.restart.is_some() {
            return self.restart;
        }
        if self.state != State::Starting {
            return None;
        }
        let late = self.started + self.patience.ready_timeout;
        Some(self.shown.map_or(late, |at| late.min(at + self.patience.settled)))
    }
}

#[cfg(test)]
mod tests;
