//! Reports state changes of the sessions in terminals to followers.

use stafette_core::run::session::SessionState;
use stafette_core::{AgentName, RunId};
use tokio::sync::broadcast;

use super::State;

/// The number of changes that may wait to be read; a slower reader receives only the newest.
pub(super) const WAITING: usize = 256;

/// A state change of an agent's session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionNews {
    pub run: RunId,
    pub agent: AgentName,
    pub state: SessionState,
    /// A message for people: how its program died, with its last screen.
    pub note: String,
    /// True if its program died too often and is not started any more.
    pub gave_up: bool,
}

/// The state changes of the sessions of one run.
#[derive(Debug)]
pub struct Follow {
    pub(super) run: RunId,
    pub(super) news: broadcast::Receiver<SessionNews>,
}

impl Follow {
    /// Returns the next change; `None` when there will be none.
    pub async fn next(&mut self) -> Option<SessionNews> {
        loop {
            match self.news.recv().await {
                Ok(news) if news.run == self.run => return Some(news),
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// Reports the state changes of one terminal.
#[derive(Clone, Debug)]
pub(crate) struct Teller {
    pub(super) run: RunId,
    pub(super) agent: AgentName,
    pub(super) news: broadcast::Sender<SessionNews>,
}

impl Teller {
    pub(super) fn tell(&self, state: SessionState, note: String, gave_up: bool) {
        let (run, agent) = (self.run, self.agent.clone());
        // Ignored if no one follows.
        drop(self.news.send(SessionNews { run, agent, state, note, gave_up }));
    }
}

impl State {
    /// True if it should be reported to people.
    pub(super) fn is_trouble(self) -> bool {
        matches!(self, State::Crashed | State::Restarting)
    }
}

impl From<State> for SessionState {
    fn from(state: State) -> Self {
        match state {
            State::Starting => SessionState::Starting,
            // Between two turns it takes input; it waits for no one in particular.
            State::Ready | State::Waiting => SessionState::Ready,
            State::NotReady => SessionState::NotReady,
            State::Working => SessionState::Working,
            State::Crashed => SessionState::Crashed,
            State::Restarting => SessionState::Restarting,
            State::Ended => SessionState::Ended,
        }
    }
}
