//! Maps a token to its agent: a report made with it counts as that agent's.
//!
//! The token of a turn follows from its key and from a secret of the project, so that a turn which
//! survives its daemon can report to the next one.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use stafette_agents::{Pulse, seal};
use stafette_core::{AgentName, MessageId, RunId, TurnKey};
use uuid::Uuid;

/// The prefix of every token, so that one that an agent prints is recognised and not stored.
const PREFIX: &str = "stt_";

/// The number of digits of a proof that are in the mark of a message: its model has to read them.
const MARK: usize = 16;

/// The tokens of all active sessions.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    known: Arc<Mutex<HashMap<String, (TurnKey, AgentName)>>>,
    /// Notes the reports of each turn that is out.
    pulses: Arc<Mutex<HashMap<TurnKey, Pulse>>>,
    secret: Arc<str>,
}

impl Tokens {
    /// Opens it with the secret that is stored in `folder`. Where it cannot be stored, tokens are
    /// valid only as long as the process lives.
    pub(crate) fn open(folder: &Path) -> Self {
        let path = folder.join("token-secret");
        let kept = fs::read_to_string(&path).ok().filter(|secret| secret.len() >= 64);
        let secret = kept.unwrap_or_else(|| {
            let secret = random();
            if let Err(error) = write(&path, &secret) {
                tracing::warn!(%error, "tokens of agents do not outlive this daemon");
            }
            secret
        });
        Tokens { known: Arc::default(), pulses: Arc::default(), secret: secret.into() }
    }

    /// Issues the token for an agent's session that begins with this turn; those of earlier turns
    /// of the same handoff become invalid. A turn that is delivered again keeps its token.
    pub(crate) fn issue(&self, turn: TurnKey, agent: &AgentName) -> String {
        let token = format!("{PREFIX}{}", seal::proof(&self.secret, &format!("{turn} {agent}")));
        let mut known = self.lock();
        known.retain(|_, (other, _)| (other.run, other.handoff) != (turn.run, turn.handoff));
        known.insert(token.clone(), (turn, agent.clone()));
        token
    }

    /// The words that name a message to the agent's program. Nobody knows them before that: a program
    /// that finds them in its records has shown this message, and not a text of somebody else.
    pub(crate) fn mark(&self, run: RunId, message: MessageId) -> String {
        let proof = seal::proof(&self.secret, &format!("message {run}/{message}"));
        format!("[message {run}/{message} {}]", &proof[..MARK])
    }

    /// The token of an agent's session, if it has one.
    pub(crate) fn of(&self, run: RunId, agent: &AgentName) -> Option<String> {
        let known = self.lock();
        let is_own = |owner: &(TurnKey, AgentName)| owner.0.run == run && owner.1 == *agent;
        let mut own = known.iter().filter(|(_, owner)| is_own(owner));
        own.next().map(|(token, _)| token.clone())
    }

    /// The agent that a token belongs to, and the turn that its session began with.
    pub(crate) fn owner(&self, token: &str) -> Option<(TurnKey, AgentName)> {
        self.lock().get(token).cloned()
    }

    /// The place where the reports of a turn are noted, for the session that carries it out.
    pub(crate) fn pulse(&self, turn: TurnKey) -> Pulse {
        let mut pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.retain(|other, _| (other.run, other.handoff) != (turn.run, turn.handoff));
        pulses.entry(turn).or_default().clone()
    }

    /// Notes a report of a turn.
    pub(crate) fn beat(&self, turn: TurnKey) {
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.get(&turn).into_iter().for_each(Pulse::beat);
    }

    /// Removes the tokens of a run that has ended.
    pub(crate) fn forget(&self, run: RunId) {
        self.lock().retain(|_, owner| owner.0.run != run);
        let mut pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.retain(|turn, _| turn.run != run);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (TurnKey, AgentName)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

fn write(path: &Path, secret: &str) -> io::Result<()> {
    stafette_disk::folder_of(path)?;
    stafette_disk::write(path, secret)
}

#[cfg(test)]
mod tests {
    use stafette_core::HandoffId;

    use super::*;

    #[test]
    fn b_07_a_token_is_good_for_one_session_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let (tokens, run) = (Tokens::open(folder.path()), RunId(Uuid::nil()));
        let agent: AgentName = "builder".parse().expect("a name");
        let turn = TurnKey { run, handoff: HandoffId(1), attempt: 1, turn: 1 };
        let first = tokens.issue(turn, &agent);
        assert_eq!(tokens.owner(&first), Some((turn, agent.clone())));
        let second = tokens.issue(TurnKey { turn: 2, ..turn }, &agent);
        assert_eq!(tokens.owner(&first), None);
        tokens.forget(run);
        assert_eq!(tokens.owner(&second), None);
    }

    #[test]
    fn b_30_the_mark_of_a_message_is_a_secret_of_the_project() {
        let (folder, other) =
            (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let mark = |folder: &Path, number| {
            Tokens::open(folder).mark(RunId(Uuid::nil()), MessageId(number))
        };
        let first = mark(folder.path(), 1);
        assert!(first.starts_with("[message 00000000-0000-0000-0000-000000000000/m1 "), "{first}");
        assert_eq!(mark(folder.path(), 1), first, "the next daemon knows it");
        assert_ne!(mark(other.path(), 1), first);
        let digits = |mark: &str| mark[mark.len() - MARK - 1..].to_owned();
        assert_ne!(digits(&mark(folder.path(), 2)), digits(&first));
    }

    #[test]
    fn b_19_a_turn_has_its_token_also_with_the_next_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let agent: AgentName = "builder".parse().expect("a name");
        let run = RunId(Uuid::nil());
        let turn = TurnKey { run, handoff: HandoffId(1), attempt: 1, turn: 1 };
        let given = Tokens::open(folder.path()).issue(turn, &agent);
        assert_eq!(Tokens::open(folder.path()).issue(turn, &agent), given);
        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(Tokens::open(other.path()).issue(turn, &agent), given);
    }
}
