//! What becomes of the sessions in terminals, told to whoever follows them.

use stafette_core::run::session::SessionState;
use stafette_core::{AgentName, RunId};
use tokio::sync::broadcast;

use super::State;

/// Changes that may wait to be read; who is slower hears the newest only.
pub(super) const WAITING: usize = 256;

/// An agent's session changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionNews {
    /// In which run.
    pub run: RunId,
    /// Whose.
    pub agent: AgentName,
    /// How it stands now.
    pub state: SessionState,
    /// What people should know of it: how it died, with its last screen.
    pub note: String,
    /// Whether its program died too often and is not started any more.
    pub gave_up: bool,
}

/// The sessions of one run, as they change.
#[derive(Debug)]
pub struct Follow {
    pub(super) run: RunId,
    pub(super) news: broadcast::Receiver<SessionNews>,
}

impl Follow {
    /// The next change; nothing when there will be none.
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

/// Tells what becomes of one terminal.
#[derive(Clone, Debug)]
pub(crate) struct Teller {
    pub(super) run: RunId,
    pub(super) agent: AgentName,
    pub(super) news: broadcast::Sender<SessionNews>,
}

impl Teller {
    pub(super) fn tell(&self, state: SessionState, note: String, gave_up: bool) {
        let (run, agent) = (self.run, self.agent.clone());
        // Nobody following is no trouble.
        drop(self.news.send(SessionNews { run, agent, state, note, gave_up }));
    }
}

impl State {
    /// Whether there is something to be said about it.
    pub(super) fn is_trouble(self) -> bool {
        matches!(self, State::Crashed | State::Restarting)
    }
}

impl From<State> for SessionState {
    fn from(state: State) -> Self {
        match state {
            State::Starting => SessionState::Starting,
            // Between two turns it takes input; it waits for nobody in particular.
            State::Ready | State::Waiting => SessionState::Ready,
            State::NotReady => SessionState::NotReady,
            State::Working => SessionState::Working,
            State::Crashed => SessionState::Crashed,
            State::Restarting => SessionState::Restarting,
            State::Ended => SessionState::Ended,
        }
    }
}
