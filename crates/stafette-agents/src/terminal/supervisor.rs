//! How a session stands, decided without waiting: time and chance are handed in.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// How an agent's session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its program comes up.
    Starting,
    /// It takes input.
    Ready,
    /// It did not say that it takes input in time. It may still do.
    NotReady,
    /// It has a turn.
    Working,
    /// Its turn is over, and it waits for the next.
    Waiting,
    /// Its program died too often and is not started any more.
    Crashed,
    /// Its program died and is about to be started again.
    Restarting,
    /// Its program has left.
    Ended,
}

/// How long a session is waited for, and how often it is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patience {
    /// How long a program may take to be ready before the user is told.
    pub ready_timeout: Duration,
    /// How long a program that has shown something must be quiet to count as ready.
    pub settled: Duration,
    /// The wait before the first restart; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait before a restart.
    pub longest_wait: Duration,
    /// How many restarts in a row are tried.
    pub restarts: u32,
    /// A program that lives so long has not died in a row.
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

/// What is to be done about a program that has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ExitAction {
    /// Nothing: it left by itself.
    Ended,
    /// It is started again then.
    Restart {
        /// When.
        at: Instant,
    },
    /// It is not started again.
    GiveUp,
}

/// What is due at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// The state has changed.
    Changed,
    /// The program is to be started again.
    Restart,
}

/// A session's state, and when it changes by itself.
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
    /// The program has just been started.
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

    /// How the session stands.
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// How often the program died in a row.
    pub(super) fn deaths(&self) -> u32 {
        self.deaths
    }

    /// The program was started once more.
    pub(super) fn started(&mut self, now: Instant) {
        self.state = State::Starting;
        self.started = now;
        self.shown = None;
        self.restart = None;
    }

    /// The program is wanted again by somebody who knows that it died.
    pub(super) fn forgive(&mut self) {
        self.deaths = 0;
    }

    /// The program has printed something.
    pub(super) fn shown(&mut self, now: Instant) {
        self.shown = Some(now);
    }

    /// The program says that it takes input.
    pub(super) fn ready(&mut self) {
        if matches!(self.state, State::Starting | State::NotReady) {
            self.state = State::Ready;
        }
    }

    /// A turn begins.
    pub(super) fn turn_begins(&mut self) {
        if self.takes_input() {
            self.state = State::Working;
        }
    }

    /// The turn is over.
    pub(super) fn turn_ends(&mut self) {
        if self.state == State::Working {
            self.state = State::Waiting;
            // Who has brought a turn to its end is not dying in a row.
            self.deaths = 0;
        }
    }

    /// Whether there is something that takes input.
    fn takes_input(&self) -> bool {
        matches!(self.state, State::Ready | State::NotReady | State::Waiting | State::Working)
    }

    /// The program has left; `chance` spreads restarts that would otherwise fall together.
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

    /// Between half and all of the wait that is due after so many deaths.
    fn wait(&self, chance: u32) -> Duration {
        let doubled = 1_u32.checked_shl(self.deaths.saturating_sub(1)).unwrap_or(u32::MAX);
        let wait = self.patience.first_wait.saturating_mul(doubled);
        let wait = wait.min(self.patience.longest_wait);
        wait / 2 + (wait / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }

    /// The session was ended on purpose.
    pub(super) fn end(&mut self) {
        self.state = State::Ended;
        self.restart = None;
    }

    /// What is due now.
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

    /// When something is due next.
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
