//! Which agent a token belongs to: what is told with it is told by that agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stafette_core::{AgentName, RunId};
use uuid::Uuid;

/// The tokens of all sessions that live.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    known: Arc<Mutex<HashMap<String, (RunId, AgentName)>>>,
}

impl Tokens {
    /// A new token for an agent's session; the agent's older one is no longer good.
    pub(crate) fn issue(&self, run: RunId, agent: &AgentName) -> String {
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let mut known = self.lock();
        known.retain(|_, owner| (owner.0, &owner.1) != (run, agent));
        known.insert(token.clone(), (run, agent.clone()));
        token
    }

    /// The token that an agent's session has, if it has one.
    pub(crate) fn of(&self, run: RunId, agent: &AgentName) -> Option<String> {
        let known = self.lock();
        let mut own = known.iter().filter(|(_, owner)| (owner.0, &owner.1) == (run, agent));
        own.next().map(|(token, _)| token.clone())
    }

    /// Whose it is.
    pub(crate) fn owner(&self, token: &str) -> Option<(RunId, AgentName)> {
        self.lock().get(token).cloned()
    }

    /// The run is over, and its tokens with it.
    pub(crate) fn forget(&self, run: RunId) {
        self.lock().retain(|_, owner| owner.0 != run);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (RunId, AgentName)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_07_a_token_is_good_for_one_session_only() {
        let (tokens, run) = (Tokens::default(), RunId(Uuid::nil()));
        let agent: AgentName = "builder".parse().expect("a name");
        let first = tokens.issue(run, &agent);
        assert_eq!(tokens.owner(&first), Some((run, agent.clone())));
        let second = tokens.issue(run, &agent);
        assert_eq!(tokens.owner(&first), None);
        tokens.forget(run);
        assert_eq!(tokens.owner(&second), None);
    }
}
